#include "strategies/specs/spec_table.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/specs/coverage.hpp"
#include "strategies/specs/train_state.hpp"

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

// w$ takes both layers, 0/w is a special case of it that comes too late; the last rule would take
// everything and is a fallback, needed or not; "x" is nowhere.
TEST_CASE("warnings tell mistakes from fallbacks") {
  const SpecTable table = specs(tree, mesh, R"({"name": "match_partition_rules", "min_size": 0,
      "rules": [["w$", ["data"]], ["0/w", ["model"]], ["b|head", []], [".*", []], ["x", []]]})");
  CHECK(table.rules[1].shadowed_by == 0U);
  CHECK_FALSE(table.rules[3].shadowed_by);
  CHECK(table.warnings ==
        std::vector<std::string>{
            "no parameter is matched by rule 4 \"x -> P()\"",
            "rule 1 \"0/w -> P(model)\" never gets its turn: rule 0 \"w$ -> P(data)\" comes before "
            "it and matches every parameter that it matches"});
}

// Two layers of 2 MiB each are 4 MiB in all; head and b are small.
TEST_CASE("large parameters that are whole everywhere are a problem from a limit on") {
  const SpecTable table = specs(
      tree, mesh, R"({"name": "match_partition_rules", "rules": [[".*", [null]], ["zz", []]]})");
  const Coverage coverage = coverage_of(table);
  SpecLimits limits;
  CHECK(whole_problems(table, coverage, limits).empty());
  limits.max_whole = Bytes(4 * MiB);
  CHECK(whole_problems(table, coverage, limits).empty());
  limits.max_whole = Bytes(4 * MiB - 1);
  CHECK(whole_problems(table, coverage, limits) ==
        std::vector<std::string>{"2 parameters of 1.0 MiB or more, layers/0/w the largest, are "
                                 "whole on every device: 4.0 MiB on each, more than 4.0 MiB"});
  CHECK(unused_rule_problems(table, coverage, limits) ==
        std::vector<std::string>{"rule 1 \"zz -> P()\" matches nothing"});
  limits.may_be_unused.emplace_back("^zz", Place{});
  CHECK(unused_rule_problems(table, coverage, limits).empty());
  // Who asks for replicas gets them, up to what they are said to come to.
  const SpecTable replicas = specs(tree, mesh, R"({"name": "dp"})");
  CHECK(whole_problems(replicas, coverage_of(replicas), limits).size() == 1);
  CHECK(whole_problems(replicas, coverage_of(replicas), {}).empty());
  // Rules are there to split. 130 of 2 MiB are more than the 256 MiB that need no asking.
  Coverage many = coverage;
  for (int i = 0; i < 128; ++i) many.large_replicated.push_back(coverage.large_replicated.front());
  CHECK(whole_problems(table, many, {}).size() == 1);
}

// match_partition_rules returns P() for small leaves, the rule's own spec for others, however
// short; an axis of one device stays in it. What it places is said beside it.
TEST_CASE("specs are kept as the system returns them") {
  const Mesh unit({{"data", 4}, {"one", 1}});
  const SpecTable table = specs(
      tree, unit,
      R"({"name": "match_partition_rules", "rules": [["w", [["one", "data"]]], [".*", [null]]]})");
  CHECK(table.parameters[0].returned == PartitionSpec{{"one", "data"}});
  CHECK(table.parameters[0].spec == PartitionSpec{{"data"}, {}});
  CHECK(table.parameters[2].returned.empty());
  CHECK(table.parameters[2].spec == PartitionSpec{{}});
}

// shard_params splits dimension 1 of [3, 2048] over data=4; no rule is asked anywhere.
TEST_CASE("a tactic is named, not the rule that it does without") {
  const ParameterTree vectors{"toy", {leaf("w", {3, 2048}), leaf("b", {3})}};
  const SpecTable tutorial =
      specs(vectors, mesh, R"({"name": "fsdp_tutorial", "axis": "data", "min_weight_size": 16})");
  CHECK(tutorial.parameters[0].assigned_by == "shard_params: dimension 1 over data");
  CHECK(tutorial.parameters[1].assigned_by == "shard_params: whole");
  CHECK(coverage_of(tutorial).unmatched.empty());
  const SpecTable automatic = specs(vectors, mesh, R"({"name": "auto_partition_spec"})");
  CHECK(automatic.parameters[0].assigned_by ==
        "auto_partition_spec: by sizes of dimensions and axes");
}

