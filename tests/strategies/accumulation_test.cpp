// Gradient accumulation, and the shard_map FSDP tutorial as a plan.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "model_step.hpp"
#include "strategies/rules/fsdp_tutorial_step.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

const auto is = [](CollectiveKind kind) {
  return [kind](const Collective& c) { return c.kind == kind; };
};

CompiledStep tutorial_step(std::int64_t microbatches, const std::string& strategy,
                           const Mesh& mesh = Mesh({{"data", 8}}), DType compute = DType::f32) {
  const Json config = parse_json(
      R"({"model_type": "mlp_classifier", "inputs": 784, "hidden": [512], "classes": 10})", "mlp");
  Step step{.batch = 128, .microbatches = microbatches, .metrics = {"loss", "accuracy"}};
  step.precision.compute = compute;
  step.optimizer.parameters = step.optimizer.gradients = DType::f32;
  step.optimizer.master.reset();
  const Json json = parse_json(strategy, "strategy");
  return compile(build_step({"mlp", "mlp.json", OwnedJson(config)}, step), step, mesh,
                 read_strategy(JsonReader(json, {"strategy", ""}), mesh));
}

}  // namespace

// phlippe/uvadlc_notebooks at 0da8037, train_step_fsdp with min_weight_size 2**4 and 4 minibatches:
// three leaves are sharded (both kernels and the 512 biases), the 10 biases are not. A minibatch
// gathers and scatters each sharded leaf once; after the last come one pmean and four psums.
TEST_CASE("the FSDP tutorial's step holds its collectives, in that number") {
  const Plan plan =
      tutorial_step(4, R"({"name": "fsdp_tutorial", "axis": "data", "min_weight_size": 16})").plan;
  CHECK(count(plan, is(CollectiveKind::all_gather)) == 4 * 3);
  CHECK(count(plan, is(CollectiveKind::reduce_scatter)) == 4 * 3);
  CHECK(count(plan, is(CollectiveKind::all_reduce)) == 1 + 2 * 2);
  CHECK(count(plan, is(CollectiveKind::all_to_all)) == 0);
  const std::int64_t sharded = (784 * 512 + 512 + 512 * 10) * 4;
  CHECK(payload(plan, is(CollectiveKind::all_gather)) == 4 * sharded);
  CHECK(payload(plan, is(CollectiveKind::reduce_scatter)) == 4 * sharded);
  CHECK(payload(plan, is(CollectiveKind::all_reduce)) == 10 * 4 + 4 * 4);
}

// Default min_weight_size 2**18: of 784 x 512 = 401,408, 512, 5,120 and 10 only the first is
// larger. In one minibatch the counts of the two metrics are Python's len(batch), of which psum is
// no collective (jax 0.10.2 lowers two psums for them, of the sums).
TEST_CASE("the tutorial's default shards the first kernel alone") {
  const Plan plan = tutorial_step(1, R"({"name": "fsdp_tutorial", "axis": "data"})").plan;
  CHECK(count(plan, is(CollectiveKind::all_gather)) == 1);
  CHECK(count(plan, is(CollectiveKind::reduce_scatter)) == 1);
  CHECK(count(plan, is(CollectiveKind::all_reduce)) == 3 + 2);
}

// flax's Dense casts its parameters when it runs, after gather_params has put them together
// (shard_module_params is map_variables around it): in bf16 the same bytes are gathered as in fp32.
// Gradients are those of the fp32 parameters.
TEST_CASE("the tutorial gathers its fp32 parameters and casts them afterwards") {
  const std::string strategy = R"({"name": "fsdp_tutorial", "axis": "data", "min_weight_size": 16)";
  const Mesh mesh({{"data", 8}});
  const Plan plan = tutorial_step(4, strategy + "}", mesh, DType::bf16).plan;
  const std::int64_t sharded = (784 * 512 + 512 + 512 * 10) * 4;
  const auto wide = [](const Collective& c) { return c.dtype == DType::f32; };
  CHECK(count(plan, wide) == count(plan, [](const Collective&) { return true; }));
  CHECK(payload(plan, is(CollectiveKind::all_gather)) == 4 * sharded);
  CHECK(payload(plan, is(CollectiveKind::reduce_scatter)) == 4 * sharded);
  const Plan narrow =
      tutorial_step(4, strategy + R"(, "gather_dtype": "compute"})", mesh, DType::bf16).plan;
  CHECK(payload(narrow, is(CollectiveKind::all_gather)) == 4 * sharded / 2);
}

