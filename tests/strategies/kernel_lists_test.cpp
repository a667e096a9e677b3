// What stacks launch for the ops of a layer.
#include "strategies/compile/kernel_lists.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "model_step.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t tokens = 4096;
constexpr std::int64_t ffn = 14336;

Plan plan_of(const std::string& kernels) {
  Step step;
  step.batch = 1;
  step.sequence = tokens;
  const std::string strategy =
      R"({"name": "fsdp2")" + (kernels.empty() ? "" : R"(, "kernels": )" + kernels) + "}";
  return test::compile_step("llama-3.1-8b", Mesh({{"fsdp", 1}}), strategy.c_str(), step).plan;
}

// Of the tasks of a layer's op in a phase, added up.
struct Work {
  std::int64_t bytes = 0;
  int launches = 0;
  double flops = 0;
  std::string implementation;
};
Work work_of(const Plan& plan, const std::string& op, Phase phase) {
  Work work;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel || task.phase != phase || task.layer != 3) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    if (kernel.op != op) continue;
    work.bytes += kernel.bytes.count();
    work.launches += kernel.launches;
    work.flops += kernel.flops.count();
    work.implementation = kernel.implementation;
  }
  return work;
}

}  // namespace

// bf16; silu reads and writes ffn numbers a token, the product reads two and writes one.
TEST_CASE("SwiGLU is two kernels in eager PyTorch and one compiled") {
  const Plan eager = plan_of(R"("eager")");
  CHECK(work_of(eager, "silu", Phase::forward).bytes == 4 * tokens * ffn);
  CHECK(work_of(eager, "multiply", Phase::forward).bytes == 6 * tokens * ffn);
  for (const char* stack : {R"("compiled")", R"("transformer-engine")", R"("xla")"}) {
    const Plan plan = plan_of(stack);
    CHECK(work_of(plan, "silu", Phase::forward).launches == 0);
    CHECK(work_of(plan, "silu", Phase::forward).bytes == 0);
    CHECK(work_of(plan, "multiply", Phase::forward).bytes == 6 * tokens * ffn);
    // Three read and two written, once.
    CHECK(work_of(plan, "silu_backward", Phase::backward).launches == 0);
    CHECK(work_of(plan, "multiply_backward", Phase::backward).bytes == 10 * tokens * ffn);
    CHECK(work_of(plan, "multiply_backward", Phase::backward).launches == 1);
  }
}

// Two norms in a layer; one kernel reads and writes hidden numbers a token and reads the weight,
// eager PyTorch moves nine times as much.
TEST_CASE("RMSNorm is eight kernels in eager PyTorch") {
  const Work one = work_of(plan_of(R"("compiled")"), "rms_norm", Phase::forward);
  const Work eager = work_of(plan_of(R"("eager")"), "rms_norm", Phase::forward);
  CHECK(one.launches == 2);
  CHECK(eager.launches == 16);
  CHECK(eager.bytes == 9 * one.bytes);
  CHECK(eager.implementation == "eager");
}

// 32 heads of 4096 x 4096 scores in bf16, of which no mask spares one: 6 passes forward, 4 where
// scale, mask and softmax are one kernel.
TEST_CASE("unfused attention keeps its scores in memory and computes all of them") {
  const Work fused =
      work_of(plan_of(R"({"base": "eager", "attention": "flash-2"})"), "attention", Phase::forward);
  const Work plain =
      work_of(plan_of(R"({"base": "eager", "attention": "unfused"})"), "attention", Phase::forward);
  const Work masked = work_of(
      plan_of(R"({"base": "eager", "attention": "unfused", "fused": ["scaled_masked_softmax"]})"),
      "attention", Phase::forward);
  constexpr std::int64_t scores = 32 * tokens * tokens * 2;
  CHECK(fused.implementation == "flash-2");
  CHECK(plain.flops == Approx(2 * fused.flops).epsilon(1e-3));
  CHECK(plain.bytes - fused.bytes == 6 * scores);
  CHECK(masked.bytes - fused.bytes == 4 * scores);
}

// 12 heads of 1024 x 1024 probabilities in bf16 with a byte of mask each, read and written.
TEST_CASE("unfused attention drops probabilities in a kernel of their own, both ways") {
  const auto attention = [](double dropout, const char* op, Phase phase) {
    Step step;
    step.batch = 1;
    step.sequence = 1024;
    step.dropout = dropout;
    const char* strategy =
        R"({"name": "fsdp2", "kernels": {"base": "eager", "attention": "unfused"}})";
    return work_of(test::compile_step("gpt2", Mesh({{"fsdp", 1}}), strategy, step).plan, op, phase);
  };
  constexpr std::int64_t scores = std::int64_t{12} * 1024 * 1024;
  for (const auto& [op, phase] :
       {std::pair{"attention", Phase::forward}, std::pair{"attention_backward", Phase::backward}}) {
    const Work kept = attention(0, op, phase);
    const Work dropped = attention(0.1, op, phase);
    CHECK(dropped.bytes - kept.bytes == 5 * scores);
    CHECK(dropped.launches - kept.launches == 1);
    CHECK(dropped.flops == kept.flops);
  }
}

// megatron/arguments.py: fused unless --no-masked-softmax-fusion and --no-bias-dropout-fusion.
TEST_CASE("Megatron and Megatron-DeepSpeed have kernels of their own in eager PyTorch") {
  Step step;
  step.batch = 1;
  step.sequence = 1024;
  const auto passes = [&](const std::string& strategy) {
    const Plan plan = test::compile_step("gpt2", Mesh({{"dp", 1}}), strategy, step).plan;
    return work_of(plan, "attention", Phase::forward).bytes;
  };
  const std::string kernels = R"(, "kernels": {"base": "eager", "attention": "unfused")";
  constexpr std::int64_t scores = std::int64_t{12} * 1024 * 1024;
  for (const std::string name : {R"({"name": "megatron")", R"({"name": "deepspeed")"}) {
    const std::int64_t unsaid = passes(name + kernels + "}}");
    CHECK(unsaid == passes(name + kernels + R"(, "fused": ["scaled_masked_softmax"]}})"));
    CHECK(passes(name + kernels + R"(, "fused": []}})") - unsaid == 4 * scores);
  }
}

// megatron/arguments.py of Megatron-DeepSpeed: no async_tensor_model_parallel_allreduce.
TEST_CASE("Megatron-DeepSpeed's sums over the model axis are not beside products") {
  const Step step = {.batch = 8, .sequence = 1024};
  const auto apart = [&](const char* strategy) {
    const Plan plan = test::compile_step("gpt2", Mesh({{"tp", 2}}), strategy, step).plan;
    const auto& tasks = plan.programs[0].tasks;
    return std::count_if(tasks.begin(), tasks.end(), [](const Task& task) {
      return task.kind == TaskKind::collective && task.phase == Phase::backward && task.stream != 0;
    });
  };
  CHECK(apart(R"({"name": "megatron", "sequence_parallel": false})") > 0);
  CHECK(apart(R"({"name": "deepspeed"})") == 0);
}

TEST_CASE("what nothing is said of stays one kernel an op") {
  const Work silent = work_of(plan_of(""), "rms_norm", Phase::forward);
  CHECK(silent.launches == 2);
  CHECK(silent.implementation.empty());
  CHECK(work_of(plan_of(""), "silu", Phase::forward).bytes == 4 * tokens * ffn);
}

}  // namespace shardsim
