// Parameter trees as workloads.
#include <catch2/catch.hpp>
#include <map>

#include <algorithm>

#include "experiments/experiment.hpp"

#include "base/json.hpp"

namespace shardsim::tree_test {
namespace {

// 8 x 4 over data=4, recorded with its placement.
const char* const recorded = R"({"workload": {"tree": {
    "schema": "shardsim/parameter-tree/1", "mesh": {"data": 4},
    "parameters": {"w": {"shape": [8, 4], "spec": ["data"]}, "b": {"shape": [4]}}}}})";

Experiment read(const Json& json) { return read_experiments(json, "dir/a.json").at(0); }

Mesh mesh_of(const Experiment& experiment) {
  const auto* tree = std::get_if<TreeSubject>(&experiment.subject);
  return (tree != nullptr ? tree->partitioning
                          : std::get<ModelStep>(experiment.subject).partitioning)
      .mesh;
}

TEST_CASE("a tree brings its mesh and specs where the experiment has none") {
  const Experiment e = read(Json::parse(recorded));
  CHECK(mesh_of(e) == Mesh({{"data", 4}}));
  const SpecTable table = experiment_specs(e);
  REQUIRE(table.parameters.size() == 2);
  CHECK(table.parameters[1].spec == PartitionSpec{{"data"}, {}});
  CHECK(table.parameters[0].spec == PartitionSpec{{}});  // nothing recorded: whole
  CHECK(*read(*e.resolved).resolved == *e.resolved);
}

TEST_CASE("what the experiment says goes before what the tree recorded") {
  Json json = Json::parse(recorded);
  json["mesh"] = {{"x", 2}};
  json["strategy"] = Json::parse(R"({"name": "match_partition_rules", "min_size": 0,
                                     "rules": [["w", [null, "x"]], [".*", []]]})");
  const SpecTable table = experiment_specs(read(json));
  CHECK(table.parameters[1].spec == PartitionSpec{{}, {"x"}});
}

TEST_CASE("a tree has specs, not a step") {
  CHECK_THROWS_WITH(compile_experiment(read(Json::parse(recorded))),
                    Catch::Contains("dir/a.json: /workload/tree: a parameter tree has no "
                                    "operations"));
}

TEST_CASE("a tree without placement needs mesh and strategy") {
  Json json = Json::parse(recorded);
  json["workload"]["tree"].erase("mesh");
  json["workload"]["tree"]["parameters"]["w"].erase("spec");
  CHECK_THROWS_WITH(read(json), Catch::StartsWith("dir/a.json: missing key \"mesh\": give --mesh"));
  json["workload"]["batch"] = 8;
  CHECK_THROWS_WITH(read(json), "dir/a.json: /workload: unknown key \"batch\"; known are tree");
}

// Every instance of a repeated block is a leaf: rules that tell them apart have no plan yet.
TEST_CASE("rule systems see every layer of a model") {
  Json json = Json::parse(R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 64},
      "mesh": {"data": 2}, "strategy": {"name": "match_partition_rules", "min_size": 0,
      "rules": [["h\\.3\\.attn\\.c_attn\\.weight", ["data"]], [".*", []]]}})");
  CHECK_THROWS_WITH(compile_experiment(read(json)),
                    Catch::Contains("the rules tell layers of one repeated block apart"));
  json["strategy"]["rules"][0][0] = "h\\.\\d+\\.attn\\.c_attn\\.weight";
  const SpecTable table = experiment_specs(read(json));
  // 12 layers of GPT-2 small.
  CHECK(table.rules[0].decides == 12);
}

// optax.adamw has the state of adam: moments of every layer's parameter as it is stored, fp32 here,
// a count, step and key. c_fc.weight is [768, 3072]: its moments lie as rule 0 says.
TEST_CASE("the train state of a model") {
  const Json json = Json::parse(R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 64,
      "precision": {"parameters": "fp32", "master": "none"}},
      "mesh": {"data": 2}, "strategy": {"name": "match_partition_rules", "min_size": 0,
      "rules": [["c_fc\\.weight", ["data"]], [".*", []]]}})");
  const SpecTable parameters = experiment_specs(read(json));
  const SpecTable state =
      experiment_specs(read(json), parse_state_optimizer("adamw", {"--train-state", ""}));
  std::int64_t leaves = 0;
  for (const ParameterSharding& row : parameters.parameters) leaves += row.instances;
  CHECK(std::ssize(state.parameters) == 3 * leaves + 3);
  const auto moment = std::find_if(
      state.parameters.begin(), state.parameters.end(), [](const ParameterSharding& row) {
        return row.name == "opt_state/0/mu/transformer.h.0.mlp.c_fc.weight";
      });
  REQUIRE(moment != state.parameters.end());
  CHECK(to_string(moment->spec) == "P(data, None)");
  CHECK(moment->dtype == DType::f32);
}

// numpy.reshape((2, -1)) of 8 devices is [2, 4]; of 9 it is a ValueError.
TEST_CASE("a mesh as big_vision's configurations write it") {
  Json json = Json::parse(R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 64},
      "devices": 8, "mesh": [["replica", 2], ["data", -1]], "strategy": "dp"})");
  CHECK(mesh_of(read(json)) == Mesh({{"replica", 2}, {"data", 4}}));
  json["mesh"] = {{"data", -1}};
  CHECK(mesh_of(read(json)) == Mesh({{"data", 8}}));
  json["mesh"] = {{"replica", 2}, {"data", -1}};
  json["devices"] = 9;
  CHECK_THROWS_WITH(read(json), Catch::Contains("/devices: 9 devices are no multiple of the 2 of "
                                                "the axes beside \"data\""));
  json.erase("devices");
  CHECK_THROWS_WITH(read(json), Catch::Contains("/mesh: axis \"data\" of size -1 takes what the "
                                                "others leave of \"devices\", which is not given"));
  json["mesh"] = {{"replica", -1}, {"data", -1}};
  CHECK_THROWS_WITH(read(json), Catch::Contains("-1 is out of range"));
  json["mesh"] = Json::parse(R"([["data", 2], ["data", 4]])");
  CHECK_THROWS_WITH(read(json), Catch::Contains("axis \"data\" is given twice"));
  json["mesh"] = Json::parse(R"([2, 4])");
  CHECK_THROWS_WITH(read(json), Catch::Contains("/mesh: expected axes and their sizes"));
}

// The step keeps moments in bf16 here, and of parameters in bf16 a master copy in fp32.
TEST_CASE("the train state of a model has the dtypes of its step") {
  const Json json = Json::parse(R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 64,
      "precision": {"moments": "bf16"}},
      "mesh": {"data": 2}, "strategy": {"name": "match_partition_rules", "rules": [[".*", []]]}})");
  const SpecTable state =
      experiment_specs(read(json), parse_state_optimizer("adam", {"--train-state", ""}));
  std::map<std::string, DType> dtypes;
  for (const ParameterSharding& row : state.parameters) dtypes[row.name] = row.dtype;
  CHECK(dtypes.at("transformer.wte.weight") == DType::bf16);
  CHECK(dtypes.at("master/transformer.wte.weight") == DType::f32);
  CHECK(dtypes.at("opt_state/0/mu/transformer.wte.weight") == DType::bf16);
  CHECK(dtypes.at("opt_state/0/count") == DType::i32);
}

}  // namespace
}  // namespace shardsim::tree_test
