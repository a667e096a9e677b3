// Rules of logical axes in MaxText's files. Those of base.yml, in any of its versions, say what the
// strategy "xla" does: shards over fsdp (and what else splits the batch or the sequence), splits
// over tensor. On a mesh on which a file's rules come to the same they are these; others become the
// strategy "maxtext" with them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/maxtext_models.hpp"

namespace shardsim {
namespace {

using AxisSet = std::set<std::string>;

const std::vector<std::string> shard_axes = {"fsdp",    "fsdp_transpose",      "sequence",
                                             "context", "context_usp_ulysses", "expert"};
const std::vector<std::string> expert_shard_axes = {"fsdp", "fsdp_transpose", "sequence", "context",
                                                    "context_usp_ulysses"};
const std::vector<std::string> model_axes = {"tensor", "tensor_transpose", "tensor_sequence",
                                             "autoregressive"};
const std::vector<std::string> width_axes = {"fsdp_transpose", "tensor", "tensor_transpose",
                                             "tensor_sequence", "autoregressive"};

struct UsualRule {
  std::string_view name;
  const std::vector<std::string>& axes;
  bool of_experts = false;
};
// base.yml of maxtext 0.2.5 and of 2023 to 2026; norms, which are small, are left out.
const std::vector<UsualRule> usual_rules = {{"embed", shard_axes},
                                            {"embed_vocab", shard_axes},
                                            {"embed_attn", shard_axes},
                                            {"mlp", width_axes},
                                            {"heads", model_axes},
                                            {"q_heads", model_axes},
                                            {"kv_heads", model_axes},
                                            {"vocab", model_axes},
                                            {"embed_moe", expert_shard_axes, true},
                                            {"mlp_moe", width_axes, true}};

// configs/custom_mesh_and_rule/NAME.yml of maxtext 0.2.5: their rules for parameters, and those for
// the batch.
const std::vector<std::pair<std::string_view, std::string_view>> custom_rules = {
    {"cp-as-ep",
     R"([["activation_batch", ["data", "fsdp", "expert"]], ["activation_length", ["context"]],
         ["embed_vocab", ["fsdp", "context", "expert"]], ["q_lora", ["fsdp", "context", "expert"]],
         ["kv_lora", ["fsdp", "context", "expert"]], ["exp", ["context", "expert"]],
         ["embed_moe", ["fsdp"]], ["embed_router", ["fsdp"]],
         ["embed", ["fsdp", "context", "expert"]], ["embed_attn", ["fsdp", "context", "expert"]]])"},
    {"ep-as-cp",
     R"([["activation_batch", ["data", "fsdp"]], ["activation_length", ["expert"]],
         ["embed_vocab", ["fsdp", "expert"]], ["q_lora", ["fsdp"]], ["kv_lora", ["fsdp"]],
         ["exp", "expert"], ["embed_moe", ["fsdp"]], ["embed_router", ["fsdp"]],
         ["embed", ["fsdp", "expert"]], ["embed_attn", ["fsdp", "expert"]]])"},
    {"ep-as-dp",
     R"([["activation_batch", ["data", "fsdp", "fsdp_transpose", "expert"]],
         ["embed_vocab", ["fsdp", "fsdp_transpose"]], ["q_lora", ["fsdp"]], ["kv_lora", ["fsdp"]],
         ["exp", "expert"], ["mlp_moe", ["fsdp_transpose"]], ["embed_moe", ["fsdp"]],
         ["embed_router", ["fsdp"]], ["mlp", ["fsdp_transpose"]],
         ["embed", ["fsdp", "fsdp_transpose"]], ["embed", ["fsdp"]],
         ["embed_attn", ["fsdp", "fsdp_transpose"]]])"},
    {"fsdp-as-dp-for-attn",
     R"([["activation_batch", ["data", "fsdp", "fsdp_transpose", "expert"]],
         ["embed_vocab", ["fsdp", "fsdp_transpose"]], ["q_lora", ["expert"]],
         ["kv_lora", ["expert"]], ["embed_attn", ["expert"]], ["exp", "expert"],
         ["mlp_moe", ["fsdp_transpose"]], ["embed_moe", ["fsdp"]], ["embed_router", []],
         ["mlp", ["fsdp_transpose"]], ["embed", ["fsdp", "fsdp_transpose"]], ["embed", ["fsdp"]]])"},
    {"pipeline-large-moe",
     R"([["activation_batch", ["data", "fsdp", "expert"]], ["activation_length", ["context"]],
         ["mlp", ["tensor"]], ["mlp_moe", ["tensor"]], ["vocab", ["tensor"]],
         ["heads", ["tensor"]], ["q_heads", ["tensor"]], ["kv_heads", ["tensor"]],
         ["embed", ["fsdp", "expert"]], ["embed_attn", ["fsdp", "expert"]],
         ["embed_vocab", ["fsdp", "expert"]], ["embed_moe", ["fsdp"]], ["embed_router", ["fsdp"]],
         ["q_lora", ["fsdp"]], ["kv_lora", ["fsdp"]], ["norm", ["tensor"]], ["layers", "stage"],
         ["exp", "expert"]])"},
    {"pure-fsdp",
     R"([["activation_batch", ["fsdp"]], ["embed", ["fsdp"]], ["embed_attn", ["fsdp"]],
         ["embed_vocab", ["fsdp"]], ["embed_moe", ["fsdp"]], ["embed_router", ["fsdp"]],
         ["q_lora", ["fsdp"]], ["kv_lora", ["fsdp"]]])"},
    {"shard-exp-on-fsdp",
     R"([["activation_batch", ["data", "fsdp", "fsdp_transpose", "expert"]],
         ["activation_length", ["context"]],
         ["embed_vocab", ["fsdp", "fsdp_transpose", "context", "expert"]],
         ["q_lora", ["fsdp", "fsdp_transpose", "expert"]],
         ["kv_lora", ["fsdp", "fsdp_transpose", "expert"]], ["exp", ["expert", "fsdp"]],
         ["mlp_moe", ["fsdp_transpose"]], ["embed_moe", ["context"]],
         ["embed_router", ["context"]], ["mlp", ["fsdp_transpose"]],
         ["embed", ["fsdp", "context", "expert"]],
         ["embed_attn", ["fsdp", "context", "expert"]], ["layers", "stage"]])"}};

