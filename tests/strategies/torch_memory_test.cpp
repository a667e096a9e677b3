// What PyTorch holds beside what backward reads: tensors of a loss over a split vocabulary, and
// what selective checkpointing caches. Expectations come from PyTorch's sources, which the headers
// name; peaks of whole steps are compared with PyTorch's own in torch_golden_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "model_step.hpp"

namespace shardsim::torch_memory_test {
namespace {

// Alive while the task of that name runs, of buffers at least so large.
std::int64_t alive_at(const Plan& plan, const std::string& name, std::int64_t least) {
  const Program& program = plan.programs.front();
  std::int64_t alive = 0;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    if (plan.names[static_cast<std::size_t>(program.tasks[t].name)] != name) continue;
    if (program.tasks[t].phase != Phase::backward) continue;
    alive = 0;
    const auto task = static_cast<TaskId>(t);
    for (const Buffer& buffer : program.buffers) {
      const auto last = program.freed_after(buffer);
      const bool ends = !last.empty() && *std::max_element(last.begin(), last.end()) < task;
      if (buffer.bytes.count() >= least && buffer.allocated_by <= task && !ends) ++alive;
    }
  }
  return alive;
}

std::int64_t activations_of(const Plan& plan, const std::string& name) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.programs.front().buffers) {
    const bool is_kept = buffer.category == BufferCategory::activations;
    if (is_kept && plan.names[static_cast<std::size_t>(buffer.name)] == name) {
      bytes += buffer.bytes.count();
    }
  }
  return bytes;
}

}  // namespace

// Llama-3.1-8B, 8192 tokens a device: logits are 8192 x 128256 in fp32, of which each of four has a
// quarter. Whole, the logarithms, their gradient and that of the logits are there; split, ones at
// the targets besides.
TEST_CASE("the gradient of a split vocabulary holds a tensor more") {
  constexpr std::int64_t logits = 8192LL * 128256 * 4;
  Step step = test::usual_step();
  const Plan whole = test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 8}}),
                                        R"({"name": "torchtitan", "kernels": "eager"})", step)
                         .plan;
  step.batch = 2;
  const Plan split = test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 2}, {"tp", 4}}),
                                        R"({"name": "torchtitan", "kernels": "eager"})", step)
                         .plan;
  CHECK(alive_at(whole, "loss.log_softmax", logits) == 3);
  CHECK(alive_at(split, "loss.log_softmax", logits / 4) == 4);
}

// Every other product of a layer, from the first: queries, keys and values in one, gate and down.
// Nothing reads the last again: 32 of 8192 x 4096 in bf16 are kept in vain, 64 MiB each, but by a
// compiled layer.
TEST_CASE("eager selective checkpointing keeps what its policy says, whether read or not") {
  Step step = test::usual_step();
  step.rematerialization = {.policy = Rematerialization::Policy::of_jax,
                            .save = {"every_other_product"}};
  const auto kept = [&](const char* kernels) {
    const std::string strategy =
        std::string(R"({"name": "torchtitan", "kernels": ")") + kernels + "\"}";
    const Plan plan =
        test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 8}}), strategy, step).plan;
    return activations_of(plan, "model.layers.{}.mlp.down_proj");
  };
  CHECK(kept("eager") == 32 * (std::int64_t{64} << 20));
  CHECK(kept("compiled") == 0);
}

// The policy has reduce_scatter_tensor: what an attention and an MLP send in forward, 2 x 32 times,
// is not sent again; gathers are. Sums of gradients are scattered as often without checkpoints.
TEST_CASE("scattered sums are kept by torchtitan's selective checkpoints") {
  Step step = test::usual_step();
  step.batch = 2;
  const auto calls = [&](CollectiveKind kind) {
    const Plan plan = test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 2}, {"tp", 4}}),
                                         R"({"name": "torchtitan", "kernels": "eager"})", step)
                          .plan;
    return std::count_if(plan.programs.front().tasks.begin(), plan.programs.front().tasks.end(),
                         [&](const Task& t) {
                           return t.kind == TaskKind::collective && t.stream == 3 &&
                                  plan.collectives[static_cast<std::size_t>(t.work)].kind == kind;
                         });
  };
  const auto scatters = calls(CollectiveKind::reduce_scatter);
  const auto gathers = calls(CollectiveKind::all_gather);
  step.rematerialization = {.policy = Rematerialization::Policy::of_jax,
                            .save = {"every_other_product"}};
  CHECK(calls(CollectiveKind::reduce_scatter) == scatters);
  CHECK(calls(CollectiveKind::all_gather) == gathers + 2LL * 32);
}

