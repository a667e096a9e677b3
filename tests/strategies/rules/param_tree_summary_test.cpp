// The summary figures of real configurations (tests/golden/param_trees) from the specs in them.
// The figures in the files were computed independently, when the trees were made.
#include <catch2/catch.hpp>

#include "golden.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/spec_summary.hpp"

using namespace shardsim;
using shardsim::test::golden_files;
using shardsim::test::read_golden_mesh;

namespace {

// The files' leaves hold only shape and spec; the dtype is that of the document.
ParameterTree read_tree(const JsonReader& document) {
  const auto dtype = parse_dtype(document.at("dtype").string());
  REQUIRE(dtype);
  return {document.at("name").string(), read_parameter_leaves(document.at("params"), *dtype)};
}

Json names_of(const std::vector<std::size_t>& leaves, const ParameterTree& tree) {
  Json names = Json::array();
  for (const std::size_t leaf : leaves) names.push_back(tree.leaves[leaf].name);
  return names;
}

}  // namespace

TEST_CASE("Summaries of the parameter trees") {
  for (const std::string& file : golden_files("param_trees")) {
    const Json json = load_json(file);
    const JsonReader document(json, {file, ""});
    const ParameterTree tree = read_tree(document);
    const Mesh mesh = read_golden_mesh(document.at("mesh"));
    std::vector<Sharding> shardings;
    for (const ParameterLeaf& leaf : tree.leaves) {
      const JsonReader spec = document.at("params").at(leaf.name).at("spec");
      shardings.push_back(
          to_sharding(read_partition_spec(spec), leaf.shape.size(), mesh, spec.place()));
    }
    const SpecSummary summary = summarize_specs(tree, shardings, mesh);
    const Json actual = {{"total_params", summary.parameters},
                         {"leaves", summary.leaves},
                         {"params_per_device_max", summary.max_parameters_per_device},
                         {"bytes_per_device", summary.max_bytes_per_device.count()},
                         {"replicated_params", summary.replicated_parameters},
                         {"sharded_leaves", summary.sharded_leaves},
                         {"indivisible_leaves", names_of(summary.indivisible, tree)}};
    INFO(file);
    for (const auto& [key, value] : json["summary"].items()) {
      INFO(key);
      CHECK(actual[key] == value);
    }
  }
}

TEST_CASE("EasyDeL's rules give the specs of its parameter trees") {
  const RuleSystem* system = find_rule_system("match_partition_rules");
  REQUIRE(system != nullptr);
  for (const std::string& file : golden_files("param_trees")) {
    const Json json = load_json(file);
    if (!json.contains("min_sharding_size")) continue;
    const JsonReader document(json, {file, ""});
    const ParameterTree tree = read_tree(document);
    const Json strategy = {{"rules", json["rules"]}, {"min_size", json["min_sharding_size"]}};
    const SpecAssignment assignment =
        system->assign(tree, read_golden_mesh(document.at("mesh")), {strategy, {file, ""}});
    INFO(file);
    for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
      INFO(tree.leaves[i].name);
      CHECK(to_json(assignment.leaves[i].spec) == json["params"][tree.leaves[i].name]["spec"]);
    }
  }
}
