// The forward step: what a training step does before its backward pass, and nothing else.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "strategies/specs/coverage.hpp"

namespace shardsim {
namespace {

Prediction predicted(const std::string& step, const std::string& rest) {
  const std::string text = R"({"workload": {"step": ")" + step + "\", " + rest + "}";
  return predict(read_experiments(parse_json(text, "a.json"), "a.json").front(), {});
}

// A matmul has two in its backward pass; FlashAttention's five count as the four that the model
// asks for, of two.
TEST_CASE("A forward step has a third of a training step's operations") {
  for (const char* model : {"gpt2", "llama-3.1-8b", "qwen3-1.7b"}) {
    const std::string rest = "\"model\": \"" + std::string(model) +
                             R"(", "batch": 8, "sequence": 256}, "mesh": {"fsdp": 8},
                                "strategy": "fsdp", "machine": "dgx-h100")";
    const auto flops = [&](const char* step) {
      return predicted(step, rest).step.plan.subject.model_flops.count();
    };
    CHECK(3 * flops("forward") == Approx(flops("train")));
  }
}

// gpt2 on one device: V = 50,257, h = 768, 12 layers, 1,024 positions.
TEST_CASE("A forward step holds parameters, inputs and what still has a reader") {
  constexpr std::int64_t V = 50257, h = 768, positions = 1024, L = 12, tokens = 4 * 512;
  constexpr std::int64_t layer = 12 * h * h + 13 * h;
  constexpr std::int64_t parameters = V * h + positions * h + L * layer + 2 * h;
  static_assert(parameters == 124'439'808);
  const Prediction p = predicted("forward", R"("model": "gpt2", "batch": 4, "sequence": 512},
      "mesh": {"data": 1}, "strategy": "dp", "machine": "dgx-h100")");
  // Token numbers, labels and positions in int64; at the loss the logits in fp32 and their
  // log-softmax.
  const std::int64_t inputs = 2 * 8 * tokens + 8 * 512;
  CHECK(p.result.peak().count() == 2 * parameters + inputs + 2 * 4 * tokens * V);
  for (const Task& task : p.step.plan.programs[0].tasks) CHECK(task.phase == Phase::forward);
}

TEST_CASE("What only training has changes nothing of a forward step") {
  const std::string base = R"("model": "gpt2", "batch": 8, "sequence": 256)";
  const std::string rest = R"(}, "mesh": {"fsdp": 4}, "strategy": "fsdp", "machine": "dgx-h100")";
  const Prediction plain = predicted("forward", base + rest);
  const Prediction other =
      predicted("forward", base + R"(, "rematerialization": "full", "optimizer": "sgd",
                                     "precision": {"gradients": "fp32", "master": "none"})" +
                               rest);
  CHECK(plain.step.plan == other.step.plan);
  CHECK(plain.result.peak() == other.result.peak());
}

TEST_CASE("Specs of a forward step send no gradients") {
  const Json json = parse_json(R"({"workload": {"model": "gpt2", "step": "forward", "batch": 8,
      "sequence": 256}, "mesh": {"fsdp": 4}, "strategy": "fsdp"})",
                               "a.json");
  const SpecTable table = experiment_specs(read_experiments(json, "a.json").front());
  for (const SpecCollective& c : summarize(table).communication) {
    CHECK(c.kind == CollectiveKind::all_gather);
  }
}

// Shards of each block are gathered once, in the forward pass; metrics are summed over the devices.
TEST_CASE("A forward step gathers once and reduces what it answers alone") {
  const Prediction p = predicted("forward", R"("model": "gpt2", "batch": 8, "sequence": 256,
      "metrics": ["loss"]}, "mesh": {"fsdp": 4}, "machine": "dgx-h100",
      "strategy": {"name": "fsdp", "reshard_after_forward": false})");
  std::int64_t gathers = 0;
  std::int64_t sums = 0;
  for (const Task& task : p.step.plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& c = p.step.plan.collectives[static_cast<std::size_t>(task.work)];
    if (c.kind == CollectiveKind::all_gather) ++gathers;
    if (c.kind == CollectiveKind::all_reduce && c.payload == Bytes(4)) ++sums;
  }
  CHECK(gathers == 12 + 1);  // layers, root
  CHECK(sums == 1);  // the sum; the count is a Python number (strategies/runtime/scalar_sums.hpp)
}

}  // namespace
}  // namespace shardsim