AxisSet on_mesh(const std::vector<std::string>& axes, const Json& mesh) {
  AxisSet found;
  for (const std::string& axis : axes) {
    if (integer_at(mesh, axis, 1) > 1) found.insert(axis);
  }
  return found;
}

std::vector<std::string> axes_in(const Json& axes) {
  if (axes.is_string()) return {axes.get<std::string>()};
  std::vector<std::string> names;
  for (const Json& one : axes) {
    if (one.is_string()) names.push_back(one.get<std::string>());
  }
  return names;
}

// The axes of its first rule; null: it has none.
Json axes_of(const Json& rules, std::string_view name) {
  for (const Json& rule : rules) {
    if (rule[0] == name) return rule[1];
  }
  return Json();
}

// "rules" of the file, or those that it names.
Json rules_of(const Facts& facts, std::string& fact, bool& is_whole) {
  if (const std::string name = facts.text("arg.custom_rules"); !name.empty()) {
    fact = "arg.custom_rules";
    is_whole = true;
    std::vector<std::string_view> known;
    for (const auto& [one, rules] : custom_rules) {
      if (one == name) return Json::parse(rules);
      known.push_back(one);
    }
    facts.fail(fact, fmt::format("rules \"{}\" are not known here, {} are; import the file of "
                                 "these rules with what the run has otherwise",
                                 name, fmt::join(known, ", ")));
  }
  fact = "arg.rules";
  is_whole = facts.has("arg.mesh_axes") || facts.flag("arg.replaces_rules");
  if (!facts.has("arg.rules")) return Json::array();
  for (const JsonReader& rule :
       JsonReader(facts.at("arg.rules"), facts.place("arg.rules")).elements()) {
    const bool is_pair =
        rule.json().is_array() && rule.json().size() == 2 && rule.json()[0].is_string() &&
        (rule.json()[1].is_array() || rule.json()[1].is_string() || rule.json()[1].is_null());
    if (!is_pair) rule.fail("expected a logical axis and mesh axes: [embed, [fsdp, expert]]");
  }
  return facts.at("arg.rules");
}

struct OtherRule {
  std::string name;
  AxisSet given, usual;
};

std::optional<OtherRule> first_other(const Json& rules, bool is_whole, bool routed,
                                     const Json& mesh) {
  for (const UsualRule& rule : usual_rules) {
    if (rule.of_experts && !routed) continue;
    const Json given = axes_of(rules, rule.name);
    if (given.is_null() && (!is_whole || rule.name == "heads" || rule.name == "embed_attn" ||
                            rule.name == "embed_vocab" || rule.of_experts)) {
      continue;  // names that came with versions
    }
    const AxisSet theirs = on_mesh(axes_in(given), mesh);
    const AxisSet usual = on_mesh(rule.axes, mesh);
    if (theirs != usual) return OtherRule{std::string(rule.name), theirs, usual};
  }
  if (const Json exp = axes_of(rules, "exp"); routed && !exp.is_null()) {
    const AxisSet theirs = on_mesh(axes_in(exp), mesh), usual = on_mesh({"expert"}, mesh);
    if (theirs != usual) return OtherRule{"exp", theirs, usual};
  }
  return std::nullopt;
}

std::string words(const AxisSet& axes) {
  return axes.empty() ? "nothing" : fmt::format("{}", fmt::join(axes, ", "));
}

}  // namespace

std::optional<Json> maxtext_rules(const Facts& facts, const Json& mesh, bool routed) {
  std::string fact;
  bool is_whole = false;
  const Json rules = rules_of(facts, fact, is_whole);
  if (rules.empty()) return std::nullopt;
  const AxisSet batch = on_mesh({"data", "fsdp", "fsdp_transpose", "expert"}, mesh);
  const Json given_batch = axes_of(rules, "activation_batch");
  const AxisSet split = on_mesh(axes_in(axes_of(rules, "activation_length")), mesh);
  const AxisSet sequence = on_mesh({"sequence", "context"}, mesh);
  if (!given_batch.is_null() && on_mesh(axes_in(given_batch), mesh) != batch) {
    facts.fail(fact, fmt::format("the batch over {}, not over {}, is not simulated",
                                 words(on_mesh(axes_in(given_batch), mesh)), words(batch)));
  }
  const bool says_length = !axes_of(rules, "activation_length").is_null();
  if (says_length && split != sequence) {
    facts.fail(fact, fmt::format("the sequence over {}, not over {}, is not simulated",
                                 words(split), words(sequence)));
  }
  const auto other = first_other(rules, is_whole, routed, mesh);
  if (!other) return std::nullopt;
  if (!sequence.empty() || integer_at(mesh, "stage", 1) > 1) {
    facts.fail(fact, fmt::format("\"{}\" over {}, not over {}: rules of one's own with stages or a "
                                 "sequence that is split are not simulated",
                                 other->name, words(other->given), words(other->usual)));
  }
  Json kept = Json::array();
  for (const Json& rule : rules) {
    if (!rule[0].get<std::string>().starts_with("activation_")) {
      kept.push_back({rule[0], rule[1].is_null() ? Json::array() : rule[1]});
    }
  }
  return kept;
}

}  // namespace shardsim
