// Specs by what dimensions mean. Expectations: eformer's tests test_partition_axis.py and
// test_partition_manager_api.py at 4b17881 where a case says so, else the headers.
#include "strategies/rules/partition_manager.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "tests/strategies/rules/arbitrary_sharding.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr auto later = PartitionAxis::Version::later;

AxisRule rule(const std::string& text) {
  const Json json = parse_json(text, "rule");
  return read_axis_rule({json, {"rule", ""}});
}

std::vector<AxisRule> dims(const std::string& text) { return *rule(text).list(); }

PartitionAxis axis_with(const std::string& overrides, PartitionAxis::Version version = later) {
  const Json json = parse_json(overrides, "a.json");
  return {version, JsonReader(json, {"a.json", "/partition_axis"})};
}

std::string spec(const PartitionManager& manager, const std::string& text,
                 std::string_view mode = train_mode) {
  return to_string(manager.resolve(dims(text), mode, {}));
}

SpecAssignment assign(const std::string& tree, const std::string& strategy) {
  const Json tree_json = parse_json(tree, "tree.json");
  const Json strategy_json = parse_json(strategy, "a.json");
  const Mesh mesh({{"dp", 1}, {"fsdp", 4}, {"model", 2}, {"sp", 1}});
  const ParameterTree leaves{"", read_parameter_leaves({tree_json, {"tree.json", ""}})};
  return find_rule_system("partition_manager")
      ->assign(leaves, mesh, {strategy_json, {"a.json", "/strategy"}});
}

}  // namespace

TEST_CASE("Fields follow the mesh's axes, and twins the fields that they stand in for") {
  const std::string overrides = R"({"tensor_parallel_axis": "model", "head_axis": "x"})";
  CHECK(*axis_with(overrides).find("vocab_axis") == rule(R"("model")"));
  CHECK(*axis_with(overrides).find("decode_head_axis") == rule(R"("x")"));
  const PartitionAxis old = axis_with(overrides, PartitionAxis::Version::march_2025);
  CHECK(*old.find("generation_head_axis") == rule(R"("model")"));
  CHECK(old.find("kv_head_axis") == nullptr);
}

TEST_CASE("\"...\" asks for the default") {
  CHECK(*axis_with(R"({"head_axis": "..."})").find("head_axis") == rule(R"("tp")"));
  CHECK_THROWS_WITH(
      axis_with(R"({"expert_gate_axis": "..."})"),
      "a.json: /partition_axis/expert_gate_axis: ValueError: \"expert_gate_axis\" has "
      "no default that \"...\" could stand for");
  CHECK_THROWS_WITH(axis_with(R"({"heads_axis": "tp"})"),
                    "a.json: /partition_axis/heads_axis: TypeError: PartitionAxis has no "
                    "\"heads_axis\", did you mean \"head_axis\"?");
}

// test_resolve_accepts_dynamic_sharding_axes_class
TEST_CASE("A decode field that is set replaces its twin when generating") {
  const PartitionManager manager(axis_with(R"({"decode_query_sequence_axis": "dp"})"), {});
  const std::string hidden = R"(["__BATCH__", "__QUERY_LENGTH__", "__EMBED__"])";
  CHECK(spec(manager, hidden, mode_of_dimension(1, {{2, 1, 32}}, {})) == "P((fsdp, dp), dp, tp)");
  CHECK(spec(manager, hidden, mode_of_dimension(-2, {{2, 8, 32}}, {})) == "P((fsdp, dp), sp, tp)");
  CHECK(spec(manager, R"([["__QUERY_LENGTH__", "tp"]])", decode_mode) == "P((dp, tp))");
  CHECK(spec(PartitionManager(PartitionAxis(later), {}), hidden, decode_mode) ==
        "P((fsdp, dp), sp, tp)");
  CHECK_THROWS_AS(mode_of_dimension(3, {{2, 1, 32}}, {}), RuleError);
}

// test_register_can_override_existing_semantic_axis_mapping
TEST_CASE("Known names can be overridden, and given back") {
  SemanticAxes names;
  CHECK_THROWS_AS(names.add("__DATA_PARALLEL__", rule(R"("x")"), {}, false, {}), RuleError);
  names.add("__DATA_PARALLEL__", rule(R"("expert_parallel_axis")"), {}, true, {});
  const std::string dp = R"(["__DATA_PARALLEL__"])";
  CHECK(spec(PartitionManager(PartitionAxis(later), names), dp) == "P(ep)");
  names.remove("__DATA_PARALLEL__", false, {});
  CHECK(spec(PartitionManager(PartitionAxis(later), names), dp) == "P(dp)");
}

