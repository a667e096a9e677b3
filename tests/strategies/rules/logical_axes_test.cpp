// Laws of the rule systems on logical axes; what the originals answer are golden cases.
#include "strategies/rules/logical_axes.hpp"

#include <catch2/catch.hpp>
#include <set>

#include <rapidcheck.h>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/flax_nnx.hpp"
#include "strategies/rules/haliax.hpp"
#include "strategies/rules/t5x.hpp"

namespace shardsim::logical_axes_test {
namespace {

const Place place{"test", ""};

LogicalAxisRules rules_of(const char* text) {
  const Json json = parse_json(text, "test");
  return read_logical_axis_rules({json, place});
}

ParameterTree tree_of(const char* text) {
  const Json json = parse_json(text, "test");
  return {"test", read_parameter_leaves({json, place})};
}

SpecAssignment assign(const char* system, const ParameterTree& tree, const char* strategy,
                      const Mesh& mesh = Mesh({{"data", 8}, {"model", 2}})) {
  const Json json = parse_json(strategy, "test");
  return find_rule_system(system)->assign(tree, mesh, {json, place});
}

LogicalAxisRules arbitrary_rules() {
  LogicalAxisRules rules(*rc::gen::inRange<std::size_t>(0, 8));
  for (LogicalAxisRule& rule : rules) {
    rule.name = *rc::gen::element<std::string>("a", "b", "c", "d");
    const auto axes =
        *rc::gen::container<std::set<std::string>>(rc::gen::element<std::string>("x", "y", "z"));
    rule.axes.axes.assign(axes.begin(), axes.end());
  }
  return rules;
}

TEST_CASE("flax.linen puts no mesh axis on two dimensions") {
  CHECK(rc::check([] {
    const PartitionSpec spec =
        logical_to_mesh_axes({"d", std::nullopt, "a", "c", "b"}, arbitrary_rules(), place);
    RC_ASSERT(spec.size() == 5U);
    RC_ASSERT(spec[1].is_whole());
    std::set<std::string> used;
    for (const SpecEntry& entry : spec) {
      for (const std::string& axis : entry.axes) RC_ASSERT(used.insert(axis).second);
    }
  }));
}

// The definition read backwards: what a rule skipped could not be given, what it gave was free.
TEST_CASE("Removing the rules that decided nothing changes no spec") {
  CHECK(rc::check([] {
    const LogicalAxisRules rules = arbitrary_rules();
    const PartitionSpec names = logical_names({"a", "b", "c"});
    const LogicalAssignment all = apply_logical_axis_rules(names, rules, place);
    LogicalAxisRules used;
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (std::find(all.rules.begin(), all.rules.end(), r) != all.rules.end()) {
        used.push_back(rules[r]);
      }
    }
    RC_ASSERT(apply_logical_axis_rules(names, used, place).spec == all.spec);
  }));
}

TEST_CASE("Rules count the leaves that have their name and those that they decide") {
  const ParameterTree tree = tree_of(R"({
    "bias": {"shape": [64]},
    "in": {"shape": [32, 64], "logical_axes": ["embed", "mlp"]},
    "out": {"shape": [64, 32], "logical_axes": ["mlp", "embed"]},
    "scale": {"shape": [32], "logical_axes": ["embed"]}})");
  const SpecAssignment result = assign("logical_axes", tree, R"({"rules": [
    ["mlp", "model"], ["embed", "model"], ["embed", "data"], ["embed", null], ["kv", "data"]]})");
  // By hand: mlp takes model on in and out, so embed falls back to data there; on scale it is free.
  CHECK(result.leaves[0].spec == PartitionSpec{{}});
  CHECK(result.leaves[0].reason == "no logical axes");
  CHECK(result.leaves[1].spec == PartitionSpec{{"data"}, {"model"}});
  CHECK(result.leaves[2].spec == PartitionSpec{{"model"}, {"data"}});
  CHECK(result.leaves[3].spec == PartitionSpec{{"model"}});
  CHECK(result.leaves[1].rule == 0U);
  CHECK(result.leaves[3].rule == 1U);
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  for (const RuleUse& use : result.rules) counts.emplace_back(use.matches, use.decides);
  CHECK(counts ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 2}, {3, 1}, {3, 2}, {3, 0}, {0, 0}});
  CHECK(result.rules[2].text == "embed -> data");
  CHECK(result.rules[2].place.pointer == "/rules/2");
}

// The tree above, by hand: of `in`, embed fell back to data by rule 2 and mlp took model by rule 0.
TEST_CASE("Every dimension names its own rule") {
  const ParameterTree tree = tree_of(R"({
    "in": {"shape": [32, 64], "logical_axes": ["embed", "mlp"]},
    "kv": {"shape": [4, 32], "logical_axes": ["layers", "embed"]},
    "scale": {"shape": [32], "logical_axes": ["embed"]},
    "step": {"shape": [7], "logical_axes": ["kv"]}})");
  const SpecAssignment result = assign("logical_axes", tree, R"({"rules": [
    ["mlp", "model"], ["embed", "model"], ["embed", "data"]]})");
  const auto by = [&](std::size_t leaf) { return decided_by(result.leaves[leaf], result.rules); };
  CHECK(by(0) == "dimension 0 by rule 2: embed -> data; dimension 1 by rule 0: mlp -> model");
  CHECK(by(1) == "dimension 1 by rule 1: embed -> model");
  CHECK(by(2) == "rule 1: embed -> model");
  CHECK(by(3) == "no rule");
  CHECK(result.leaves[0].dimension_rules == std::vector<RuleIndex>{2, 0});
  CHECK(result.leaves[1].dimension_rules == std::vector<RuleIndex>{std::nullopt, 1});
}