// sync_gradients(grads, ("data", "dp")) runs once, after accumulate_gradients: the three leaves
// that gather_params scattered over data are averaged over dp in one pmean each, the bias over
// both. Payloads: an eighth of each sharded leaf, and ten numbers.
TEST_CASE("sharded leaves are averaged over a second axis once a step") {
  const Plan plan = tutorial_step(4, R"({"name": "fsdp_tutorial", "axis": "data",
      "min_weight_size": 16, "batch_axes": ["dp", "data"]})",
                                  Mesh({{"dp", 2}, {"data", 8}}))
                        .plan;
  CHECK(count(plan, is(CollectiveKind::reduce_scatter)) == 4 * 3);
  CHECK(count(plan, is(CollectiveKind::all_reduce)) == 3 + 1 + 4);
  CHECK(payload(plan, is(CollectiveKind::all_reduce)) ==
        (784 * 512 + 512 + 512 * 10) * 4 / 8 + 10 * 4 + 4 * 4);
}

// A kernel that a box has over tp already: [784, 512] lies as [392, 512] on each device, of which
// shard_params takes the free dimension. Over data alone it is gathered, in its half.
TEST_CASE("shards on top of an axis that a parameter already has") {
  const CompiledStep step = tutorial_step(4, R"({"name": "fsdp_tutorial", "axis": "data",
      "min_weight_size": 6000, "partitioned": [["input_dense/kernel", ["tp", null]]]})",
                                          Mesh({{"data", 4}, {"tp", 2}}));
  CHECK(to_string(step.parameters[0].returned) == "P(tp, data)");
  CHECK(step.parameters[0].shard_shape == std::vector<std::int64_t>{392, 128});
  const auto over_data = [&](const Collective& c) {
    return c.kind == CollectiveKind::all_gather &&
           step.plan.mesh.names_of(c.axes) == std::vector<std::string>{"data"};
  };
  CHECK(count(step.plan, over_data) == 4);
  CHECK(payload(step.plan, over_data) == 4 * 392 * 512 * 4);
}

// m microbatches of a batch: m times the gathers; reductions m times, or once when put off. The
// work of the model is that of the whole batch.
TEST_CASE("accumulation multiplies what is done in each microbatch") {
  const std::string eager = R"({"name": "fsdp"})";
  const std::string late = R"({"name": "fsdp", "reduce_each_microbatch": "none"})";
  const Mesh mesh({{"fsdp", 8}});
  Step step = usual_step();
  step.batch = 32;
  const CompiledStep one = compile_step("llama-3.1-8b", mesh, eager, step);
  step.microbatches = 4;
  const CompiledStep four = compile_step("llama-3.1-8b", mesh, eager, step);
  const CompiledStep put_off = compile_step("llama-3.1-8b", mesh, late, step);
  const auto gathers = is(CollectiveKind::all_gather);
  const auto scatters = is(CollectiveKind::reduce_scatter);
  CHECK(payload(four.plan, gathers) == 4 * payload(one.plan, gathers));
  CHECK(payload(four.plan, scatters) == 4 * payload(one.plan, scatters));
  CHECK(payload(put_off.plan, gathers) == payload(four.plan, gathers));
  CHECK(payload(put_off.plan, scatters) == payload(one.plan, scatters));
  CHECK(four.plan.subject.model_flops == one.plan.subject.model_flops);
  CHECK(four.plan.subject.tokens_per_step == one.plan.subject.tokens_per_step);
}

// Tasks are counted before they are made: 10^9 microbatches of gpt2 would be 10^11 of them, and
// 2^23 (emit.cpp, most_tasks) are the most.
TEST_CASE("a step of more tasks than a plan may have is refused") {
  Step step = usual_step();
  step.sequence = 1;
  step.batch = step.microbatches = 1'000'000'000;
  CHECK_THROWS_WITH(
      compile_step("gpt2", Mesh({{"fsdp", 1}}), R"("fsdp")", step),
      Catch::Contains("strategy: /workload: a step in 1000000000 microbatches has ") &&
          Catch::Contains(" tasks, more than 8.39e+06 are not planned"));
}

TEST_CASE("a batch that the microbatches do not divide is refused") {
  const Step step{.batch = 10, .sequence = 128, .microbatches = 4};
  CHECK_THROWS_WITH(build_step(load_model_config("gpt2", "", {}), step),
                    Catch::Contains("a batch of 10 does not divide into 4 microbatches"));
}
