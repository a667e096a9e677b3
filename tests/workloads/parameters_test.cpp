// Parameter counts, from the models' dimensions.
#include <catch2/catch.hpp>

#include "graph_helpers.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

std::int64_t llama_count(std::int64_t layers, std::int64_t hidden, std::int64_t kv_dim,
                         std::int64_t ffn, std::int64_t vocab) {
  // q, o: hidden^2; k, v: kv_dim * hidden; gate, up, down; two norms. Then the embedding, the final
  // norm and the output weights.
  const std::int64_t layer =
      2 * hidden * hidden + 2 * kv_dim * hidden + 3 * hidden * ffn + 2 * hidden;
  return layers * layer + 2 * vocab * hidden + hidden;
}

}  // namespace

TEST_CASE("Llama 3.1 has the published number of parameters") {
  // Counts of the released checkpoints (huggingface.co/meta-llama, "total_size" of the safetensors
  // index divided by two bytes), and the same from the dimensions.
  CHECK(llama_count(32, 4096, 1024, 14336, 128256) == 8'030'261'248);
  CHECK(parameter_count(forward_graph("llama-3.1-8b", 1, 16)) == 8'030'261'248);
  CHECK(llama_count(80, 8192, 1024, 28672, 128256) == 70'553'706'496);
  CHECK(parameter_count(forward_graph("llama-3.1-70b", 1, 16)) == 70'553'706'496);
  CHECK(llama_count(126, 16384, 1024, 53248, 128256) == 405'853'388'800);
  CHECK(parameter_count(forward_graph("llama-3.1-405b", 1, 16)) == 405'853'388'800);
}

TEST_CASE("Qwen3-1.7B: the tied embedding counts once") {
  // q, o 2048 * 2048; k, v 1024 * 2048; gate, up, down 2048 * 6144; norms 2 * 2048 + 2 * 128.
  const std::int64_t layer =
      2 * 2048 * 2048 + 2 * 1024 * 2048 + 3 * 2048 * 6144 + 2 * 2048 + 2 * 128;
  const std::int64_t total = 28 * layer + 151936 * 2048 + 2048;
  const Workload w = forward_graph("qwen3-1.7b", 1, 16);
  CHECK(total == 1'720'574'976);
  CHECK(parameter_count(w) == total);
  for (const ParameterView& view : parameters(w))
    CHECK(at(w, view.tensor).name != "lm_head.weight");
}

TEST_CASE("GPT-2 has 124,439,808 parameters") {
  // c_attn 768 * 2304 + 2304, c_proj 768 * 768 + 768, c_fc 768 * 3072 + 3072, c_proj 3072 * 768 +
  // 768, two norms of 2 * 768; then wte, wpe and ln_f.
  const std::int64_t layer =
      768 * 2304 + 2304 + 768 * 768 + 768 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768;
  const std::int64_t total = 12 * layer + 50257 * 768 + 1024 * 768 + 2 * 768;
  CHECK(total == 124'439'808);
  CHECK(parameter_count(forward_graph("gpt2", 1, 16)) == total);
}

TEST_CASE("ViT-B/16 has 86,566,120 parameters in 199 leaves") {
  // Patches 16*16*3*768 + 768, positions 196 * 768, twelve layers as GPT-2's, norm, head.
  const std::int64_t layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768;
  const std::int64_t total =
      16 * 16 * 3 * 768 + 768 + 196 * 768 + 12 * layer + 2 * 768 + 768 * 1000 + 1000;
  const Workload w = forward_graph("vit-b16", 1, std::nullopt);
  CHECK(total == 86'566'120);
  CHECK(parameter_count(w) == total);
  std::int64_t leaves = 0;
  for (const ParameterView& view : parameters(w)) leaves += view.instances();
  CHECK(leaves == 3 + 12 * 16 + 4);
}

TEST_CASE("A layer's seven matrices of Llama-3.1-8B take 436,207,616 bytes in bf16") {
  // What XLA gathers per layer for MaxText under FSDP, from its own output; Qwen3-1.7B 100,663,296.
  const auto matrix_bytes = [](const Workload& w) {
    std::int64_t bytes = 0;
    for (const ParameterView& view : parameters(w)) {
      if (view.instances() > 1 && view.shape.size() == 2) bytes += w.bytes(view.tensor).count();
    }
    return bytes;
  };
  CHECK(matrix_bytes(forward_graph("llama-3.1-8b", 1, 16)) == 436'207'616);
  CHECK(matrix_bytes(forward_graph("qwen3-1.7b", 1, 16)) == 100'663'296);
}