// 4 microbatches of 4096 tokens: the last of two stages has each one's logits, 4096 x 128256 in
// bf16, until the step ends.
TEST_CASE("the last stage of PyTorch's pipelines keeps what it returns") {
  Step step = test::usual_step();
  step.batch = step.microbatches = 4;
  step.sequence = 4096;
  const auto at_end = [&](const char* strategy) {
    const Plan plan = test::compile_step("llama-3.1-8b", Mesh({{"pp", 2}}), strategy, step).plan;
    const Program& last = plan.programs.back();
    std::int64_t bytes = 0;
    for (const Buffer& buffer : last.buffers) {
      const auto freed = last.freed_after(buffer);
      const bool is_last = !freed.empty() && freed.back() + 1 == std::ssize(last.tasks);
      if (is_last && buffer.category == BufferCategory::activations) bytes += buffer.bytes.count();
    }
    return bytes;
  };
  constexpr std::int64_t logits = 4LL * 4096 * 128256 * 2;
  CHECK(at_end(R"({"name": "fsdp2"})") == logits);
  CHECK(at_end(R"({"name": "fsdp2", "return_outputs": false})") == 0);
  CHECK(at_end(R"({"name": "torchtitan"})") == 0);
}

// Of 128256 rows of 4096 in bf16 a device of 4 has a quarter, and makes all when it goes back.
TEST_CASE("the gradient of a split table is made whole") {
  Step step = test::usual_step();
  step.batch = 2;
  const Plan plan = test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 2}, {"tp", 4}}),
                                       R"({"name": "fsdp2"})", step)
                        .plan;
  const auto& buffers = plan.programs.front().buffers;
  CHECK(std::count_if(buffers.begin(), buffers.end(), [&](const Buffer& buffer) {
          return plan.buffer_name(buffer) == "model.embed_tokens.weight.grad.whole" &&
                 buffer.bytes.count() == 128256LL * 4096 * 2;
        }) == 1);
}

// A layer's gradients in fp32, 4 x 218,112,000 bytes, are there until the layer before has run.
TEST_CASE("what FSDP2 has copied in lies there until the next unit copies") {
  const Plan plan = test::compile_step("llama-3.1-8b", Mesh({{"dp_shard", 8}}),
                                       R"({"name": "fsdp2"})", test::usual_step())
                        .plan;
  const Program& program = plan.programs.front();
  std::size_t held = 0;
  for (const Buffer& buffer : program.buffers) {
    const std::string& name = plan.names[static_cast<std::size_t>(buffer.name)];
    const bool is_copied_in = name == "model.layers.{}.self_attn.q_proj.weight.grad" &&
                              buffer.category == BufferCategory::communication;
    if (!is_copied_in || buffer.layer == 0) continue;
    const auto freed = program.freed_after(buffer);
    const Task& last =
        program.tasks[static_cast<std::size_t>(*std::max_element(freed.begin(), freed.end()))];
    held += last.layer == buffer.layer - 1 ? 1U : 0U;
  }
  CHECK(held == 31);
}

// Of each of a device's tokens as many rows as experts; what has come back in bf16 goes.
TEST_CASE("torchtitan keeps rows of experts in fp32, unless it casts them again") {
  const Json experts = {{"base", "qwen3-30b-a3b"}, {"num_hidden_layers", 3}};
  const ModelConfig model = load_model_config(JsonReader(experts, {"test", "/model"}), "");
  struct Kept {
    std::int64_t computed = 0, wide = 0;
    bool operator==(const Kept&) const = default;
  };
  const auto kept = [&](Step step, const char* kernels) {
    const Json json = {
        {"name", "torchtitan"}, {"kernels", kernels}, {"experts", {{"parallel", 2}}}};
    const Mesh mesh({{"dp_shard", 4}});
    const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), mesh);
    step.exchange = strategy.experts->exchange;
    const Plan plan = compile(build_step(model, step), step, mesh, strategy).plan;
    const std::string rows = "model.layers.{}.mlp.experts.returned";
    return Kept{activations_of(plan, rows), activations_of(plan, rows + ".fp32")};
  };
  Step step{.batch = 8, .sequence = 2048};
  constexpr std::int64_t layers = 3, tokens = 8 / 4 * 2048, experts_a_token = 8, hidden = 2048;
  constexpr std::int64_t rows = layers * tokens * experts_a_token * hidden;
  CHECK(kept(step, "eager") == Kept{0, 4 * rows});
  CHECK(kept(step, "compiled") == Kept{2 * rows, 0});
  step.rematerialization = {.policy = Rematerialization::Policy::of_jax,
                            .save = {"every_other_product"}};
  CHECK(kept(step, "eager") == Kept{2 * rows, 0});
}

}  // namespace shardsim::torch_memory_test
