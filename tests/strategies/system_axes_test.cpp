// Rule systems bring roles of axes and a way to split inputs. Expectations: rule-systems in words -
// PartitionAxis' defaults (eformer at 5c877a3: batch (fsdp, dp), sequence sp), praxis' train step
// (trainer_lib.py: inputs over all axes on the batch dimension, then resharded by rank).
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "model_step.hpp"
#include "strategies/specs/coverage.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

using Axes = std::vector<std::string>;

Strategy read(const std::string& text, const Mesh& mesh, const AxisRoles& roles = {}) {
  const Json json = parse_json(text, "a.json");
  return read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh, roles);
}

std::string refusal(const std::string& text, const Mesh& mesh, std::int64_t batch = 16) {
  try {
    Step step = usual_step();
    step.batch = batch;
    step.sequence = 128;
    const Json json = parse_json(text, "a.json");
    const Workload workload = training_workload("gpt2", step);
    (void)compile(workload, step, mesh, read_strategy({json, {"a.json", "/strategy"}}, mesh));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

CompiledStep gpt2_step(const std::string& strategy, const Mesh& mesh) {
  Step step = usual_step();
  step.batch = 16;
  step.sequence = 128;
  return compile_step("gpt2", mesh, strategy, step);
}

const Mesh praxis_mesh({{"replica", 2}, {"data", 2}, {"mdl", 2}});
const Mesh easydel_mesh({{"dp", 2}, {"fsdp", 4}, {"tp", 2}, {"sp", 2}});
const std::string gpt2_weights =
    R"("weights": [["c_fc.weight", ["data", "mdl"]], ["mlp.c_proj.weight", ["mdl", "data"]]])";

}  // namespace

TEST_CASE("Systems split batch and sequence over axes of their own names") {
  for (const char* name : {R"("match_partition_rules")", R"("partition_manager")",
                           R"("eformer_pattern")", R"("auto_partition_spec")"}) {
    const Strategy options = read(name, easydel_mesh);
    CHECK(options.batch_axes == Axes{"fsdp", "dp"});
    CHECK(options.sequence_axes == Axes{"sp"});
  }
  const std::string rules = R"({"name": "match_partition_rules", )";
  const Strategy fields = read(
      rules + R"("partition_axis": {"batch_axis": ["dp"], "sequence_axis": null}})", easydel_mesh);
  CHECK(fields.batch_axes == Axes{"dp"});
  CHECK(fields.sequence_axes.empty());
  const Strategy renamed = read(rules + R"("partition_axis": {"sequence_parallel_axis": "x",
                      "tensor_parallel_axis": "data"}})",
                                Mesh({{"fsdp", 2}, {"data", 2}, {"x", 2}}));
  CHECK(renamed.batch_axes == Axes{"fsdp"});  // data is for the model
  CHECK(renamed.sequence_axes == Axes{"x"});
  // Of a mesh with other names the batch goes by these.
  CHECK(read(rules + R"("min_size": 0})", Mesh({{"data", 4}, {"tp", 2}})).batch_axes ==
        Axes{"data"});
  CHECK(read(R"("praxis")", praxis_mesh).batch_axes == Axes{"replica", "data"});
  CHECK(read(R"({"name": "big_vision", "logical_axis_rules": [["act_batch", ["replica"]]]})",
             Mesh({{"replica", 2}, {"fsdp", 4}}))
            .batch_axes == Axes{"replica"});
  const Strategy maxtext = read(
      R"({"name": "maxtext", "rules": []})",
      Mesh({{"data", 2}, {"fsdp", 4}, {"expert", 2}, {"context", 2}, {"tensor_transpose", 2}}));
  CHECK(maxtext.batch_axes == Axes{"data", "fsdp", "expert"});
  CHECK(maxtext.sequence_axes == Axes{"context"});
  CHECK(read(R"({"name": "haliax", "mapping": {}})", Mesh({{"replica_dcn", 2}, {"data", 4}}))
            .batch_axes == Axes{"replica_dcn", "data"});
}

TEST_CASE("What the user says of axes goes before what the system says") {
  const std::string rules = R"({"name": "match_partition_rules", )";
  const Strategy given = read(rules + R"("batch_axes": ["dp", "sp"]})", easydel_mesh);
  CHECK(given.batch_axes == Axes{"dp", "sp"});
  CHECK(given.sequence_axes.empty());
  const Strategy none = read(rules + R"("sequence_axes": []})", easydel_mesh);
  CHECK(none.sequence_axes.empty());
  const Json json = parse_json(R"({"sp": "batch", "fsdp": "model"})", "a.json");
  const AxisRoles roles(JsonReader(json, {"a.json", "/roles"}), easydel_mesh);
  const Strategy told = read(R"("match_partition_rules")", easydel_mesh, roles);
  CHECK(told.batch_axes == Axes{"dp", "sp"});
  CHECK(told.sequence_axes.empty());
}

