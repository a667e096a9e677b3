#include "strategies/specs/placed_tree.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim::placed_tree_test {

namespace {

PlacedTree read(const std::string& members) {
  const Json document =
      parse_json(R"({"schema": "shardsim/parameter-tree/1", )" + members + "}", "a.json");
  return read_placed_tree(JsonReader(document, {"a.json", ""}));
}

std::string error_of(const std::string& members) {
  try {
    static_cast<void>(read(members));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string two_by_four = R"("mesh": {"data": 2, "model": 4}, )";

}  // namespace

TEST_CASE("a tree's mesh and specs are read, leaf by leaf") {
  const PlacedTree placed = read(two_by_four + R"("parameters": {
    "b": [{"shape": [8, 4], "spec": [["model", "data"], null]}, {"shape": [3]}],
    "a": {"shape": [768, 1000], "spec": [null, "model"]}, "c": {"shape": [], "spec": []}})");
  CHECK(placed.mesh == Mesh({{"data", 2}, {"model", 4}}));
  REQUIRE(placed.specs.size() == 4);
  CHECK(placed.specs[0] == PartitionSpec{{}, {"model"}});  // of "a": leaves are sorted
  CHECK(placed.specs[1] == PartitionSpec{{"model", "data"}, {}});
  CHECK(placed.specs[2] == std::nullopt);     // none recorded,
  CHECK(placed.specs[3] == PartitionSpec{});  // which is not P()
}

TEST_CASE("a mesh without specs and a tree without either are fine") {
  const std::string parameters = R"("parameters": {"a": {"shape": [8]}})";
  CHECK(read(two_by_four + parameters).specs == std::vector<std::optional<PartitionSpec>>(1));
  CHECK(read(parameters).mesh == std::nullopt);
}

// The conditions are NamedSharding's; the exception types those that jax raises.
TEST_CASE("a spec that does not fit mesh and tensor is refused") {
  const auto with = [](const std::string& spec, const std::string& mesh = two_by_four) {
    return error_of(mesh + R"("parameters": {"a": {"shape": [8, 8], "spec": )" + spec + "}}");
  };
  CHECK(with(R"(["modle"])") ==
        "a.json: /parameters/a/spec: ValueError: axis \"modle\" of P(modle) is not in the mesh "
        "(data, model), did you mean \"model\"?");
  CHECK(with(R"(["data", "data"])") ==
        "a.json: /parameters/a/spec: DuplicateSpecError: axis \"data\" is used twice in P(data, "
        "data)");
  CHECK(with(R"([null, null, "data"])") ==
        "a.json: /parameters/a/spec: ValueError: P(None, None, data) has 3 entries for 2 "
        "dimensions");
  CHECK(with(R"([{"unconstrained": true}])") ==
        "a.json: /parameters/a/spec: ValueError: P(UNCONSTRAINED): UNCONSTRAINED is no sharding");
  CHECK(with(R"("data")") == "a.json: /parameters/a/spec: expected an array, found a string");
  CHECK(with(R"(["data"])", "") ==
        "a.json: /parameters/a/spec: a spec needs the mesh that it refers to, and \"mesh\" is "
        "missing");
  CHECK(error_of(R"("mesh": {"data": 0}, "parameters": {})") ==
        "a.json: /mesh/data: 0 is out of range, must be from 1 to 2147483648");
}

TEST_CASE("reading what was written gives the same placed tree") {
  const PlacedTree placed = read(two_by_four + R"("parameters": {
    "a": {"shape": [8, 4], "spec": [["model", "data"], null]}, "b": {"shape": [3]},
    "c": {"shape": [], "spec": []}})");
  const Json document = placed_tree_to_json(placed);
  const PlacedTree again = read_placed_tree(JsonReader(document, {"b.json", ""}));
  CHECK(again.mesh == placed.mesh);
  CHECK(again.specs == placed.specs);
}

TEST_CASE("other formats give a tree without places") {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/tiny-llama.safetensors";
  const PlacedTree placed = read_placed_tree_file(file);
  CHECK(placed.mesh == std::nullopt);
  CHECK(placed.specs == std::vector<std::optional<PartitionSpec>>(5));
}

}  // namespace shardsim::placed_tree_test
