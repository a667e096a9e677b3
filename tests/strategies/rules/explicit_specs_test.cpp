#include "strategies/rules/explicit_specs.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

const Place place{"test", ""};

SpecAssignment assign(const char* strategy) {
  const Json tree = parse_json(R"({"kernel": {"shape": [8, 4]}, "zero": {"shape": [6]}})", "test");
  const Json json = parse_json(strategy, "test");
  return assign_explicit_specs({"test", read_parameter_leaves({tree, place})},
                               Mesh({{"x", 4}, {"y", 2}}), {json, place});
}

TEST_CASE("Specs by name, as list or as text") {
  const SpecAssignment result =
      assign(R"json({"specs": {"zero": ["x"], "kernel": "PartitionSpec(('y', 'x'), None)"}})json");
  CHECK(result.leaves[0].spec == PartitionSpec{{"y", "x"}, {}});
  CHECK(result.leaves[0].rule == 1U);
  CHECK(result.leaves[0].reason.empty());
  CHECK(result.leaves[1].spec == PartitionSpec{{"x"}});
  CHECK(result.leaves[1].reason == "dimension 0 does not divide: 6 over 4");
  CHECK(result.rules[0].text == "zero -> P(x)");
}

TEST_CASE("The default is for leaves that are not listed") {
  const SpecAssignment result = assign(R"({"specs": {"kernel": ["x"]}, "default": []})");
  CHECK(result.leaves[1].spec.empty());
  CHECK(result.rules[1].text == "default -> P()");
  CHECK(result.rules[1].matches == 2);
  CHECK(result.rules[1].decides == 1);
}

TEST_CASE("What explicit specs refuse") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(assign(R"({"specs": {"kernel": []}})"),
                    Contains("no spec for parameter \"zero\""));
  CHECK_THROWS_WITH(assign(R"({"specs": {"kernle": []}, "default": []})"),
                    Contains("/specs/kernle") && Contains("did you mean"));
  // NamedSharding's own refusals, by their type.
  CHECK_THROWS_WITH(assign(R"({"specs": {"kernel": ["x", "x"]}, "default": []})"),
                    Contains("DuplicateSpecError"));
  CHECK_THROWS_WITH(assign(R"({"specs": {"zero": ["x", null]}, "default": []})"),
                    Contains("ValueError") && Contains("/specs/zero"));
}

}  // namespace
}  // namespace shardsim