// Whole fp32 payloads: w over fsdp and sp is gathered over both and keeps tp; its gradient is
// scattered over them and all-reduced over dp. [64, 32] over tp=2 is 4,096 bytes.
TEST_CASE(
    "The summary of specs gathers over what splits batch or sequence, and over nothing else") {
  ParameterTree tree;
  tree.leaves.emplace_back();
  tree.leaves.back().name = "w";
  tree.leaves.back().shape = {64, 32};
  const auto lines = [&](const std::string& strategy, const Mesh& mesh) {
    Lines list;
    const SpecSummary summary = summarize(tree_specs(tree, mesh, read(strategy, mesh)));
    for (const SpecCollective& c : summary.communication) {
      list.push_back(std::string(name_of(c.kind)) + " " + std::to_string(c.group_size) + " " +
                     std::to_string(c.payload.count()));
    }
    std::sort(list.begin(), list.end());
    for (const std::string& name : mesh.names_of(summary.kept_split))
      list.push_back("kept " + name);
    return list;
  };
  CHECK(lines(R"({"name": "match_partition_rules", "min_size": 0,
                  "rules": [["w", [["fsdp", "sp"], "tp"]]]})",
              easydel_mesh) ==
        Lines{"all-gather 8 4096", "all-reduce 2 512", "reduce-scatter 8 4096", "kept tp"});
  CHECK(lines(R"({"name": "praxis", "weights": [["w", ["data", "mdl"]]]})", praxis_mesh) ==
        Lines{"all-gather 2 4096", "all-reduce 2 2048", "reduce-scatter 2 4096", "kept mdl"});
}

// Named or not, mdl is the model's.
TEST_CASE("gpt2 on praxis' mesh takes the same step with and without naming the model axis") {
  const auto lines = [](const std::string& keys) {
    return collectives(
        gpt2_step("{\"name\": \"praxis\", " + keys + gpt2_weights + "}", praxis_mesh).plan);
  };
  const Lines as_it_is = lines("");
  CHECK(lines(R"("model_axis": "mdl", )") == as_it_is);
  // A row-parallel product is summed over mdl: tensor parallelism, not FSDP over mdl.
  const std::string sum = "forward all-reduce mdl " + std::to_string(2 * 16 / 4 * 128 * 768);
  CHECK(std::count(as_it_is.begin(), as_it_is.end(), sum) == 12);
}

// Token numbers and labels, int64 [16, 128]: 2 rows on each of 8 devices, 4 on those of a pair. An
// eval and a train step like these with [16, 32] in int32, compiled by jax 0.10.2 for 8 CPU
// devices, begin with two all-gathers to s32[4,32] over groups [4,2]<=[8], which are those of mdl;
// the loss of eval is all-reduced as f32[].
TEST_CASE("praxis' inputs enter over the whole mesh and are gathered over mdl by their rank") {
  const std::string gather = "forward all-gather mdl " + std::to_string(4 * 128 * 8) + " int64";
  const auto gathers = [&](const std::string& keys) {
    const Lines lines = collectives(
        gpt2_step("{\"name\": \"praxis\", " + keys + gpt2_weights + "}", praxis_mesh).plan);
    return std::count(lines.begin(), lines.end(), gather);
  };
  const std::string mapping = R"("map_2d": [["replica", "data"], null])";
  CHECK(gathers("") == 2);
  CHECK(gathers("\"inputs_split_mapping\": {" + mapping + "}, ") == 2);
  CHECK(gathers(R"("batch_axes": ["replica", "data"], )") == 0);
  // Null leaves them: the batch lies over mdl, too, and weights are gathered over it.
  const Strategy null =
      read(R"({"name": "praxis", "weights": [], "inputs_split_mapping": {"map_2d": null}})",
           praxis_mesh);
  CHECK(null.batch_axes == Axes{"replica", "data", "mdl"});
  CHECK(gathers(R"("inputs_split_mapping": {"map_2d": null}, )") == 0);
  const Strategy sequence = read(
      R"({"name": "praxis", "inputs_split_mapping": {"map_2d": [[0, 1], "mdl"]}})", praxis_mesh);
  CHECK(sequence.batch_axes == Axes{"replica", "data"});
  CHECK(sequence.sequence_axes == Axes{"mdl"});
}

