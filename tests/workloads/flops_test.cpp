// Operations of one step, as PaLM counts them (arXiv:2204.02311, appendix B): six per matmul
// parameter and token, and 12 * layers * width * sequence per token for attention without its mask,
// of which a causal mask leaves half.
#include <catch2/catch.hpp>

#include "graph_helpers.hpp"

using namespace shardsim;
using namespace shardsim::test;

TEST_CASE("Llama-3.1-8B: 6 N T + 12 L h s T") {
  const double tokens = 2.0 * 8192;
  // All parameters but the embedding, which is looked up, and the 65 norms.
  const double matmul_parameters = 8'030'261'248.0 - 128256.0 * 4096 - 65.0 * 4096;
  const double attention = 12.0 * 32 * (32 * 128) * 8192 * tokens;
  const Workload w = training_graph("llama-3.1-8b", 2, 8192);
  CHECK(model_flops(w).full_attention.count() == 6 * matmul_parameters * tokens + attention);
  CHECK(model_flops(w).needed.count() == 6 * matmul_parameters * tokens + attention / 2);
}

TEST_CASE("Rematerialization repeats work, the model's operations stay") {
  const Rematerialization full{Rematerialization::Policy::full, {}};
  CHECK(model_flops(training_graph("llama-3.1-8b", 2, 8192, full)) ==
        model_flops(training_graph("llama-3.1-8b", 2, 8192)));
}

TEST_CASE("GPT-2: the tied output weights work, biases and positions do not count") {
  const double tokens = 4.0 * 1024;
  const double matmul_parameters = 12.0 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072) + 50257.0 * 768;
  const double attention = 12.0 * 12 * 768 * 1024 * tokens;
  const ModelFlops flops = model_flops(training_graph("gpt2", 4, 1024));
  CHECK(flops.full_attention.count() == 6 * matmul_parameters * tokens + attention);
  CHECK(flops.needed.count() == 6 * matmul_parameters * tokens + attention / 2);
}

TEST_CASE("ViT-B/16: no gradient flows into the image") {
  const double images = 4;
  const double tokens = images * 196;
  const double layers = 6 * 12.0 * (4 * 768 * 768 + 2 * 768 * 3072) * tokens;
  const double patches = 4 * (16.0 * 16 * 3 * 768) * tokens;  // forward and the kernel's gradient
  const double head = 6 * (768.0 * 1000) * images;            // after pooling: once per image
  const double attention = 12.0 * 12 * 768 * 196 * tokens;
  const ModelFlops flops = model_flops(training_graph("vit-b16", 4, std::nullopt));
  CHECK(flops.full_attention.count() == layers + patches + head + attention);
  CHECK(flops.needed == flops.full_attention);  // no mask
}

TEST_CASE("A causal mask halves attention's work") {
  const Workload w = training_graph("llama-3.1-8b", 1, 4096);
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(with_function(layer.forward, "attention")[0]->work_fraction == 0.5);
  CHECK(with_function(layer.backward, "attention_backward")[0]->work_fraction == 0.5);
  // FlashAttention's backward pass computes the scores again: five matmuls, not four.
  CHECK(traits(Function::attention_backward).flops == 10);
}
