// MaxText's changes to rules and specs.
#include "strategies/rules/maxtext.hpp"

#include <catch2/catch.hpp>

#include <rapidcheck.h>

#include "base/json.hpp"
#include "sharding/named_sharding.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim::maxtext_test {
namespace {

const Place place{"test", ""};
const Mesh mesh({{"data", 2}, {"fsdp", 4}, {"one", 1}, {"tensor", 3}});

std::string spec_of_leaf(const char* options) {
  const Json tree =
      parse_json(R"({"w": {"shape": [12, 6], "logical_axes": ["embed", "mlp"]}})", "test");
  Json strategy = parse_json(options, "test");
  strategy["rules"] =
      parse_json(R"([["embed", ["data", "fsdp", "one"]], ["mlp", "tensor"]])", "test");
  const SpecAssignment result = find_rule_system("maxtext")->assign(
      {"test", read_parameter_leaves({tree, place})}, mesh, {strategy, place});
  return to_string(result.leaves[0].spec) + " " + result.leaves[0].reason;
}

// 12 over data x fsdp = 8 does not divide; over data alone it does.
TEST_CASE("MaxText's options") {
  CHECK(spec_of_leaf("{}") == "P((data, fsdp, one), tensor) ");
  CHECK(spec_of_leaf(R"({"remove_size_one_axes": true})") == "P((data, fsdp), tensor) ");
  CHECK(spec_of_leaf(R"({"fit": "per_axis", "remove_size_one_axes": true})") ==
        "P(data, tensor) dimension 0 does not divide: 12 over 8");
  CHECK(spec_of_leaf(R"({"fit": "whole_entry"})") ==
        "P(None, tensor) dimension 0 does not divide: 12 over 8");
  CHECK_THROWS_AS(spec_of_leaf(R"({"fit": "refuse"})"), RuleError);
  CHECK(spec_of_leaf(R"({"model_rules": [["embed", "tensor"]]})") ==
        "P(None, tensor) rule \"embed -> tensor\" skipped: tensor is taken by dimension 1");
}

// maxtext/utils/sharding.py asks mesh.shape.get(axis, 1): an axis that the mesh lacks goes as well.
TEST_CASE("Axes of one device and unknown axes go") {
  const PartitionSpec spec{{"one"}, {"data", "nowhere"}, {}, {"nowhere"}};
  CHECK(remove_size_one_mesh_axes(spec, mesh) == PartitionSpec{{}, {"data"}, {}, {}});
}

TEST_CASE("A spec that was adjusted divides its shape, and is left alone from then on") {
  CHECK(rc::check([] {
    const PartitionSpec spec{{"data", "fsdp"}, {"tensor", "one"}};
    const auto shape =
        *rc::gen::container<std::vector<std::int64_t>>(2, rc::gen::inRange<std::int64_t>(0, 30));
    const PartitionSpec once = adjust_for_indivisible_shape(spec, shape, mesh, place);
    check_divides(shape, to_sharding(once, 2, mesh, place), place);  // what it throws fails
    RC_ASSERT(adjust_for_indivisible_shape(once, shape, mesh, place) == once);
  }));
}

TEST_CASE("Rules that replace others come last") {
  const LogicalAxisRules base{{"a", {"x"}, place}, {"b", {"y"}, place}, {"a", {"z"}, place}};
  const LogicalAxisRules merged = merge_logical_axis_rules(base, {{"a", {"y"}, place}});
  REQUIRE(merged.size() == 2);
  CHECK(to_string(merged[0]) == "b -> y");
  CHECK(to_string(merged[1]) == "a -> y");
}

TEST_CASE("Axes and dimensions that are not there") {
  CHECK_THROWS_AS(adjust_for_indivisible_shape({{"nowhere"}}, {4}, mesh, place), RuleError);
  CHECK_THROWS_AS(remove_incompatible_axes({{"data"}}, {4}, mesh, {1}, true, place), RuleError);
}

// Python's spec[-1] and shape[-1], each from its own end: entry 1 and dimension 3, of which 6 over
// fsdp=4 does not divide; -2 is entry 0 and dimension 2, of which 4 over data=2 does.
TEST_CASE("Negative dimensions count from the end of the spec and of the shape") {
  const PartitionSpec spec{{"data"}, {"fsdp"}};
  const std::vector<std::int64_t> shape{5, 5, 4, 6};
  CHECK(remove_incompatible_axes(spec, shape, mesh, {-1, -2}, true, place) ==
        PartitionSpec{{"data"}, {}});
  CHECK_THROWS_AS(remove_incompatible_axes(spec, shape, mesh, {-3}, true, place), RuleError);
}

}  // namespace
}  // namespace shardsim::maxtext_test