SpecTable state_specs(const ParameterTree& params, const std::string& strategy) {
  const Json json = parse_json(strategy, "a.json");
  return train_state_specs(params, mesh, read_strategy(JsonReader(json, {"a.json", ""}), mesh),
                           parse_state_optimizer("adam", {}));
}

const ParameterSharding& row_of(const SpecTable& table, const std::string& name) {
  for (const ParameterSharding& row : table.parameters) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  return table.parameters.front();
}

// optax.adam: mu and nu of every parameter, a count; beside them step and key. w is 8 KiB over
// data=4: 2 KiB a device, three times with its moments; b of 12 B is whole, three times; count and
// step 4 B each, the key 8 B.
TEST_CASE("the whole train state") {
  const ParameterTree params{"toy", {leaf("b", {3}), leaf("w", {4, 512})}};
  const std::string strategy =
      R"({"name": "praxis", "weights": [["w", ["data", null]]], "batch_axes": ["data"]})";
  const SpecTable praxis = state_specs(params, strategy);
  CHECK(row_of(praxis, "opt_state/0/nu/w").spec == PartitionSpec{{"data"}, {}});
  CHECK(row_of(praxis, "opt_state/0/nu/w").assigned_by == "as its parameter");
  CHECK(row_of(praxis, "step").returned.empty());
  CHECK(row_of(praxis, "rng").returned == PartitionSpec{{}});
  const SpecSummary summary = summarize(praxis);
  CHECK(summary.max_bytes_per_device == Bytes(3 * 2048 + 3 * 12 + 4 + 4 + 8));
  CHECK(summary.communication == summarize(specs(params, mesh, strategy)).communication);
  CHECK(coverage_of(praxis).unmatched == std::vector<std::size_t>{0});
}

std::vector<std::string> slots(const std::string& optimizer) {
  std::vector<std::string> paths;
  for (const StateSlot& slot : parse_state_optimizer(optimizer, {"--train-state", ""}))
    paths.push_back(slot.path);
  return paths;
}

// Of optax 0.2.8, by jax.tree_util.tree_flatten_with_path of what init returns.
TEST_CASE("the state of a chain has the names of optax") {
  using Paths = std::vector<std::string>;
  CHECK(slots("adam") == Paths{"0/count", "0/mu", "0/nu"});
  CHECK(slots("adam(schedule)") == Paths{"0/count", "0/mu", "0/nu", "1/count"});
  CHECK(slots("adamw(1e-3)") == Paths{"0/count", "0/mu", "0/nu"});
  CHECK(slots("sgd").empty());
  CHECK(slots("sgd(schedule)") == Paths{"1/count"});
  CHECK(slots("sgd(schedule, momentum=0.9)") == Paths{"0/trace", "1/count"});
  CHECK(slots("momentum") == Paths{"0/trace"});
  CHECK(slots("lion(schedule)") == Paths{"0/count", "0/mu", "2/count"});
  CHECK(slots("rmsprop") == Paths{"0/nu"});
  CHECK(slots("chain(clip_by_global_norm(1.0), adamw(schedule))") ==
        Paths{"1/0/count", "1/0/mu", "1/0/nu", "1/2/count"});
  CHECK(
      slots("chain(clip, scale_by_adam, add_decayed_weights, scale_by_learning_rate(schedule))") ==
      Paths{"1/count", "1/mu", "1/nu", "3/count"});
  CHECK(slots("scale_by_schedule") == Paths{"count"});
  // mu_dtype is the first moment's alone.
  const StateOptimizer narrow = parse_state_optimizer("adamw(mu_dtype=bfloat16)", {});
  CHECK(narrow[1].dtype == DType::bf16);
  CHECK_FALSE(narrow[2].dtype);
  CHECK_THROWS_WITH(slots("chain(clip, adamx)"), Catch::Contains("unknown optimizer \"adamx\""));
  CHECK_THROWS_WITH(slots("chain"),
                    "--train-state: optimizer \"chain\": a chain has its transformations in "
                    "parentheses");
  CHECK_THROWS_WITH(slots("chain(clip"), Catch::Contains("a parenthesis is never closed"));
  CHECK_THROWS_WITH(slots("adam(1"), Catch::Contains("a parenthesis is never closed"));
  CHECK_THROWS_WITH(slots("adam)"), Catch::Contains("\")\" is too much"));
  CHECK_THROWS_WITH(slots("adam(mu_dtype=wide)"), Catch::Contains("\"wide\" is no dtype"));
}

