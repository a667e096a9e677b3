// match_partition_rules, pattern strings, automatic specs and sub-mesh indices beyond the golden
// cases: what they report, what they refuse, and laws. Expectations follow from the headers.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <set>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/analyze_sharding.hpp"
#include "strategies/rules/auto_spec.hpp"
#include "strategies/rules/match_partition_rules.hpp"
#include "strategies/rules/pattern_spec.hpp"
#include "strategies/rules/submesh_index.hpp"
#include "tests/strategies/rules/arbitrary_sharding.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

SpecAssignment assign(const std::string& system, const std::string& tree,
                      const std::string& strategy) {
  const Json tree_json = parse_json(tree, "tree.json");
  const Json strategy_json = parse_json(strategy, "a.json");
  const Mesh mesh({{"dp", 2}, {"fsdp", 4}, {"tp", 8}});
  const ParameterTree leaves{"", read_parameter_leaves({tree_json, {"tree.json", ""}})};
  return find_rule_system(system)->assign(leaves, mesh, {strategy_json, {"a.json", "/strategy"}});
}

std::vector<std::string> reasons(const SpecAssignment& assignment) {
  std::vector<std::string> texts;
  for (const LeafSpec& leaf : assignment.leaves) texts.push_back(leaf.reason);
  return texts;
}

}  // namespace

TEST_CASE("Rules are counted: who would match, who decides, who is shadowed") {
  const SpecAssignment assignment =
      assign("match_partition_rules",
             R"({"a": {"kernel": {"shape": [256, 256]}, "bias": {"shape": [16384]}},
                 "step": {"shape": []}})",
             R"({"rules": [["kernel|bias", ["fsdp", "tp"]], ["bias", [null]], ["x", []]],
                 "batch_axes": ["dp"]})");
  REQUIRE(assignment.rules.size() == 3);
  CHECK(assignment.rules[0].text == "kernel|bias -> P(fsdp, tp)");
  CHECK(assignment.rules[0].place.pointer == "/strategy/rules/0");
  CHECK(assignment.rules[0].matches == 2);
  CHECK(assignment.rules[0].decides == 2);
  CHECK(assignment.rules[1].matches == 1);
  CHECK(assignment.rules[1].decides == 0);
  CHECK(assignment.rules[2].matches == 0);
  // In the order of the tree: a/bias, a/kernel, step.
  CHECK(assignment.leaves[0].rule == std::size_t{0});
  CHECK_FALSE(assignment.leaves[2].rule);
  CHECK(reasons(assignment) ==
        std::vector<std::string>{"spec of 2 entries cut to 1 dimension", "", ""});
}

TEST_CASE("A leaf below the threshold says so, unless its rule would not have split it") {
  const std::string tree = R"({"a": {"shape": [4096]}, "b": {"shape": [4096]}})";
  const std::string rules = R"("rules": [["a", ["fsdp"]], ["b", [null]]])";
  CHECK(reasons(assign("match_partition_rules", tree, "{" + rules + "}")) ==
        std::vector<std::string>{"4,096 elements are fewer than min_size=16384", ""});
  CHECK(reasons(assign("match_partition_rules", tree, "{\"min_size\": 4096," + rules + "}")) ==
        std::vector<std::string>{"", ""});
}

TEST_CASE("A leaf without a rule is an error that names it") {
  CHECK_THROWS_WITH(
      assign("match_partition_rules", R"({"w": {"shape": [2]}})", R"({"rules": [["x", []]]})"),
      "a.json: /strategy/rules: ValueError: no rule matches parameter \"w\"; a last rule [\".*\", "
      "[]] would keep it whole");
  CHECK_THROWS_WITH(
      assign("match_partition_rules", R"({"w": {"shape": [2]}})", R"({"rules": [["x"]]})"),
      "a.json: /strategy/rules/0: ValueError: a rule is [pattern, spec]");
}

TEST_CASE("A pattern string is a list of rules, one per alternative") {
  const SpecAssignment assignment =
      assign("eformer_pattern",
             R"({"attn": {"shape": [8]}, "mlp": {"shape": [8]}, "norm": {"shape": [8]}})",
             R"({"pattern": "attn|mlp->fsdp..tp", "default": [null]})");
  CHECK(assignment.rules[1].text == "mlp -> P(fsdp, None, tp)");
  CHECK(assignment.leaves[1].rule == std::size_t{1});
  CHECK(to_string(assignment.leaves[2].spec) == "P(None)");
}