TEST_CASE("t5x's own rules are not the user's") {
  const SpecAssignment result =
      assign("t5x", tree_of("{}"), R"({"extra_rules": [["expert", "data"]]})");
  REQUIRE(result.rules.size() > 1);
  CHECK(result.rules.front().built_in);
  CHECK_FALSE(result.rules.back().built_in);
}

TEST_CASE("The reason says who has the axis") {
  const LogicalAssignment taken = apply_logical_axis_rules(
      logical_names({"mlp", "embed"}), rules_of(R"([["mlp", "x"], ["embed", ["y", "x"]]])"), place);
  CHECK(taken.reason == "rule \"embed -> (y, x)\" skipped: x is taken by dimension 0");
  CHECK(apply_logical_axis_rules(logical_names({"kv"}), {}, place).reason == "no rule for \"kv\"");
}

// flax/linen/spmd.py: a tuple in the place of a logical name is left as it is.
TEST_CASE("Tuples in a logical spec are mesh axes, and in use") {
  const PartitionSpec names{SpecEntry{"x", "y"}, SpecEntry{"a"}};
  const LogicalAxisRules rules = rules_of(R"([["a", "y"], ["a", "z"]])");
  CHECK(apply_logical_axis_rules(names, rules, place).spec ==
        PartitionSpec{SpecEntry{"x", "y"}, SpecEntry{"z"}});
}

TEST_CASE("Constraints: no rules and no_constraint leave the array alone") {
  const LogicalAxisRules rules = rules_of(R"([["a", "x"], ["b", "x"]])");
  const PartitionSpec names = logical_names({"a", "b"});
  using enum RulesFallback;
  CHECK_FALSE(with_logical_constraint(names, {}, raise_error, place).has_value());
  CHECK_FALSE(with_logical_constraint(names, rules, no_constraint, place).has_value());
  // b has a rule, but its axis is taken: an error all the same.
  CHECK_THROWS_AS(with_logical_constraint(names, rules, raise_error, place), RuleError);
  CHECK(with_logical_constraint(names, rules, axis_is_unsharded, place) ==
        PartitionSpec{{"x"}, {}});
}

// flax/core/spmd.py: a dictionary keeps the place of a key's first entry and the value of its last.
TEST_CASE("flax.nnx composes rules like dictionaries") {
  const auto text = [](const LogicalAxisRules& rules) {
    std::string all;
    for (const LogicalAxisRule& rule : rules) all += to_string(rule) + "; ";
    return all;
  };
  const LogicalAxisRules twice = rules_of(R"([["a", "x"], ["b", "y"], ["a", "z"]])");
  CHECK(text(composite_rules(twice, {})) == "a -> x; b -> y; a -> z; ");
  CHECK(text(composite_rules(twice, rules_of(R"([["c", null], ["a", "z"]])"))) ==
        "a -> z; b -> y; c -> None; ");
  CHECK_THROWS_AS(composite_rules(twice, rules_of(R"([["a", "x"]])")), RuleError);
}

TEST_CASE("flax.nnx renames without looking at axes in use, and keeps what has no rule") {
  const ParameterTree tree =
      tree_of(R"({"w": {"shape": [8, 8, 8], "logical_axes": ["a", "b", "model"]}})");
  const SpecAssignment result = assign("flax_nnx", tree, R"({
    "rules": [["a", "data"], ["b", "data"]], "context_rules": [["c", "model"]]})");
  CHECK(result.leaves[0].spec == PartitionSpec{{"data"}, {"data"}, {"model"}});
  CHECK(result.rules[0].text == "c -> model");
}

// t5x/partitioning.py: fully sharded parameters are activation 1, parameters 2.
TEST_CASE("t5x's standard rules") {
  const ParameterTree tree = tree_of(R"({
    "in": {"shape": [32, 64], "logical_axes": ["embed", "mlp"]},
    "out": {"shape": [16, 32], "logical_axes": ["extra", "embed"]}})");
  const auto specs = [&](const char* strategy) {
    std::string all;
    for (const LeafSpec& leaf : assign("t5x", tree, strategy).leaves) all += to_string(leaf.spec);
    return all;
  };
  CHECK(specs("{}") == "P(None, model)P(None, None)");
  CHECK(specs(R"({"activation_dims": 2})") == "P(None, model)P(None, model)");
  CHECK(specs(R"({"param_dims": 2})") == "P(data, model)P(None, data)");
  CHECK(specs(R"({"activation_dims": 2, "param_dims": 2})") == "P(data, model)P(None, model)");
  CHECK(specs(R"({"extra_rules": [["extra", "data"]]})") == "P(None, model)P(data, None)");
  CHECK_THROWS_AS(specs(R"({"param_dims": 3})"), RuleError);
}

// haliax/partitioning.py: infer_resource_partitions leaves plain arrays P(None), scalars P().
TEST_CASE("haliax looks every axis up on its own") {
  const ParameterTree tree = tree_of(R"({
    "a": {"shape": [12, 8], "logical_axes": ["embed", "kv"]},
    "b": {"shape": [3, 4]},
    "c": {"shape": []}})");
  const SpecAssignment result = assign("haliax", tree, R"({"mapping": {"embed": "data"}})");
  CHECK(result.leaves[0].spec == PartitionSpec{{"data"}, {}});
  CHECK(result.leaves[0].reason ==
        "dimension 0 does not divide: 12 over 8; rounded it would be 16");
  CHECK(result.leaves[1].spec == PartitionSpec{{}});
  CHECK(result.leaves[2].spec.empty());
  CHECK(result.rules[0].text == "embed -> data");
}

}  // namespace
}  // namespace shardsim::logical_axes_test
