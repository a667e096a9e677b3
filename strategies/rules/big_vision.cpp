#include "strategies/rules/big_vision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/pattern.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/big_vision_ops.hpp"
#include "strategies/rules/rule_matches.hpp"

namespace shardsim {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Pattern compile(const BigVisionRule& rule) {
  if (rule.pattern.starts_with('/')) {
    throw RuleError(
        "AssertionError", rule.place,
        fmt::format("pattern \"{}\": names of parameters never start with \"/\"", rule.pattern));
  }
  try {
    return {rule.pattern, rule.place};
  } catch (const PatternError& error) {
    throw RuleError("re.error", rule.place, error.message());
  }
}

class Inference {
 public:
  Inference(const ParameterTree& tree, const std::vector<BigVisionRule>& rules,
            const LogicalAxisRules& logical_axis_rules, const Mesh& mesh, EqualDimensions ties)
      : tree_(tree),
        rules_(rules),
        logical_axis_rules_(logical_axis_rules),
        mesh_(mesh),
        ties_(ties) {}

  SpecAssignment run() {
    match();
    start();
    for (std::size_t r = 0; r < rules_.size(); ++r) apply(r);
    return finish();
  }

 private:
  void match() {
    std::vector<std::string> names;
    names.reserve(tree_.leaves.size());
    for (const ParameterLeaf& leaf : tree_.leaves) names.push_back(leaf.name);
    matches_ = match_big_vision_rules(rules_, names);
    rule_ = matches_.first;
    members_.resize(rules_.size());
    dimension_rules_.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (tree_.leaves[i].logical_axes) {
        for (auto& members : members_) members.push_back(i);
        rule_[i].reset();
      } else if (rule_[i]) {
        members_[*rule_[i]].push_back(i);
      }
    }
  }

  void start() {
    for (const ParameterLeaf& leaf : tree_.leaves) {
      if (!leaf.has_shape) {
        throw RuleError("AttributeError", leaf.place, fmt::format("{} is no array", leaf.name));
      }
      BigVisionLeaf state;
      state.leaf = &leaf;
      state.entries.resize(leaf.shape.size());
      state.is_boxed = leaf.logical_axes.has_value();
      leaves_.push_back(std::move(state));
    }
  }

  void apply(std::size_t r) {
    for (const std::string& text : split(rules_[r].tactic, '|')) {
      const BigVisionOp op =
          make_big_vision_op(text, mesh_, logical_axis_rules_, ties_, rules_[r].place);
      for (const std::size_t i : members_[r]) {
        const auto before = leaves_[i].entries;
        op(leaves_[i]);
        note_deciding(r, before, i);
      }
    }
  }

  // Of a leaf with logical axes several rules may decide, each a dimension.
  void note_deciding(std::size_t r, const std::vector<std::optional<SpecEntry>>& before,
                     std::size_t i) {
    const std::vector<std::optional<SpecEntry>>& after = leaves_[i].entries;
    if (!leaves_[i].leaf->logical_axes || leaves_[i].is_boxed) return;
    std::vector<RuleIndex>& by_dimension = dimension_rules_[i];
    by_dimension.resize(after.size());
    for (std::size_t d = 0; d < after.size(); ++d) {
      if (after[d] && (d >= before.size() || after[d] != before[d])) by_dimension[d] = r;
    }
    if (!rule_[i]) rule_[i] = r;
  }

