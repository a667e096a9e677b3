#include "strategies/spec_table.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "strategies/coverage.hpp"
#include "strategies/rules/rule_error.hpp"

namespace shardsim {
namespace {

ParameterLeaf leaf(std::string name, std::vector<std::int64_t> shape) {
  ParameterLeaf result;
  result.name = std::move(name);
  result.shape = std::move(shape);
  return result;
}

SpecTable specs(const ParameterTree& tree, const Mesh& mesh, const std::string& strategy) {
  const Json json = parse_json(strategy, "a.json");
  return tree_specs(tree, mesh, read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh));
}

const Mesh mesh({{"data", 4}, {"model", 2}});
const ParameterTree tree{"toy",
                         {leaf("layers/0/w", {1024, 512}), leaf("layers/1/w", {1024, 512}),
                          leaf("layers/1/b", {3}), leaf("head", {10, 6})}};

TEST_CASE("layers that are alike are one row") {
  const SpecTable table =
      specs(tree, mesh, R"({"name": "rules", "rules": [{"pattern": "w", "spec": ["data"]}]})");
  REQUIRE(table.parameters.size() == 4);
  const auto folded = fold_layers(table.parameters);
  REQUIRE(folded.size() == 3);
  CHECK(folded[0].name == "layers/{}/w");
  CHECK(folded[0].instances == 2);
  CHECK(folded[1].name == "layers/1/b");  // alone: keeps its number
  CHECK(folded[2].name == "head");
}

TEST_CASE("layers that differ in their specs stay apart") {
  const SpecTable table = specs(
      tree, mesh,
      R"({"name": "match_partition_rules", "rules": [["0/w", ["data"]], [".*", ["model"]]]})");
  CHECK(fold_layers(table.parameters).size() == 4);
}

// head: 10 over data=4 in shards of 3, so 12 rows; 6 over model=2 divides.
TEST_CASE("a row says shard, padding and copies") {
  const SpecTable table =
      specs(tree, mesh,
            R"({"name": "rules", "rules": [{"pattern": "head", "spec": ["data", "model"]}]})");
  const ParameterSharding& head = table.parameters.back();
  CHECK(head.shard_shape == std::vector<std::int64_t>{3, 3});
  CHECK(head.bytes_per_device == Bytes(3 * 3 * 4));
  CHECK(head.padding_per_device == Bytes(6));  // a sixth of 36 bytes
  CHECK(head.assigned_by == "rule 0: head");
}

TEST_CASE("coverage names what the rules miss") {
  const SpecTable table =
      specs(tree, mesh, R"({"name": "logical_axes", "rules": [["embed", "data"]]})");
  // Leaves without logical names are decided by no rule, and the rule is of no use.
  Coverage coverage = coverage_of(table);
  CHECK(coverage.unmatched == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(coverage.unused == std::vector<std::size_t>{0});
  // 1024 x 512 x 4 bytes are 2 MiB, whole on every device.
  CHECK(coverage.large_replicated == std::vector<std::size_t>{0, 1});

  coverage = coverage_of(specs(tree, mesh, R"({"name": "match_partition_rules", "min_size": 0,
      "rules": [["w$", ["data", "model"]], ["0/w", ["model"]], [".*", ["model"]]]})"));
  CHECK(coverage.unmatched.empty());
  CHECK(coverage.shadowed == std::vector<std::size_t>{1});
  CHECK(coverage.large_replicated.empty());
  REQUIRE(coverage.indivisible.size() == 1);  // b: 3 over model=2
  CHECK(coverage.indivisible[0].row == 2);
  CHECK(coverage.indivisible[0].shards == 2);
}

TEST_CASE("recipes that split by meaning are refused for a tree") {
  CHECK_THROWS_WITH(
      specs(tree, mesh, R"({"name": "tp"})"),
      Catch::Contains("a.json: /strategy: strategy \"tp\" splits by what a dimension"));
}

TEST_CASE("fsdp of a tree shards dimension 0, or the largest that divides") {
  const SpecTable first =
      specs(tree, mesh, R"({"name": "fsdp", "shard_axis": "data", "batch_axes": ["data"]})");
  CHECK(first.parameters[3].spec == PartitionSpec{{"data"}, {}});
  const SpecTable largest = specs(tree, mesh, R"({"name": "fsdp", "shard_axis": "data",
      "batch_axes": ["data"], "shard_dimension": "largest"})");
  CHECK(largest.parameters[3].spec == PartitionSpec{{}, {}});  // neither 10 nor 6 divides by 4
  CHECK(largest.parameters[0].spec == PartitionSpec{{"data"}, {}});
}

}  // namespace
}  // namespace shardsim