// The pairs are those of jax 0.10.2's collective-permute for P((mdl, data)) -> P(data) on 8 CPU
// devices, before an all-gather over mdl: shard i, on device i, belongs to data = i / 2.
TEST_CASE("Inputs that are read in another order of axes change places before they are gathered") {
  const Mesh mesh({{"mdl", 2}, {"data", 4}});
  const std::string strategy = "{\"name\": \"praxis\", \"inputs_split_mapping\": ";
  const Plan plan =
      gpt2_step(strategy + R"({"map_2d": ["data", null]}, )" + gpt2_weights + "}", mesh).plan;
  const std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {{0, 0}, {1, 4}, {2, 1}, {3, 5},
                                                                    {4, 2}, {5, 6}, {6, 3}, {7, 7}};
  const auto permutes = [&](const Collective& c) {
    return c.kind == CollectiveKind::collective_permute && c.source_targets == pairs &&
           c.payload == Bytes(2 * 128 * 8);
  };
  CHECK(count(plan, permutes) == 2);
  const Lines all = collectives(plan);
  const std::string gather = "forward all-gather mdl " + std::to_string(4 * 128 * 8) + " int64";
  CHECK(std::count(all.begin(), all.end(), gather) == 2);
}

TEST_CASE("What praxis refuses of inputs") {
  const auto with = [](const std::string& maps) {
    return "{\"name\": \"praxis\", \"inputs_split_mapping\": " + maps + ", " + gpt2_weights + "}";
  };
  CHECK(refusal(with(R"({"map_1d": ["data"]})"), praxis_mesh) ==
        "a.json: /strategy/inputs_split_mapping: ValueError: an array of rank 2 needs a mapping "
        "\"map_2d\"");
  CHECK(refusal(with(R"({"map_2d": ["date", null]})"), praxis_mesh) ==
        "a.json: /strategy/inputs_split_mapping/map_2d/0: AssertionError: axis \"date\" is not in "
        "the mesh (replica, data, mdl), did you mean \"data\"?");
  CHECK(refusal(with(R"({"map_1d": ["data"], "map_2d": ["replica", null]})"), praxis_mesh) ==
        "a.json: /strategy/inputs_split_mapping/map_1d: splits the batch over P(data), another "
        "mapping over P(replica): the inputs of a step have one batch");
  CHECK(refusal(with(R"({"map_xd": ["data"]})"), praxis_mesh) ==
        "a.json: /strategy/inputs_split_mapping/map_xd: a key is \"map_1d\", \"map_2d\", ...: a "
        "mapping by an input's rank");
  CHECK(refusal(R"({"name": "praxis", "batch_axes": "replica", "weights": [],
                    "inputs_split_mapping": {"map_2d": ["data", null]}})",
                praxis_mesh) ==
        "a.json: /strategy/inputs_split_mapping: splits batch and sequence over P(data, None), the "
        "strategy's axes for them are P(replica, None): leave one out");
}

TEST_CASE("A step whose rules fit no name is an error, not one with every parameter whole") {
  const Mesh mesh({{"fsdp", 4}});
  CHECK(refusal(R"({"name": "match_partition_rules", "rules": [["q_proj/kernel", ["fsdp"]],
                    ["mlp/kernel", [null, "fsdp"]], [".*", [null]]]})",
                mesh) ==
        "a.json: /strategy/rules/0: the rules split no parameter of gpt2: none is matched by rule "
        "0 \"q_proj/kernel -> P(fsdp)\", 1 \"mlp/kernel -> P(None, fsdp)\"; their names are like "
        "\"transformer.wte.weight\" and \"transformer.h.0.ln_2.weight\"");
  CHECK(refusal(R"({"name": "match_partition_rules", "rules": [[".*", [null]]]})", mesh) ==
        "accepted");
  CHECK(refusal(R"({"name": "praxis", "weights": [["ffn_layer1/linear/w", ["data", "mdl"]]]})",
                praxis_mesh)
            .find("the rules split no parameter of gpt2") != std::string::npos);
  CHECK(refusal(R"({"name": "logical_axes", "rules": [["embed", "fsdp"]]})", mesh) ==
        "a.json: /strategy: strategy \"logical_axes\" goes by names of dimensions, which the "
        "parameters of gpt2 do not have under their own names: view \"flax\" has them");
}
