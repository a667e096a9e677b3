// Figures that a plan must reach from config.json alone, each with its derivation.
#include <catch2/catch.hpp>

#include "model_step.hpp"

#include "base/json.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr std::int64_t bf16 = 2;

// Bytes of the matrices (not the norms) of one layer that its forward gather carries.
std::int64_t gathered_matrices(const Plan& plan, const std::string& layer) {
  std::int64_t bytes = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective || task.phase != Phase::forward ||
        plan.task_name(task) != layer)
      continue;
    const Collective& collective = plan.collectives[static_cast<std::size_t>(task.work)];
    REQUIRE(collective.kind == CollectiveKind::all_gather);
    for (const CollectivePart& part : collective.parts) {
      if (part.tensor.find("norm") == std::string::npos) bytes += part.payload.count();
    }
  }
  return bytes;
}

bool is_all_reduce(const Collective& c) { return c.kind == CollectiveKind::all_reduce; }
bool is_gradient(const Collective& c) { return c.reason.starts_with("gradients of"); }

}  // namespace

TEST_CASE(
    "fsdp: one layer's forward all-gather of Llama-3.1-8B over 4 devices is 436,207,616 bytes") {
  // q and o 4096 x 4096, k and v 1024 x 4096, gate, up and down 14336 x 4096, in bf16. The TPU
  // compiler's output for MaxText shows the same bytes for the same layer.
  const std::int64_t h = 4096;
  static_assert(bf16 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096) == 436'207'616);
  const CompiledStep step = compile_step("llama-3.1-8b", Mesh({{"fsdp", 4}}), R"("fsdp")");
  CHECK(gathered_matrices(step.plan, "model.layers.7") ==
        bf16 * (2 * h * h + 2 * 1024 * h + 3 * 14336 * h));
}

TEST_CASE(
    "fsdp: one layer's forward all-gather of Qwen3-1.7B over 4 devices is 100,663,296 bytes") {
  // Hidden 2048; 16 query and 8 key/value heads of 128; feed-forward 6144.
  static_assert(bf16 * 2048 * (2 * 16 * 128 + 2 * 8 * 128 + 3 * 6144) == 100'663'296);
  const CompiledStep step = compile_step("qwen3-1.7b", Mesh({{"fsdp", 4}}), R"("fsdp")");
  CHECK(gathered_matrices(step.plan, "model.layers.27") == 100'663'296);
}

