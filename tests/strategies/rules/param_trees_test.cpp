// Real configurations: every leaf's spec from the configuration's own rules, and the summary
// figures. tests/golden/param_trees/README.md says where they come from.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>

#include "base/json.hpp"
#include "golden.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/specs/spec_summary.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

// What set_sharding_params_v1 of paxml makes of w_df = [data, mdl], w_dnh = [data, mdl, null] and
// w_vd = [mdl, data] (the softmax weight is stored [d, v]). Layer norms have no mapping.
// StackedTransformerRepeated stacks the layers in front, a pipeline its stages before them.
const std::string pax_rules = R"({"name": "praxis",
  "weights": [
    ["combined_qkv/w$", [null, "data", "mdl", null]],
    ["combined_qkv/b$", [null, "mdl", null]],
    ["self_attention/(query|key|value)/w$", ["data", "mdl", null]],
    ["self_attention/post/w$", ["data", "mdl", null]],
    ["self_attention/post/b$", ["data"]],
    ["ffn_layer1(_gate)?/linear/w$", ["data", "mdl"]],
    ["ffn_layer2/linear/w$", ["mdl", "data"]],
    ["ffn_layer[12]/bias/b$", ["mdl"]],
    ["softmax/logits_ffn/linear/w$", ["data", "mdl"]],
    ["position_emb/emb_var$", ["data", "mdl"]]]})";
const std::string pax_repeated = R"([["/repeat/sub/x_layers_0/", [-1]]])";
const std::string pax_pipelined = R"([["/pipeline/body/repeat/sub/x_layers_0/", ["stage", -1]]])";

// The strategy object that stands for the rules of a file.
Json strategy_of(const Json& document) {
  if (document.contains("strategy"))
    return {{"name", "big_vision"}, {"rules", document["strategy"]}};
  if (document.contains("min_sharding_size"))
    return {{"name", "match_partition_rules"},
            {"rules", document["rules"]},
            {"min_size", document["min_sharding_size"]}};
  if (document.contains("logical_axes"))
    return {{"name", "logical_axes"}, {"rules", document["rules"]}};
  Json strategy = parse_json(pax_rules, "pax rules");
  const bool pipelined = document["mesh"][0][0] == "stage";
  strategy["repeat_prefix"] = parse_json(pipelined ? pax_pipelined : pax_repeated, "pax prefix");
  return strategy;
}

// The files' leaves hold only shape and spec; the dtype is that of the document.
ParameterTree read_tree(const JsonReader& document) {
  const auto dtype = parse_dtype(document.at("dtype").string());
  REQUIRE(dtype);
  ParameterTree tree{document.at("name").string(),
                     read_parameter_leaves(document.at("params"), *dtype)};
  const auto names = document.find("logical_axes");
  for (ParameterLeaf& leaf : tree.leaves) {
    if (!names) continue;
    leaf.logical_axes.emplace();
    for (const JsonReader& axis : names->at(leaf.name).elements())
      leaf.logical_axes->push_back(axis.is_null() ? std::nullopt : std::optional(axis.string()));
  }
  return tree;
}

Json names_of(const std::vector<std::size_t>& leaves, const ParameterTree& tree) {
  Json names = Json::array();
  for (const std::size_t leaf : leaves) names.push_back(tree.leaves[leaf].name);
  return names;
}

Json summary_of(const ParameterTree& tree, const SpecAssignment& specs, const Mesh& mesh) {
  std::vector<Sharding> shardings;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = tree.leaves[i];
    shardings.push_back(to_sharding(specs.leaves[i].spec, leaf.shape.size(), mesh, leaf.place));
  }
  const SpecSummary summary = summarize_specs(tree, shardings, mesh);
  return {{"total_params", summary.parameters},
          {"leaves", summary.leaves},
          {"params_per_device_max", summary.max_parameters_per_device},
          {"bytes_per_device", summary.max_bytes_per_device.count()},
          {"replicated_params", summary.replicated_parameters},
          {"sharded_leaves", summary.sharded_leaves},
          {"indivisible_leaves", names_of(summary.indivisible, tree)}};
}

}  // namespace

TEST_CASE("Real configurations: specs leaf by leaf, and their summaries", "[golden]") {
  for (const std::string& file : golden_files("param_trees")) {
    const Json json = load_json(file);
    const JsonReader document(json, {file, ""});
    const ParameterTree tree = read_tree(document);
    const Mesh mesh = read_golden_mesh(document.at("mesh"));
    const Json strategy = strategy_of(json);
    const RuleSystem* system = find_rule_system(strategy["name"].get<std::string>());
    REQUIRE(system != nullptr);
    const SpecAssignment specs = system->assign(tree, mesh, {strategy, {file, ""}});
    std::size_t passed = 0;
    std::string report;
    for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
      const Json& expected = json["params"][tree.leaves[i].name]["spec"];
      const Json actual = to_json(specs.leaves[i].spec);
      if (actual == expected) {
        ++passed;
      } else {
        report += "  " + tree.leaves[i].name + ": expected " + expected.dump() + ", actual " +
                  actual.dump() + "\n";
      }
    }
    std::cout << std::filesystem::path(file).filename().string() << ": " << passed << " passed, "
              << tree.leaves.size() - passed << " failed\n"
              << report;
    INFO(file);
    CHECK(passed == tree.leaves.size());
    const Json summary = summary_of(tree, specs, mesh);
    for (const auto& [key, value] : json["summary"].items()) {
      INFO(key);
      CHECK(summary[key] == value);
    }
  }
}