TEST_CASE("Automatic specs say why a leaf stays whole") {
  const std::string tree =
      R"({"a": {"shape": [64, 64]}, "b": {"shape": [8, 7]}, "c": {"shape": [67, 67]}})";
  const SpecAssignment assignment = assign("auto_partition_spec", tree, "{}");
  CHECK(to_string(assignment.leaves[0].spec) == "P(tp, fsdp)");
  CHECK(reasons(assignment) == std::vector<std::string>{"",
                                                        "56 elements are fewer than min_size=64",
                                                        "no dimension divides by any of the axes"});
  CHECK_THROWS_WITH(assign("auto_partition_spec", tree, R"({"names": ["fsdb"]})"),
                    "a.json: /strategy: KeyError: unknown axis \"fsdb\", did you mean \"fsdp\"?");
}

// numpy.argsort([-16, -16, -30, -30]) is [2, 3, 0, 1] where it is stable and [3, 2, 1, 0] in numpy
// 2.4.6 with AVX-512.
TEST_CASE(
    "Of equal dimensions the first is split, or the one that numpy's instructions leave first") {
  const std::string tree = R"({"a": {"shape": [16, 16, 30, 30]}})";
  const auto spec = [&](const std::string& strategy) {
    return to_string(assign("auto_partition_spec", tree, strategy).leaves[0].spec);
  };
  CHECK(spec(R"({"names": ["dp"]})") == "P(None, None, dp, None)");
  CHECK(spec(R"({"names": ["dp"], "argsort": "simd"})") == "P(None, None, None, dp)");
}

// auto_spec.py 4b17881: the one removes repetitions from its names, the other copies them.
TEST_CASE("Only vrn_auto_partition_spec takes a repeated name twice") {
  ParameterLeaf leaf;
  leaf.shape = {8, 8};
  const Mesh mesh({{"dp", 2}});
  AutoSpecOptions options;
  options.names = {{"dp"}, {"dp"}};
  CHECK(to_string(auto_partition_spec(leaf, mesh, options, {})) == "P(dp, None)");
  options.keep_duplicates = true;
  CHECK(to_string(auto_partition_spec(leaf, mesh, options, {})) == "P(dp, dp)");
}

TEST_CASE("The checks of validate_sharding_config") {
  ParameterLeaf leaf;
  leaf.shape = {2048, 6};
  const ParameterTree tree{"", {leaf}};
  const Mesh mesh({{"fsdp", 4}});
  const auto issues = validate_sharding_config(tree, {{{}, {"fsdp"}}}, mesh);
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].kind == ShardingIssue::Kind::indivisible);
  CHECK(issues[0].dim == 1);
  CHECK_THROWS_AS(validate_sharding_config(tree, {{{}, {}, {"fsdp"}}}, mesh), RuleError);
  CHECK_THROWS_AS(validate_sharding_config(tree, {{{"tp"}}}, mesh), RuleError);
}

TEST_CASE("Automatic specs use an axis once and divide evenly", "[property]") {
  CHECK(rc::check([] {
    const Mesh mesh = *arbitrary_mesh();
    const ParameterLeaf leaf = *arbitrary_leaf();
    AutoSpecOptions options;
    options.min_size = 1;
    options.reverse = *rc::gen::arbitrary<bool>();
    const PartitionSpec spec = auto_partition_spec(leaf, mesh, options, {});
    const Sharding sharding = to_sharding(spec, leaf.shape.size(), mesh, {});  // or it throws
    for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
      RC_ASSERT(leaf.shape[d] % Mesh::size_of(sharding.dims[d].axes) == 0);
    }
  }));
}

TEST_CASE("Sub-mesh indices number the devices", "[property]") {
  CHECK(rc::check([] {
    const Mesh mesh = *arbitrary_mesh();
    AxisNames names;
    for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
    std::vector<std::int64_t> in_order = submesh_device_index(names, mesh, {});
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      RC_ASSERT(in_order[i] == static_cast<std::int64_t>(i));
    }
    std::reverse(names.begin(), names.end());
    const std::vector<std::int64_t> reversed = submesh_device_index(names, mesh, {});
    RC_ASSERT(std::set<std::int64_t>(reversed.begin(), reversed.end()).size() == in_order.size());
    RC_ASSERT(axes_size(names, mesh, {}) == mesh.devices());
  }));
}