TEST_CASE("Names that lead nowhere") {
  SemanticAxes names;
  names.add("__SELF__", rule(R"("__SELF__")"), {}, false, {});
  names.add("__NONE__", {}, {}, false, {});
  names.add("__BOTH__", rule(R"(["batch_axis", "tp"])"), {}, false, {});
  const PartitionManager manager(PartitionAxis(later), names);
  CHECK_THROWS_WITH(spec(manager, R"(["__SELF__"])"), Catch::Contains("in a circle"));
  CHECK_THROWS_WITH(spec(manager, R"(["__NONE__"])"), Catch::Contains("unknown semantic axis"));
  CHECK_THROWS_WITH(spec(manager, R"(["__EMBD__"])"),
                    Catch::Contains("did you mean \"__EMBED__\"?"));
  CHECK_THROWS_WITH(spec(manager, R"(["__BOTH__"])"),
                    Catch::Contains("[[\"fsdp\",\"dp\"],\"tp\"]"));
  CHECK_THROWS_WITH(spec(manager, R"(["tp"])"), Catch::Contains("unknown semantic axis \"tp\""));
}

// jax 0.10.2: P((None, "model")) is made, and NamedSharding refuses it as an axis that the mesh
// lacks (two nulls as one used twice). eformer 0.0.99 drops the entry where it corrects.
TEST_CASE("A null in a list is refused where the spec meets the mesh, or dropped") {
  const std::string tree = R"({"q": {"shape": [256, 256]}, "o": {"shape": [256, 256]}})";
  const std::string rules =
      R"("rules": [["q", ["__FSDP__", ["__EXPERT_GATE__", "model"]]], ["k", [[null, null]]],
                   ["o", [[null]]]]})";
  const SpecAssignment assignment = assign(tree, "{" + rules);
  CHECK(to_string(assignment.leaves[0].spec) == "P(None)");
  const Mesh mesh({{"dp", 1}, {"fsdp", 4}, {"model", 2}, {"sp", 1}});
  CHECK_THROWS_WITH(
      to_sharding(assignment.leaves[1].spec, 2, mesh, {"a.json", "/q"}),
      "a.json: /q: ValueError: axis \"(null)\" of P(fsdp, ((null), model)) is not in the "
      "mesh (dp, fsdp, model, sp)");
  const SpecAssignment corrected = assign(tree, "{\"correct\": true," + rules);
  CHECK(to_string(corrected.leaves[0].spec) == "P()");
  CHECK(to_string(corrected.leaves[1].spec) == "P(fsdp, None)");
}

// ColumnWise and RowWise of EasyDeL with the tensor axis renamed.
TEST_CASE("Rules by names of shardings") {
  const std::string tree = R"({"q": {"shape": [256, 256]}, "o": {"shape": [256, 256]},
                               "e": {"shape": [4, 256, 255]}, "norm": {"shape": [16384]}})";
  const std::string rules =
      R"("rules": [["q", "ColumnWise"], ["o$", "RowWise"], ["e", "ExpertColumnWise"],
                   [".*", "Replicated"]],
         "partition_axis": {"tensor_parallel_axis": "model"})";
  const SpecAssignment assignment = assign(tree, "{" + rules + "}");
  CHECK(to_string(assignment.leaves[0].spec) == "P(ep, fsdp, model)");
  CHECK(to_string(assignment.leaves[1].spec) == "P(None)");
  CHECK(to_string(assignment.leaves[2].spec) == "P(model, (fsdp, sp))");
  CHECK(to_string(assignment.leaves[3].spec) == "P((fsdp, sp), model)");

  const SpecAssignment corrected = assign(tree, "{\"correct\": true," + rules + "}");
  CHECK(to_string(corrected.leaves[0].spec) == "P(None, fsdp, None)");
  CHECK(corrected.leaves[0].reason == "P(ep) dropped: it does not divide 4, or is not in the mesh");
  CHECK(to_string(corrected.leaves[1].spec) == "P()");
  CHECK(corrected.leaves[1].reason.empty());
  CHECK(corrected.leaves[3].spec == assignment.leaves[3].spec);

  CHECK_THROWS_WITH(
      assign(tree, R"({"rules": [[".*", "Colwise"]]})"),
      Catch::Contains("/strategy/rules/0/1: ValueError: unknown sharding \"Colwise\""));
}

TEST_CASE("A corrected spec fits, and correcting it again changes nothing", "[property]") {
  CHECK(rc::check([] {
    const Mesh mesh = *arbitrary_mesh();
    const ParameterLeaf leaf = *arbitrary_leaf();
    const PartitionSpec asked = *arbitrary_spec(mesh, *rc::gen::inRange<std::size_t>(1, 4));
    const PartitionSpec once = corrected_spec(asked, leaf.shape, mesh, {});
    const Sharding sharding = to_sharding(once, leaf.shape.size(), mesh, {});  // or it throws
    for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
      RC_ASSERT(leaf.shape[d] % Mesh::size_of(sharding.dims[d].axes) == 0);
    }
    RC_ASSERT(corrected_spec(once, leaf.shape, mesh, {}) == once);
  }));
}
