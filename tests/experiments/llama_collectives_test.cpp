// One step twice: from the model's config.json (examples/llama-3.1-8b-jax-fsdp16.json), and from
// the StableHLO that jax makes of it (tests/golden/xla_models). Both send the same: every
// collective of the step, in kind, type, bytes and number. What that is is derived from the model
// below.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "tests/experiments/step_collectives.hpp"

namespace shardsim::test {

// 32 layers, hidden size 4096, 1024 columns of keys and values, 14336 of the feed-forward network,
// 128256 tokens; a matrix is gathered in the forward and in the backward pass, its gradient
// scattered once.
TEST_CASE("Llama 3.1 8B under FSDP sends the same from config.json and from StableHLO") {
  constexpr std::int64_t hidden = 4096;
  constexpr std::int64_t tokens = std::int64_t{16} * 4096;
  constexpr std::int64_t head = 128256 * hidden * 2;  // bytes
  constexpr int layers = 32;
  CollectiveCounts expected;
  const std::map<std::int64_t, int> matrices{{1024 * hidden * 2, 2},    // k, v
                                             {hidden * hidden * 2, 2},  // q, o
                                             {14336 * hidden * 2, 3}};  // gate, up, down
  for (const auto& [bytes, number] : matrices) {
    expected[{CollectiveKind::all_gather, "data", DType::bf16, bytes}] = 2 * number * layers;
    expected[{CollectiveKind::reduce_scatter, "data", DType::bf16, bytes}] = number * layers;
  }
  expected[{CollectiveKind::all_gather, "data", DType::bf16, head}] = 1;
  expected[{CollectiveKind::reduce_scatter, "data", DType::bf16, head}] = 1;
  // Tokens are looked up in the shards of the embedding: their numbers are gathered, what each
  // device found is added up, the gradients are gathered to be added to the shards.
  expected[{CollectiveKind::all_gather, "data", DType::i32, tokens * 4}] = 1;
  expected[{CollectiveKind::reduce_scatter, "data", DType::bf16, tokens * hidden * 2}] = 1;
  expected[{CollectiveKind::all_gather, "data", DType::bf16, tokens * hidden * 2}] = 1;
  // Two norms a layer and the last one, their gradients summed before they are cast; the loss.
  expected[{CollectiveKind::all_reduce, "data", DType::f32, hidden * 4}] = 2 * layers + 1;
  expected[{CollectiveKind::all_reduce, "data", DType::f32, 4}] = 1;
  CHECK(expected == collectives_of_program("llama3-8b-train-fsdp-16-v5p-16-b16-s4096-bf16m-rfull"));
  CHECK(expected ==
        collectives_of_experiment(SHARDSIM_SOURCE_DIR "/examples/llama-3.1-8b-jax-fsdp16.json"));
}

}  // namespace shardsim::test
