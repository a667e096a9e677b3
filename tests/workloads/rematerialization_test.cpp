#include <catch2/catch.hpp>

#include "graph_helpers.hpp"
#include "workloads/step/saved_names.hpp"

using namespace shardsim;
using namespace shardsim::test;
using Policy = Rematerialization::Policy;

namespace {

Rematerialization every(std::int64_t count) {
  return {Policy::full, {}, Rematerialization::Layers::every, count};
}

Rematerialization first(std::int64_t count) {
  return {Policy::full, {}, Rematerialization::Layers::block, count};
}

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

TEST_CASE("Every second layer is checkpointed, to the byte of PyTorch's") {
  // tests/golden/torch/fsdp/l8b-w8-acevery2.json, "activation" after_forward: 27,440,218,504, which
  // is half of l8b-w8-base's 48,396,010,248 and half of l8b-w8-acfull's 6,484,426,760. Beside the
  // loss and its divisor (8) half of what base has and our graph has not (backward_test.cpp).
  const Workload w = training_graph("llama-3.1-8b", 1, 8192, every(2));
  CHECK(kept_bytes(w) == 27'440'218'504 - 16 * 24 - 8);
  REQUIRE(w.blocks.size() == 4);
  CHECK(w.blocks[1].numbers.front() == 0);
  CHECK(w.blocks[2].numbers.front() == 1);  // torchtitan counts from 1: the second, the fourth
  CHECK(w.blocks[1].instances() == 16);
  CHECK(w.blocks[2].instances() == 16);
  CHECK(recomputed_functions(w.blocks[1]).empty());
  CHECK(kept(w, w.blocks[2]) == std::set<TensorId>{w.blocks[2].carries_in[0]});
  // Parameters are as many, and the order is the model's.
  CHECK(parameter_count(w) == 8'030'261'248);
  for (std::size_t i = 1; i < 33; ++i) {
    const BlockInstance& layer = w.order[i];
    CHECK(w.blocks[static_cast<std::size_t>(layer.block)]
              .numbers[static_cast<std::size_t>(layer.ordinal)] == static_cast<int>(i) - 1);
  }
}

TEST_CASE("Megatron's block method repeats the first layers of each chunk, to their ends") {
  const auto numbers = [](const Workload& w) {
    for (const Block& block : w.blocks) {
      if (!recomputed_functions(block).empty()) return block.numbers;
    }
    return std::vector<std::int32_t>{};
  };
  Workload w = forward_graph("llama-3.1-8b", 1, 128);
  add_backward(w, first(3));
  CHECK(numbers(w) == std::vector<std::int32_t>{0, 1, 2});
  // Two chunks: the embedding and 16 layers; 16 layers and the head.
  w = forward_graph("llama-3.1-8b", 1, 128);
  add_backward(w, first(3), {0, 17});
  CHECK(numbers(w) == std::vector<std::int32_t>{0, 1, 2, 16, 17, 18});
  // All of them: one kind.
  w = forward_graph("llama-3.1-8b", 1, 128);
  add_backward(w, first(40));
  CHECK(w.blocks.size() == 3);
  const std::vector<std::string> functions = recomputed_functions(w.blocks[1]);
  REQUIRE(functions.size() == w.blocks[1].forward.size());
  CHECK(functions.back() == "add");
}

TEST_CASE("A module is repeated whole: Megatron's core_attn and mlp") {
  // tests/golden/megatron: l8b-tp2-dp4 keeps 23,172,808,704 bytes of activations at its peak,
  // l8b-tp2-dp4-acsel (core_attn, mlp) 11,881,742,464: 43,072 less for each of 8192 tokens and 32
  // layers. With TP 2 these are 6 f of an MLP whose activation is one kernel and 4 for each head's
  // logsumexp. Here the gate's activation is kept by itself: 8 f.
  const Workload none = training_graph("llama-3.1-8b", 1, 1024);
  const Workload w =
      training_graph("llama-3.1-8b", 1, 1024, {Policy::modules, {"core_attn", "mlp"}});
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(kept_bytes(none, block_of(none, "model.layers.{}")) - kept_bytes(w, layer) ==
        1024 * (8 * 14336 + 4 * 32));
  CHECK((6 * 14336 + 4 * 32) / 2 == 43'072);
  // The MLP before its gradient, its last product with it; then attention.
  CHECK(recomputed_functions(layer) ==
        std::vector<std::string>{"matmul", "silu", "matmul", "multiply", "matmul", "attention"});
  CHECK(layer.backward.front().recompute);
  CHECK(with_function(layer.backward, "attention_backward").size() == 1);
  const auto attention =
      std::find_if(layer.backward.begin(), layer.backward.end(),
                   [](const Op& op) { return op.recompute && op.function == Function::attention; });
  CHECK(std::next(attention)->function == Function::attention_backward);
}

TEST_CASE("Norms and activations as modules are made again where they are read") {
  // Kept of none but not of these: two norms' results 2 * 2h; silu's and the product's 2 * 2f. Each
  // norm keeps its input and its rstd: the repeated one makes the latter again.
  const Workload none = training_graph("llama-3.1-8b", 1, 1024);
  const Workload w =
      training_graph("llama-3.1-8b", 1, 1024, {Policy::modules, {"layernorm", "activation"}});
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(kept_bytes(none, block_of(none, "model.layers.{}")) - kept_bytes(w, layer) ==
        1024 * (2 * (2 * 4096 + 4) + 2 * 2 * 14336));
  std::vector<std::string> functions = recomputed_functions(layer);
  std::sort(functions.begin(), functions.end());
  CHECK(functions == std::vector<std::string>{"multiply", "rms_norm", "rms_norm", "silu"});
}

TEST_CASE("Policies of MaxText keep what their names mean") {
  const auto layer_of = [](const Workload& w) { return block_of(w, "model.layers.{}"); };
  const auto of = [](const char* policy) {
    return training_graph("llama-3.1-8b", 1, 1024, {Policy::of_jax, {policy}});
  };
  // Queries and keys after their rotation, values: 2h + 2 * 2 kv; and what enters, 2h.
  Workload w = of("save_qkv_proj");
  CHECK(kept_bytes(w, layer_of(w)) == 1024 * (2 * 4096 + 2 * 4096 + 2 * 2 * 1024));
  // Neither q, k nor v again, but the norm before them, which their gradients read, and attention.
  CHECK(recomputed_functions(layer_of(w)) ==
        std::vector<std::string>{"rms_norm", "attention", "matmul", "add", "rms_norm", "matmul",
                                 "silu", "matmul", "multiply"});
  w = of("save_dot_with_context_except_mlp");  // attention's result with its logsumexp, o_proj's
  CHECK(kept_bytes(w, layer_of(w)) ==
        1024 * (2 * 4096 + 2 * 4096 + 2 * 2 * 1024 + (2 * 4096 + 4 * 32) + 2 * 4096));
  CHECK(with_function(layer_of(w).backward, "attention").empty());
  w = of("minimal");  // q, k, v, o_proj's, gate's and up's results; not attention's
  CHECK(kept_bytes(w, layer_of(w)) ==
        1024 * (2 * 4096 + 2 * 4096 + 2 * 2 * 1024 + 2 * 4096 + 2 * 2 * 14336));
  CHECK(with_function(layer_of(w).backward, "attention").size() == 1);
  w = of("nothing_saveable");
  CHECK(kept_bytes(w, layer_of(w)) == 1024 * 2 * 4096);
  w = of("everything_saveable");
  CHECK(recomputed_functions(layer_of(w)).empty());
  // The same names say it themselves.
  w = training_graph("llama-3.1-8b", 1, 1024,
                     {Policy::named, {"decoder_layer_input", "q", "k", "v"}});
  CHECK(kept_bytes(w, layer_of(w)) == 1024 * (2 * 4096 + 2 * 4096 + 2 * 2 * 1024));
}

TEST_CASE("Every policy and every name is one that layers can have") {
  for (const std::string& policy : saving_policies()) {
    CHECK_NOTHROW(training_graph("llama-3.1-8b", 1, 128, {Policy::of_jax, {policy}}));
  }
  for (const char* name :
       {"decoder_layer_input", "query_proj", "key_proj", "value_proj", "qkv_proj", "context",
        "out_proj", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo"}) {
    CHECK_NOTHROW(training_graph("llama-3.1-8b", 1, 128, {Policy::named, {name}}));
  }
}

// Megatron's "moe" is all of MoELayer.forward (moe_layer.py): the router, rows there and back.
TEST_CASE("Experts that are repeated exchange their rows again") {
  Workload w = build_workload(load_model_config("mixtral-8x7b", "", {}),
                              {.batch = 1, .sequence = 128, .exchange = ExpertExchange{}});
  add_backward(w, {Policy::modules, {"moe"}});
  const Block& layer = block_of(w, "model.layers.{}");
  for (const Op& op : layer.forward) {
    if (op.module != OpModule::experts) continue;
    CHECK(std::any_of(layer.backward.begin(), layer.backward.end(), [&](const Op& repeated) {
      return repeated.recompute && repeated.name == op.name && repeated.function == op.function;
    }));
  }
}

TEST_CASE("Modules and names that a model lacks are errors") {
  CHECK_THROWS_WITH(training_graph("llama-3.1-8b", 1, 128, {Policy::modules, {"mlp", "moe"}}),
                    "/workload/rematerialization/modules/1: no layer of llama-3.1-8b has a module "
                    "\"moe\"");
  CHECK_THROWS_WITH(training_graph("llama-3.1-8b", 1, 128, {Policy::named, {"mla_q"}}),
                    "/workload/rematerialization/save/0: no layer of llama-3.1-8b has a \"mla_q\"");
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
