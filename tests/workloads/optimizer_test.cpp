#include <catch2/catch.hpp>

#include "graph_helpers.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

std::int64_t state_bytes(const Workload& w) {
  std::int64_t bytes = 0;
  for (const Block& block : w.blocks) {
    for (const Op& op : block.optimizer) {
      for (const Operand& result : op.results) {
        if (at(w, result.tensor).role != TensorRole::optimizer_state) continue;
        bytes += block.instances() * w.bytes(result.tensor).count();
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("AdamW with fp32 master and moments holds 12 bytes per parameter") {
  Workload w = training_graph("llama-3.1-8b", 1, 128);
  add_optimizer(w, {});
  CHECK(state_bytes(w) == 12 * 8'030'261'248);
}

TEST_CASE("Without a master, and with bf16 moments, it holds 4; SGD holds its momentum") {
  Workload lean = training_graph("gpt2", 1, 128);
  add_optimizer(lean, {.master = std::nullopt, .moments = DType::bf16});
  CHECK(state_bytes(lean) == 4 * 124'439'808);
  Workload sgd = training_graph("gpt2", 1, 128);
  add_optimizer(sgd, {.kind = "sgd", .master = std::nullopt});
  CHECK(state_bytes(sgd) == 4 * 124'439'808);
}

// Chen et al., Symbolic Discovery of Optimization Algorithms (arXiv:2302.06675): one moment.
TEST_CASE("Lion holds one moment, Adam as much as AdamW") {
  Workload lion = training_graph("gpt2", 1, 128);
  add_optimizer(lion, {.kind = "lion", .master = std::nullopt});
  CHECK(state_bytes(lion) == 4 * 124'439'808);
  Workload adam = training_graph("gpt2", 1, 128);
  add_optimizer(adam, {.kind = "adam", .master = std::nullopt});
  CHECK(state_bytes(adam) == 8 * 124'439'808);
}

// Shazeer and Stern (arXiv:1804.04235): of a matrix [n, m] n + m numbers, of a vector all. GPT-2,
// 12 layers, h = 768, vocabulary 50257, 1024 positions: tables 50257 + 768 and 1024 + 768; a layer
// 768 + 2304, 768 + 768, 2 (768 + 3072) of matrices, 9984 of biases and norms; a last norm 2 * 768.
TEST_CASE("Adafactor holds a matrix's rows and columns, a vector whole") {
  Workload w = training_graph("gpt2", 1, 128);
  add_optimizer(w, {.kind = "adafactor", .master = std::nullopt});
  const std::int64_t layer = (768 + 2304) + (768 + 768) + 2 * (768 + 3072) + 9984;
  CHECK(state_bytes(w) == 4 * (50257 + 768 + 1024 + 768 + 12 * layer + 2 * 768));
}

// Dettmers et al. (arXiv:2110.02861), as bitsandbytes stores it: two bytes for each number and
// eight for each block of 256. Of GPT-2 all matrices; vectors have fewer than 4,096 numbers, 8
// bytes each.
TEST_CASE("Adam in 8 bits holds two bytes for each number and the scales of blocks") {
  Workload w = training_graph("gpt2", 1, 128);
  add_optimizer(w, {.kind = "adamw8bit", .master = std::nullopt});
  const std::int64_t vectors = 12 * 9984 + 2 * 768;
  const std::int64_t matrices = 124'439'808 - vectors;
  CHECK(state_bytes(w) == 2 * matrices + 8 * matrices / 256 + 8 * vectors);
}

TEST_CASE("Without an optimizer nothing is updated") {
  Workload w = training_graph("gpt2", 1, 128);
  add_optimizer(w, {.kind = "none"});
  CHECK(state_bytes(w) == 0);
  for (const Block& block : w.blocks) CHECK(block.optimizer.empty());
}

TEST_CASE("Every parameter is updated once, in place, in the block that uses it first") {
  Workload w = training_graph("qwen3-1.7b", 1, 128);
  add_optimizer(w, {});
  std::set<TensorId> updated;
  for (std::size_t b = 0; b < w.blocks.size(); ++b) {
    for (const Op& op : w.blocks[b].optimizer) {
      const TensorId parameter = op.operands[0].tensor;
      CHECK(updated.insert(parameter).second);
      CHECK(at(w, parameter).block == static_cast<int>(b));
      CHECK(op.in_place.size() == op.results.size());
      REQUIRE(op.results.size() + 1 == op.operands.size());
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        CHECK(op.results[i].tensor == op.operands[i].tensor);
      }
      const Tensor& gradient = at(w, op.operands.back().tensor);
      CHECK(gradient.role == TensorRole::parameter_gradient);
      CHECK(gradient.primal == parameter);
    }
  }
  CHECK(updated.size() == parameters(w).size());
}

TEST_CASE("State is named as PyTorch names it") {
  Workload w = training_graph("gpt2", 1, 128);
  add_optimizer(w, {});
  const Op& op = block_of(w, "transformer.h.{}").optimizer[0];
  CHECK(at(w, op.results[0].tensor).name == "transformer.h.{}.ln_1.weight");
  CHECK(at(w, op.results[1].tensor).name == "transformer.h.{}.ln_1.weight.master");
  CHECK(at(w, op.results[2].tensor).name == "transformer.h.{}.ln_1.weight.exp_avg");
  CHECK(at(w, op.results[3].tensor).name == "transformer.h.{}.ln_1.weight.exp_avg_sq");
}

TEST_CASE("An unknown optimizer is an error") {
  Workload w = training_graph("gpt2", 1, 128);
  OptimizerOptions options;
  options.kind = "sophia";
  CHECK_THROWS_WITH(add_optimizer(w, options),
                    "/workload/optimizer: unknown optimizer \"sophia\"; known are adamw, adam, "
                    "lion, adafactor, sharded_adafactor, "
                    "adam8bit, adamw8bit, sgd, none");
}