// MaxText splits the batch over (data, fsdp, fsdp_transpose, expert). A dense matrix that fsdp and
// expert split is gathered over both; of experts, whose dimension "exp" lies over expert, only fsdp
// is gathered: 4 x 64 x 64 fp32 are 64 KiB, a device of fsdp=2 has half of two experts.
TEST_CASE("weights of experts are not gathered over the axis of their experts") {
  ParameterTree model{"moe", {leaf("dense", {64, 64}), leaf("wi", {4, 64, 64})}};
  model.leaves[0].logical_axes = LogicalAxes{"embed", "mlp"};
  model.leaves[1].logical_axes = LogicalAxes{"exp", "embed_moe", "mlp"};
  const Mesh devices({{"fsdp", 2}, {"expert", 2}});
  const SpecSummary summary = summarize(specs(model, devices, R"({"name": "maxtext", "rules": [
      ["exp", "expert"], ["embed_moe", ["fsdp"]], ["embed", ["fsdp", "expert"]]]})"));
  const AxisList fsdp = {devices.whole(0)};
  const AxisList both = {devices.whole(0), devices.whole(1)};
  const auto gathers = [](const SpecSummary& s) {
    std::vector<SpecCollective> found;
    for (const SpecCollective& c : s.communication) {
      if (c.kind == CollectiveKind::all_gather) found.push_back(c);
    }
    return found;
  };
  REQUIRE(gathers(summary).size() == 2);
  CHECK(gathers(summary)[0].axes == fsdp);
  CHECK(gathers(summary)[0].payload == Bytes(2 * 64 * 64 * 4));
  CHECK(gathers(summary)[1].axes == both);
  CHECK(gathers(summary)[1].payload == Bytes(64 * 64 * 4));
  CHECK(summary.kept_split == AxisList{devices.whole(1)});
  CHECK(summary.kept_split_leaves == 1);
}

// eformer's rules see the names of the state: here one of them keeps the second moment whole.
// Scalars are not asked about.
TEST_CASE("rules over names decide on the train state as well") {
  const ParameterTree params{"toy", {leaf("w", {256, 512})}};
  const SpecTable table = state_specs(params, R"({"name": "match_partition_rules",
      "rules": [["nu/w", [null]], ["w", ["data"]]]})");
  CHECK(row_of(table, "opt_state/0/mu/w").spec == PartitionSpec{{"data"}, {}});
  CHECK(row_of(table, "opt_state/0/nu/w").spec == PartitionSpec{{}, {}});
  CHECK(row_of(table, "opt_state/0/count").assigned_by == "scalar: rules are not asked");
  const SpecTable vision = state_specs(params, R"json({"name": "big_vision",
      "rules": [["opt/.*", "replicate"], [".*", "fsdp('data', min_size_to_shard_mb=0)"]]
})json");
  CHECK(row_of(vision, "w").spec == PartitionSpec{{}, {"data"}});
  CHECK(row_of(vision, "opt/0/mu/w").spec == PartitionSpec{{}, {}});
}

// ZeRO 1 of a tree, by hand: moments are split over the batch axis, parameters are not.
TEST_CASE("ZeRO splits the moments of a tree") {
  const ParameterTree params{"toy", {leaf("w", {256, 512})}};
  const SpecTable table =
      state_specs(params, R"({"name": "dp", "zero_stage": 1, "batch_axes": ["data"]})");
  CHECK(row_of(table, "w").spec == PartitionSpec{{}, {}});
  CHECK(row_of(table, "opt_state/0/mu/w").spec == PartitionSpec{{"data"}, {}});
}

}  // namespace
}  // namespace shardsim