TEST_CASE("dp: the gradient all-reduce carries as many bytes as there are parameter bytes") {
  const CompiledStep step = compile_step("llama-3.1-8b", Mesh({{"data", 8}}), R"("dp")");
  CHECK(payload(step.plan, [](const Collective&) { return true; }) == bf16 * 8'030'261'248);
  CHECK(payload(step.plan, is_all_reduce) == bf16 * 8'030'261'248);
}

TEST_CASE("tp=8: two all-reduces of batch x sequence x hidden per layer and direction") {
  // Megatron-LM (arXiv:1909.08053, figure 4): after attention's and the MLP's row-parallel matmul
  // in forward, after their column-parallel matmuls in backward.
  const std::int64_t batch = 4, sequence = 8192, layers = 32, hidden = 4096;
  const CompiledStep step = compile_step("llama-3.1-8b", Mesh({{"model", 8}}), R"("tp")",
                                         {.batch = batch, .sequence = sequence});
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    std::int64_t in_layers = 0;
    for (const Task& task : step.plan.programs[0].tasks) {
      if (task.kind != TaskKind::collective || task.phase != phase || task.layer < 0) continue;
      const Collective& c = step.plan.collectives[static_cast<std::size_t>(task.work)];
      CHECK(c.kind == CollectiveKind::all_reduce);
      CHECK(c.payload.count() == bf16 * batch * sequence * hidden);
      ++in_layers;
    }
    CHECK(in_layers == 2 * layers);
  }
}

TEST_CASE("fsdp moves 1.5 times the bytes of dp") {
  // dp: all-reduce, 2 (n-1)/n P. fsdp: gather, gather, reduce-scatter, 3 (n-1)/n P.
  // (ZeRO, arXiv:1910.02054, section 7.)
  for (const std::int64_t n : {2, 8, 64}) {
    const std::int64_t dp =
        wire_bytes(compile_step("llama-3.1-8b", Mesh({{"data", n}}), R"("dp")").plan);
    const std::int64_t fsdp =
        wire_bytes(compile_step("llama-3.1-8b", Mesh({{"fsdp", n}}), R"("fsdp")").plan);
    CHECK(2 * fsdp == 3 * dp);
  }
}

TEST_CASE("ZeRO-1 and ZeRO-2 move what their definitions say") {
  // Stage 1: gradients all-reduced whole, updated parameters gathered: 2 + 1 times (n-1)/n P.
  // Stage 2: gradients reduce-scattered: 1 + 1.
  const std::int64_t parameters = 8'030'261'248;
  const auto wire = [&](const char* strategy) {
    return wire_bytes(compile_step("llama-3.1-8b", Mesh({{"data", 8}}), strategy).plan);
  };
  const std::int64_t unit = bf16 * parameters / 8 * 7;
  CHECK(wire(R"("dp")") == 2 * unit);
  CHECK(wire(R"({"name": "dp", "zero_stage": 1})") == 3 * unit);
  CHECK(wire(R"({"name": "dp", "zero_stage": 2})") == 2 * unit);
}

TEST_CASE("Keeping what was gathered saves the second gather") {
  const auto gathers = [](const char* strategy) {
    const CompiledStep step = compile_step("llama-3.1-8b", Mesh({{"fsdp", 8}}), strategy);
    return count(step.plan,
                 [](const Collective& c) { return c.kind == CollectiveKind::all_gather; });
  };
  // 32 layers and the root; FSDP2 itself keeps the root: 33 gathers in forward, 32 in backward.
  CHECK(gathers(R"("fsdp")") == 33 + 33);
  CHECK(gathers(R"({"name": "fsdp", "reshard_root_after_forward": false})") == 33 + 32);
  CHECK(
      gathers(
          R"({"name": "fsdp", "reshard_after_forward": false, "reshard_root_after_forward": false})") ==
      33);
}

TEST_CASE("hsdp: shards are reduce-scattered inside, all-reduced between the replicas") {
  // 8 replicas of 4 shards: the all-reduce carries a quarter of the gradients.
  const Mesh mesh({{"data", 8}, {"fsdp", 4}});
  const Step one_each{.batch = mesh.devices(), .sequence = usual_step().sequence};
  const CompiledStep step = compile_step("llama-3.1-8b", mesh, R"("hsdp")", one_each);
  const std::int64_t gradients = bf16 * 8'030'261'248;
  CHECK(payload(step.plan, [](const Collective& c) {
          return c.kind == CollectiveKind::reduce_scatter;
        }) == gradients);
  CHECK(payload(step.plan, is_all_reduce) == gradients / 4);
  CHECK(count(step.plan, is_gradient) == 2 * 33);
}

// Heads are not cut, and 32 queries' heads go over 32 devices where those of keys and values are
// repeated; two of 64 devices do the same. GPT-2's 12 over 8 do not go at all: each device does
// all.
TEST_CASE("Heads that do not go evenly over the model axis are repeated, and a warning says so") {
  const auto warnings = [](const char* model, std::int64_t devices) {
    Step step = usual_step();
    step.sequence = 512;
    return compile_step(model, Mesh({{"tp", devices}}), R"("tp")", step).warnings;
  };
  CHECK(warnings("llama-3.1-8b", 8).empty());
  CHECK(warnings("llama-3.1-8b", 32).empty());
  CHECK(
      warnings("llama-3.1-8b", 64) ==
      std::vector<std::string>{
          "32 heads (8 of keys and values) do not go evenly over the 64 devices of axis \"tp\": "
          "attention is computed 2.0 times, by devices that repeat each other's work; Megatron and "
          "torchtitan refuse it"});
  CHECK(warnings("gpt2", 4).empty());
  CHECK(
      warnings("gpt2", 8) ==
      std::vector<std::string>{
          "12 heads do not go evenly over the 8 devices of axis \"tp\": attention is computed 8.0 "
          "times, by devices that repeat each other's work; Megatron and torchtitan refuse it"});
}

// Whatever strategy it is: rules that split only the feed-forward layers leave attention whole, and
// those that split the fused q, k, v of 12 heads over 8 devices cannot do better.
TEST_CASE("Attention that rules leave whole is repeated, and a warning says so") {
  const auto warnings = [](std::int64_t devices, const std::string& rules) {
    Step step = usual_step();
    step.sequence = 512;
    return compile_step("gpt2", Mesh({{"tp", devices}}),
                        R"({"name": "rules", "rules": [)" + rules + "]}", step)
        .warnings;
  };
  CHECK(warnings(4, R"({"pattern": "mlp.c_fc.weight", "spec": [null, "tp"]})") ==
        std::vector<std::string>{"attention is computed 4.0 times: nothing splits it over axis "
                                 "\"tp\", whose 4 devices repeat each other's work"});
  CHECK(warnings(8, R"({"pattern": "attn.c_attn.weight", "spec": [null, "tp"]})") ==
        std::vector<std::string>{
            "12 heads do not go evenly over the 8 devices of axis \"tp\": attention is computed "
            "8.0 times, by devices that repeat each other's work"});
}

// Of 16 parts of all pairs the i-th of four parts of the queries has 2i - 1: the last 7, the
// mean 4.
TEST_CASE("A note says that causal attention over parts of the sequence is counted as balanced") {
  Step step = usual_step();
  step.sequence = 512;
  const auto notes = [&](const char* model, const std::string& strategy, const Mesh& mesh) {
    return compile_step(model, mesh, strategy, step).plan.notes;
  };
  const std::string note =
      "causal attention over 4 parts of the sequence (cp) is counted as if balanced, as zigzag "
      "ring attention is; of contiguous parts the last has 1.75 times the mean";
  const auto with = notes("gpt2", R"({"name": "dp", "sequence_axes": "cp"})", Mesh({{"cp", 4}}));
  CHECK(std::count(with.begin(), with.end(), note) == 1);
  const auto without = notes("gpt2", R"("tp")", Mesh({{"tp", 4}}));
  CHECK(std::count(without.begin(), without.end(), note) == 0);
}
