#include <catch2/catch.hpp>

#include "graph_helpers.hpp"

using namespace shardsim;
using namespace shardsim::test;
using Policy = Rematerialization::Policy;

namespace {

std::vector<std::string> recomputed_functions(const Block& block) {
  std::vector<std::string> functions;
  for (const Op& op : block.backward) {
    if (op.recompute) functions.emplace_back(name_of(op.function));
  }
  return functions;
}

}  // namespace

TEST_CASE("full keeps what enters a layer, to the byte of PyTorch's checkpointing") {
  // tests/golden/torch/fsdp/l8b-w8-acfull.json, "activation" after_forward: 6,484,426,760, of which
  // 8 the loss and its divisor: 32 block inputs of 8192 * 4096 * 2, the final norm's input and
  // output, its rstd, and the fp32 log-probabilities.
  const Workload w = training_graph("llama-3.1-8b", 1, 8192, {Policy::full, {}});
  CHECK(kept_bytes(w) == 6'484'426'760 - 8);
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(kept(w, layer) == std::set<TensorId>{layer.carries_in[0]});
}

TEST_CASE("full repeats all but the last matmul and residual add") {
  const Workload w = training_graph("llama-3.1-8b", 1, 128, {Policy::full, {}});
  CHECK(recomputed_functions(block_of(w, "model.layers.{}")) ==
        std::vector<std::string>{"rms_norm", "matmul", "matmul", "matmul", "rope", "rope",
                                 "attention", "matmul", "add", "rms_norm", "matmul", "silu",
                                 "matmul", "multiply"});
  CHECK(recomputed_functions(block_of(w, "head")).empty());
  CHECK(recomputed_functions(block_of(w, "embedding")).empty());
}

TEST_CASE("selective repeats no matmul and no attention") {
  // Kept per token, bf16: block input, q, attention out, o_proj 4 * 2h; k, v 4 kv; gate, up 4 f;
  // logsumexp 4 a. The down projection's result is in nobody's way: the next layer's input.
  const Workload w = training_graph("llama-3.1-8b", 1, 1024, {Policy::selective, {}});
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(recomputed_functions(layer) == std::vector<std::string>{"rms_norm", "rope", "rope", "add",
                                                                "rms_norm", "silu", "multiply"});
  CHECK(kept_bytes(w, layer) == 1024 * (4 * 2 * 4096 + 4 * 1024 + 4 * 14336 + 4 * 32));
}

TEST_CASE("named keeps what its expressions find in repeated blocks") {
  const Workload w = training_graph(
      "llama-3.1-8b", 1, 1024,
      {Policy::named, {R"(layers\.\d+\.mlp\.(gate|up)_proj$)", "attention(.logsumexp)?$"}});
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(names(w, kept(w, layer)) ==
        std::set<std::string>{"model.layers.{}.input", "model.layers.{}.mlp.gate_proj",
                              "model.layers.{}.mlp.up_proj", "model.layers.{}.self_attn.attention",
                              "model.layers.{}.self_attn.attention.logsumexp"});
  CHECK(with_function(layer.backward, "attention").empty());
}

TEST_CASE("Repeated values say what they repeat and come before the first gradient") {
  const Workload w = training_graph("gpt2", 1, 128, {Policy::full, {}});
  const Block& layer = block_of(w, "transformer.h.{}");
  bool repeating = true;
  for (const Op& op : layer.backward) {
    CHECK((repeating || !op.recompute));
    repeating = op.recompute;
    if (!op.recompute) continue;
    for (const Operand& result : op.results) {
      const Tensor& repeated = at(w, result.tensor);
      REQUIRE(repeated.primal != no_tensor);
      CHECK(repeated.name == at(w, repeated.primal).name + ".recomputed");
      CHECK(repeated.dims == at(w, repeated.primal).dims);
      CHECK(repeated.role == TensorRole::activation);
    }
  }
}

TEST_CASE("Expressions that cannot be meant are errors") {
  Workload w = forward_graph("gpt2", 1, 128);
  const auto add = [&](const char* expression) { add_backward(w, {Policy::named, {expression}}); };
  CHECK_THROWS_WITH(
      add("q_proj"),
      "/workload/rematerialization/save/0: pattern \"q_proj\" matches no activation of "
      "a repeated block");
  w = forward_graph("gpt2", 1, 128);
  CHECK_THROWS_WITH(add("lm_head"),
                    "/workload/rematerialization/save/0: pattern \"lm_head\" matches no activation "
                    "of a repeated block");
  w = forward_graph("gpt2", 1, 128);
  CHECK_THROWS_WITH(
      add(R"(h\.3\.attn\.c_attn)"),
      "/workload/rematerialization/save/0: the pattern tells transformer.h.0.attn.c_attn "
      "and transformer.h.3.attn.c_attn apart, which is not supported");
  w = forward_graph("gpt2", 1, 128);
  CHECK_THROWS_AS(add("("), InputError);
}
