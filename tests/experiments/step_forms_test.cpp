// Steps in forms that frameworks have: memory and the calls of a whole experiment, derived by hand
// from the sizes of Llama-3.1-8B: h 4096, keys and values 1024, f 14336, 32 heads, 32 layers.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/index.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::step_forms_test {
namespace {

constexpr std::int64_t h = 4096, kv = 1024, f = 14336, heads = 32, sequence = 8192;
constexpr std::int64_t all_parameters = 8'030'261'248;

Experiment experiment(const char* mesh, const char* strategy, const char* change) {
  Json json = Json::parse(R"({"workload": {"model": "llama-3.1-8b", "batch": 8, "sequence": 8192},
                              "machine": "dgx-h100"})");
  json["mesh"] = Json::parse(mesh);
  json["strategy"] = Json::parse(strategy);
  json["workload"].merge_patch(Json::parse(change));
  return read_experiments(json, "a.json").front();
}

Prediction fsdp(const char* change) {
  return predict(experiment(R"({"fsdp": 8})", R"("fsdp")", change), {});
}

std::int64_t at_peak(const Prediction& p, BufferCategory category) {
  return p.result.programs.front().peak_by_category[static_cast<std::size_t>(category)].count();
}

// Of the first program: calls of a kind in a phase.
std::int64_t count_of(const Plan& plan, CollectiveKind kind, Phase phase) {
  const std::vector<Task>& tasks = plan.programs.front().tasks;
  return std::count_if(tasks.begin(), tasks.end(), [&](const Task& task) {
    return task.kind == TaskKind::collective && task.phase == phase &&
           plan.collectives[at(task.work)].kind == kind;
  });
}

}  // namespace

// Peak at the loss: every layer's input; of the 16 that are not checkpointed all that is kept
// beside it: of two norms the results and rstd, q, k and v, attention's result and logsumexp, the
// second norm's input, gate, its activation, up and the product.
TEST_CASE("Every second layer checkpointed: half of what is between none and full") {
  const std::int64_t full = fsdp(R"({"rematerialization": "full"})").result.peak().count();
  const std::int64_t none = fsdp(R"({"rematerialization": "none"})").result.peak().count();
  const std::int64_t layer = sequence * (5 * 2 * h + 2 * 4 + 2 * 2 * kv + 4 * heads + 4 * 2 * f);
  CHECK(none - full == 32 * layer);
  CHECK(fsdp(R"({"rematerialization": {"every": 2}})").result.peak().count() == full + 16 * layer);
  CHECK(fsdp(R"({"rematerialization": {"layers": 4, "method": "block"}})").result.peak().count() ==
        full + 28 * layer);
}

// Chunks of 8 layers of a pipeline of 4: the first layer of each is repeated, 4 in all.
TEST_CASE("Megatron's block method counts from the start of each stage") {
  const Experiment e =
      experiment(R"({"pp": 4, "data": 2})", R"({"name": "dp", "pipeline": {"schedule": "1f1b"}})",
                 R"({"microbatches": 4, "rematerialization": {"layers": 1, "method": "block"}})");
  const CompiledStep step = compile_experiment(e);
  REQUIRE(step.plan.programs.size() == 4);
  for (const Program& program : step.plan.programs) {
    const auto is_repeated = [&](const Task& task) {
      return task.kind == TaskKind::kernel && task.recompute &&
             step.plan.kernels[at(task.work)].op == "attention";
    };
    const auto repeated = std::count_if(program.tasks.begin(), program.tasks.end(), is_repeated);
    CHECK(repeated == 4);  // one layer, 4 microbatches
  }
}

// Adapters of rank 16 beside q, k and v with one A: 16 (h + h + 2 kv) a layer. Between steps 2
// bytes for each parameter in bf16, 12 of master and moments for each that is trained, an eighth
// of both on a device.
TEST_CASE("LoRA: state and reductions of the adapters alone") {
  const std::int64_t adapters = 32 * 16 * (h + h + 2 * kv);
  const Prediction p = fsdp(R"({"lora": {"rank": 16, "targets": ["linear_qkv"]}})");
  CHECK(at_peak(p, BufferCategory::optimizer) == 12 * adapters / 8);
  CHECK(at_peak(p, BufferCategory::parameters) == 2 * (all_parameters + adapters) / 8);
  // A reduction for each layer; none of the root, which has nothing that is trained.
  CHECK(count_of(p.step.plan, CollectiveKind::reduce_scatter, Phase::backward) == 32);
  CHECK(fsdp("{}").result.step_time > p.result.step_time);
}

TEST_CASE("Frozen layers at the start have no backward pass") {
  const Experiment e = experiment(R"({"fsdp": 8})", R"("fsdp")",
                                  R"({"trainable": ["layers\\.(30|31)\\.", "lm_head"]})");
  const CompiledStep step = compile_experiment(e);
  CHECK(count_of(step.plan, CollectiveKind::reduce_scatter, Phase::backward) == 3);
}

// A product at the peak of fp8 instead of bf16's, attention and all that is bound by memory as
// before: faster, and said to be approximate.
TEST_CASE("Products in fp8 are faster and have a warning; bytes stay") {
  const Prediction narrow = fsdp(R"({"precision": {"compute": "fp8"}})");
  const Prediction wide = fsdp("{}");
  CHECK(narrow.result.step_time < wide.result.step_time);
  CHECK(narrow.result.peak() == wide.result.peak());
  CHECK(narrow.step.warnings.size() == wide.step.warnings.size() + 1);
}

// Gathered in fp8: half the bytes of what products read. An all-gather of a layer forward and
// backward, and of the root.
TEST_CASE("Parameters gathered in fp8 are half as many bytes") {
  const auto gathered = [](const char* change) {
    const CompiledStep step = compile_experiment(experiment(R"({"fsdp": 8})", R"("fsdp")", change));
    std::int64_t bytes = 0;
    for (const Task& task : step.plan.programs.front().tasks) {
      if (task.kind != TaskKind::collective) continue;
      const Collective& collective = step.plan.collectives[at(task.work)];
      if (collective.kind == CollectiveKind::all_gather) bytes += collective.payload.count();
    }
    return bytes;
  };
  const std::int64_t matrices = 2 * h * h + 2 * kv * h + 3 * f * h;
  CHECK(gathered(R"({"precision": {"compute": "fp8"}})") -
            gathered(R"({"precision": {"compute": "fp8", "gather": "fp8"}})") ==
        2 * 32 * matrices);
}

// The table is copied to the last stage, which looks up tokens, too.
TEST_CASE("Multi-token prediction runs in stages") {
  Json json = Json::parse(R"({"workload": {"model": {"base": "deepseek-v3", "num_hidden_layers": 4},
      "batch": 8, "sequence": 1024, "microbatches": 4, "mtp_layers": 1},
      "machine": "dgx-h100", "mesh": {"pp": 2, "data": 4},
      "strategy": {"name": "dp", "pipeline": {"schedule": "1f1b"}}})");
  const Experiment e = read_experiments(json, "a.json").front();
  CHECK_NOTHROW(compile_experiment(e));
}

}  // namespace shardsim::step_forms_test