// constraints.py 5c877a3 looks mesh.shape[name] up for every entry that is not None, be the leaf
// ever so small: KeyError. An entry of None is never looked up.
TEST_CASE("analyze_sharding_strategy looks every axis up in the mesh") {
  ParameterLeaf leaf;
  leaf.shape = {8, 8};
  const Mesh mesh({{"fsdp", 4}});
  const auto type_of_refusal = [&](const PartitionSpec& spec) -> std::string {
    try {
      static_cast<void>(eformer_analysis({"", {leaf}}, {spec}, mesh));
    } catch (const RuleError& error) {
      return error.type();
    }
    return "";
  };
  CHECK(type_of_refusal({{}, {"tp"}}) == "KeyError");
  CHECK(type_of_refusal({{"fsdp"}, {}, {"tp"}}) == "KeyError");  // beyond the rank as well
  CHECK(type_of_refusal({{"fsdp"}, {}}).empty());
}

// PartitionAxis at 5c877a3, worked out: batch_axis is (fsdp, dp), generation_batch_axis None,
// generation_head_axis follows the tensor axis of the mesh; a name that is no field is an axis.
TEST_CASE("Specs may name fields of the PartitionAxis of March 2025") {
  const auto spec_of = [](const std::string& spec, const std::string& axis) {
    const Json tree = parse_json(R"({"w": {"shape": [256, 256, 8]}})", "tree.json");
    const Json strategy = parse_json(
        "{\"rules\": [[\"w\", " + spec + "]], \"partition_axis\": " + axis + "}", "a.json");
    return to_string(find_rule_system("match_partition_rules")
                         ->assign({"", read_parameter_leaves({tree, {"tree.json", ""}})},
                                  Mesh({{"dp", 2}, {"fsdp", 4}, {"tp", 8}}),
                                  {strategy, {"a.json", ""}})
                         .leaves[0]
                         .spec);
  };
  CHECK(spec_of(R"(["batch_axis", "head_axis"])", "{}") == "P((fsdp, dp), tp)");
  CHECK(spec_of(R"(["generation_batch_axis", "generation_head_axis", "dp"])", "{}") ==
        "P(None, tp, dp)");
  CHECK(spec_of(R"([["fully_sharded_data_parallel_axis", "dp"], "vocab_axis"])",
                R"({"tensor_parallel_axis": "model"})") == "P((fsdp, dp), model)");
  CHECK_THROWS_WITH(spec_of(R"([["batch_axis", "tp"]])", "{}"),
                    Catch::Contains("a.json: /rules/0/1/0: ValueError"));
  CHECK_THROWS_WITH(spec_of("[]", R"({"decode_batch_axis": "dp"})"),
                    Catch::Contains("TypeError: PartitionAxis has no \"decode_batch_axis\""));
}

// auto_spec.py: optimize_sharding_for_memory leaves alone what is smaller than the limit and takes
// names in the mesh's order otherwise; vrn_auto_partition_spec takes a name that is listed twice
// twice (here JAX then refuses it).
TEST_CASE("eformer's other automatic specs by keys of auto_partition_spec") {
  const std::string tree = R"({"small": {"shape": [255, 256]}, "w": {"shape": [256, 512]}})";
  const SpecAssignment limited =
      assign("auto_partition_spec", tree, R"({"memory_limit": "256 KiB"})");
  CHECK(limited.leaves[0].spec.empty());
  CHECK(limited.leaves[0].reason == "255.0 KiB are less than memory_limit=256.0 KiB");
  CHECK(to_string(limited.leaves[1].spec) == "P(fsdp, dp)");
  CHECK(limited.leaves[1].tactic ==
        "optimize_sharding_for_memory: by sizes of dimensions and axes");
  const SpecAssignment twice =
      assign("auto_partition_spec", tree, R"({"names": ["tp", "tp"], "keep_duplicates": true})");
  CHECK(to_string(twice.leaves[1].spec) == "P(tp, tp)");
  CHECK(
      to_string(assign("auto_partition_spec", tree, R"({"names": ["tp", "tp"]})").leaves[1].spec) ==
      "P(None, tp)");
  CHECK_THROWS_WITH(
      assign("auto_partition_spec", tree, R"({"memory_limit": "1 MiB", "reverse": true})"),
      Catch::Contains("/strategy/reverse: optimize_sharding_for_memory, which "
                      "\"memory_limit\" asks for, has no such option"));
}