  SpecAssignment finish() {
    SpecAssignment result;
    result.leaves.resize(leaves_.size());
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      BigVisionLeaf& leaf = leaves_[i];
      if (leaf.is_boxed) {
        throw RuleError("TypeError", leaf.leaf->place,
                        fmt::format("{} has logical axes and no rule applies logical_partitioning",
                                    leaf.leaf->name));
      }
      if (!leaf.invalid.empty()) throw RuleError("ValueError", leaf.leaf->place, leaf.invalid);
      LeafSpec& out = result.leaves[i];
      out.rule = rule_[i];
      out.reason = std::move(leaf.reason);
      out.dimension_rules = dimension_rules_[i];
      result.warnings.insert(result.warnings.end(), leaf.warnings.begin(), leaf.warnings.end());
      for (auto& entry : leaf.entries) out.spec.push_back(std::move(entry).value_or(SpecEntry{}));
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      check_axes(result.leaves[i].spec, mesh_, leaves_[i].leaf->place);
    }
    result.rules = matches_.uses;
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      result.rules[r].decides = 0;
      for (std::size_t i = 0; i < leaves_.size(); ++i) {
        const std::vector<RuleIndex>& by_dimension = dimension_rules_[i];
        const bool decides =
            rule_[i] == r || std::count(by_dimension.begin(), by_dimension.end(), RuleIndex(r)) > 0;
        if (decides) ++result.rules[r].decides;
      }
      if (result.rules[r].decides > 0) result.rules[r].shadowed_by.reset();
    }
    return result;
  }

  const ParameterTree& tree_;
  const std::vector<BigVisionRule>& rules_;
  const LogicalAxisRules& logical_axis_rules_;
  const Mesh& mesh_;
  EqualDimensions ties_;
  FirstMatches matches_;
  std::vector<RuleIndex> rule_;                    // by leaf: what decided
  std::vector<std::vector<std::size_t>> members_;  // by rule: leaves that its tactic is applied to
  std::vector<std::vector<RuleIndex>> dimension_rules_;  // by leaf with logical axes
  std::vector<BigVisionLeaf> leaves_;
};

}  // namespace

std::vector<BigVisionRule> read_big_vision_rules(const JsonReader& json) {
  std::vector<BigVisionRule> rules;
  for (const JsonReader& rule : json.elements()) {
    const std::vector<JsonReader> pair = rule.elements();
    if (pair.size() != 2) {
      throw RuleError("ValueError", rule.place(), "a rule is a pair [pattern, tactic]");
    }
    rules.push_back({pair[0].string(), pair[1].string(), rule.place()});
  }
  if (rules.empty()) throw RuleError("ValueError", json.place(), "big_vision needs a rule");
  return rules;
}

FirstMatches match_big_vision_rules(const std::vector<BigVisionRule>& rules,
                                    const std::vector<std::string>& names) {
  std::vector<Pattern> patterns;
  std::vector<RuleUse> uses;
  for (const BigVisionRule& rule : rules) {
    patterns.push_back(compile(rule));
    uses.push_back({fmt::format("{} -> {}", rule.pattern, rule.tactic), rule.place});
  }
  RuleMatches matches(std::move(uses));
  FirstMatches result;
  for (const std::string& name : names) {
    std::vector<std::size_t> matching;
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (patterns[r].full_match(name)) matching.push_back(r);
    }
    result.first.push_back(matches.add(matching));
  }
  result.uses = matches.uses();
  return result;
}

SpecAssignment infer_sharding(const ParameterTree& tree, const std::vector<BigVisionRule>& rules,
                              const LogicalAxisRules& logical_axis_rules, const Mesh& mesh,
                              const Place& place, EqualDimensions ties) {
  if (rules.empty()) throw RuleError("ValueError", place, "big_vision needs a rule");
  if (tree.leaves.empty()) throw RuleError("ValueError", place, "there are no parameters");
  return Inference(tree, rules, logical_axis_rules, mesh, ties).run();
}

SystemAxes big_vision_axes(const JsonReader& strategy, const Mesh& /*mesh*/) {
  const auto given = strategy.find("logical_axis_rules");
  if (!given) return {};
  const auto batch = axes_of_rule(read_logical_axis_rules(*given), "act_batch");
  SystemAxes axes;
  axes.batch = batch.value_or(std::vector<std::string>{});
  axes.batch_is_said = batch.has_value();
  return axes;
}

SpecAssignment assign_big_vision(const ParameterTree& tree, const Mesh& mesh,
                                 const JsonReader& strategy) {
  std::vector<BigVisionRule> rules{{".*", "replicate", strategy.place()}};
  LogicalAxisRules logical{{"act_batch", SpecEntry{"data"}, strategy.place()}};
  if (const auto json = strategy.find("rules")) rules = read_big_vision_rules(*json);
  if (const auto json = strategy.find("logical_axis_rules")) {
    logical = read_logical_axis_rules(*json);
  }
  const auto ties = strategy.find("argsort");
  return infer_sharding(tree, rules, logical, mesh, strategy.place(),
                        ties ? read_equal_dimensions(*ties) : EqualDimensions::stable);
}

}  // namespace shardsim
