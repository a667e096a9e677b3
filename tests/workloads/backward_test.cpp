// The derived backward pass: what it keeps, in which order sums are made, what it leaves out.
#include <catch2/catch.hpp>

#include <map>

#include "base/json.hpp"
#include "graph_helpers.hpp"
#include "workloads/models/build.hpp"
#include "workloads/step/step.hpp"

using namespace shardsim;
using namespace shardsim::test;

TEST_CASE("Llama-3.1-8B keeps 168,072 bytes per token and layer, as PyTorch does") {
  // h = 4096, kv = 1024, f = 14336, a = 32 heads, bf16:
  //   2h * 6  block input, residual after attention, two norm outputs, q after rope, attention out
  //   4 kv    k after rope, v
  //   8 f     gate, up, silu(gate), their product
  //   4 a     logsumexp, fp32
  //   8       rstd of two norms, fp32
  const std::int64_t expected = 2 * 4096 * 6 + 4 * 1024 + 8 * 14336 + 4 * 32 + 8;
  REQUIRE(expected == 168'072);
  const Workload w = training_graph("llama-3.1-8b", 1, 8192);
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(kept_bytes(w, layer) == 8192 * expected);
  const std::string at = "model.layers.{}.";
  CHECK(names(w, kept(w, layer)) ==
        std::set<std::string>{at + "input", at + "input_layernorm", at + "input_layernorm.rstd",
                              at + "self_attn.q_rope", at + "self_attn.k_rope",
                              at + "self_attn.v_proj", at + "self_attn.attention",
                              at + "self_attn.attention.logsumexp", at + "attention_residual",
                              at + "post_attention_layernorm", at + "post_attention_layernorm.rstd",
                              at + "mlp.gate_proj", at + "mlp.act_fn", at + "mlp.up_proj",
                              at + "mlp.product"});
}

TEST_CASE("All that PyTorch holds after the forward pass of Llama-3.1-8B, to the byte") {
  // tests/golden/torch/fsdp/l8b-w8-base.json, "activation" after_forward: 48,396,010,248. Of these
  // 24 per layer are FlashAttention's random state (seed and offset), 8 the loss and its divisor.
  const Workload w = training_graph("llama-3.1-8b", 1, 8192);
  CHECK(kept_bytes(w) == 48'396'010'248 - 32 * 24 - 8);
}

TEST_CASE("GPT-2 keeps 32 h + 4 a + 16 bytes per token and layer") {
  // h = 768, f = 4h, a = 12 heads, bf16:
  //   2h * 6  block input, residual after attention, two norm outputs, attention out, ... and
  //   2h * 3 of which q, k, v: 2h * (5 + 3) = 16 h
  //   16 h    c_fc and gelu: 2 * 2 * 4h
  //   4 a     logsumexp, fp32;   16  mean and rstd of two norms, fp32
  const std::int64_t expected = 32 * 768 + 4 * 12 + 16;
  const Workload w = training_graph("gpt2", 8, 1024);
  CHECK(kept_bytes(w, block_of(w, "transformer.h.{}")) == 8 * 1024 * expected);
  // tests/golden/torch/fsdp/gpt2-w8.json, "activation" after_forward: 4,093,452,584. There mean and
  // rstd of the 25 norms are bf16, as PyTorch makes them on a CPU (4 bytes less per token each); on
  // a GPU they are fp32. And position ids count there (8192), 24 per layer of random state, 8 of
  // loss.
  CHECK(kept_bytes(w) == 4'093'452'584 + 25 * 4 * 8192 - 1024 * 8 - 12 * 24 - 8);
}

TEST_CASE("ViT-B/16 keeps the same per patch and layer, and nothing of the patches before") {
  // As GPT-2's layer: h = 768, mlp = 4h, 12 heads; q, k and v are three tensors here.
  const Workload w = training_graph("vit-b16", 8, std::nullopt);
  CHECK(kept_bytes(w, block_of(w, "Transformer/encoderblock_{}")) ==
        8 * 196 * (32 * 768 + 4 * 12 + 16));
  CHECK(kept(w, block_of(w, "embedding")).empty());  // the kernel's gradient reads the image
  // The head: input of the last norm with mean and rstd, what is pooled (2h per image), and the
  // log-probabilities. The norm's output is not read again: a mean's gradient needs no input.
  CHECK(kept_bytes(w, block_of(w, "head")) == 8 * (196 * (2 * 768 + 8) + 2 * 768 + 4 * 1000));
}

TEST_CASE("The gradients that q, k and v give their input are one chain of linear adds") {
  // So that partial sums over a tensor-parallel axis are reduced once (Megatron).
  const Workload w = training_graph("llama-3.1-8b", 1, 128);
  const Block& layer = block_of(w, "model.layers.{}");
  const std::vector<const Op*> adds = with_function(layer.backward, "add");
  // gate + up, residual after attention, two for q, k and v, block input.
  REQUIRE(adds.size() == 5);
  for (const Op* add : adds) {
    CHECK(traits(add->function).linear);
    CHECK(add->in_place == std::vector<InPlace>{{0, 0}});
  }
  const TensorId normed = at(w, adds[2]->results[0].tensor).primal;
  CHECK(at(w, normed).name == "model.layers.{}.input_layernorm");
  CHECK(adds[3]->operands[0].tensor == adds[2]->results[0].tensor);
  const Op& norm = *with_function(layer.backward, "rms_norm_backward")[1];
  CHECK(norm.operands[0].tensor == adds[3]->results[0].tensor);
}

TEST_CASE("A residual add has no backward op: its gradient is that of both addends") {
  const Workload w = training_graph("llama-3.1-8b", 1, 128);
  const Block& layer = block_of(w, "model.layers.{}");
  // The first op of the backward pass, down_proj's, reads what enters the block.
  const Tensor& entering = at(w, layer.backward[0].operands[0].tensor);
  CHECK(layer.backward[0].name == "model.layers.{}.mlp.down_proj");
  CHECK(entering.role == TensorRole::activation_gradient);
  CHECK(entering.primal == layer.carries_out[0]);
}

TEST_CASE("Tied embeddings get one gradient per block, added where the second appears") {
  for (const std::string model : {"qwen3-1.7b", "gpt2"}) {
    const Workload w = training_graph(model, 1, 128);
    const Op& last = w.blocks.front().backward.back();
    CHECK(last.function == Function::add);
    const TensorId weight = at(w, last.results[0].tensor).primal;
    CHECK(at(w, weight).role == TensorRole::parameter);
    const Tensor& first = at(w, last.operands[0].tensor);
    const Tensor& second = at(w, last.operands[1].tensor);
    CHECK(first.primal == weight);
    CHECK(first.block == 2);  // the output weights' share comes first
    CHECK(second.primal == weight);
    CHECK(second.block == 0);
  }
}

TEST_CASE("The loss is reduced over shards of the vocabulary three times, in forward only") {
  // PyTorch's loss_parallel: all-reduces of the maximum, the sum and the picked logit, fp32 per
  // token.
  const Workload w = training_graph("llama-3.1-8b", 2, 128);
  const Block& head = block_of(w, "head");
  std::vector<std::string> reduced;
  for (const Op& op : head.forward) {
    for (const Statistic& statistic : op.statistics) {
      if (statistic.over != std::vector<LabelId>{w.label("vocab")}) continue;
      reduced.push_back(statistic.name);
      CHECK(statistic.dims == std::vector<LabelId>{w.label("batch"), w.label("sequence")});
      CHECK(statistic.dtype == DType::f32);
    }
  }
  CHECK(reduced == std::vector<std::string>{"maximum", "sum of exponentials", "picked logit"});
  for (const Op& op : head.backward) {
    if (kind_of(op) == OpKind::softmax_loss) CHECK(op.statistics.empty());
  }
}

TEST_CASE("The loss's backward pass makes two fp32 tensors over the vocabulary, then one in bf16") {
  const Workload w = training_graph("llama-3.1-8b", 1, 8192);
  const std::vector<Op>& backward = block_of(w, "head").backward;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    CHECK(w.bytes(backward[i].results[0].tensor) == Bytes{std::int64_t{8192} * 128256 * 4});
  }
  CHECK(backward[2].function == Function::cast);
  CHECK(w.bytes(backward[2].results[0].tensor) == Bytes{std::int64_t{8192} * 128256 * 2});
}

TEST_CASE("In fp32 nothing is cast") {
  Workload w = forward_graph("gpt2", 1, 128, DType::f32);
  add_backward(w, {});
  for (const Block& block : w.blocks) {
    CHECK(with_function(block.forward, "cast").empty());
    CHECK(with_function(block.backward, "cast").empty());
  }
}

TEST_CASE("Norms in fp32 make their weights' gradients in fp32, and change nothing else") {
  WorkloadOptions options{1, 128, DType::bf16};
  const Workload plain = training_graph("qwen3-1.7b", 1, 128);
  options.weights.norms = DType::f32;
  Workload wide = build_workload(load_model_config("qwen3-1.7b", "", {}), options);
  add_backward(wide, {});
  REQUIRE(wide.tensors.size() == plain.tensors.size());
  std::set<std::string> differ;
  for (std::size_t t = 0; t < wide.tensors.size(); ++t) {
    if (wide.tensors[t].dtype != plain.tensors[t].dtype) differ.insert(wide.tensors[t].name);
  }
  CHECK(differ == std::set<std::string>{"model.layers.{}.input_layernorm.weight.grad",
                                        "model.layers.{}.post_attention_layernorm.weight.grad",
                                        "model.layers.{}.self_attn.k_norm.weight.grad",
                                        "model.layers.{}.self_attn.q_norm.weight.grad",
                                        "model.norm.weight.grad"});
  CHECK(kept_bytes(wide) == kept_bytes(plain));
  CHECK(model_flops(wide) == model_flops(plain));
}

TEST_CASE("GPT-2's q, k and v are views of one tensor, their gradients are copied together") {
  const Workload w = training_graph("gpt2", 1, 128);
  const Block& layer = block_of(w, "transformer.h.{}");
  const Op& split = *with_function(layer.forward, "split")[0];
  CHECK(split.view);
  CHECK(split.whole == std::vector<LabelId>{w.label("qkv")});
  std::int64_t parts = 0;
  for (const Operand& result : split.results) parts += w.bytes(result.tensor).count();
  CHECK(parts == w.bytes(split.operands[0].tensor).count());
  const Op& concatenate = *with_function(layer.backward, "concatenate")[0];
  CHECK_FALSE(concatenate.view);
  CHECK(concatenate.operands.size() == 3);
}

// The table says what a function's backward pass reads; the rules of differentiation are written
// apart from it. Where an operand needs no gradient (an image), what that would read is not read.
TEST_CASE("backward passes read what the table of functions says is saved") {
  std::map<Function, Saves> read;
  const Json t5{{"model_type", "t5"}, {"d_model", 32},   {"d_ff", 64},        {"d_kv", 8},
                {"num_heads", 4},     {"num_layers", 2}, {"vocab_size", 100}, {"dropout_rate", 0}};
  const Json encoder{
      {"architectures", {"Dinov2Model"}}, {"hidden_size", 32}, {"num_hidden_layers", 1},
      {"num_attention_heads", 2},         {"image_size", 28},  {"patch_size", 14}};
  const std::vector<Json> models{"llama-3.1-8b", "qwen3-1.7b", "gpt2", "vit-b16", t5, encoder};
  for (const Json& model : models) {
    const ModelConfig config = load_model_config(JsonReader(model, {}), "");
    std::optional<std::int64_t> tokens;
    if (reads_tokens(config)) tokens = 16;
    Workload w = build_workload(config, {1, tokens});
    add_backward(w, {});
    for (const Block& block : w.blocks) {
      for (const Op& op : block.forward) {
        std::set<TensorId> tensors;
        for (const Op& back : block.backward) {
          if (back.name != op.name) continue;
          for (const Operand& operand : back.operands) tensors.insert(operand.tensor);
        }
        const auto among = [&](const std::vector<Operand>& operands) {
          unsigned bits = 0;
          for (std::size_t i = 0; i < operands.size(); ++i) {
            if (tensors.count(operands[i].tensor) > 0) bits |= 1U << i;
          }
          return static_cast<std::uint8_t>(bits);
        };
        const Saves saves{among(op.operands), among(op.results)};
        INFO(config.name << " " << op.name << " " << name_of(op.function));
        const Saves& said = traits(op.function).saves;
        CHECK((saves.operands & ~said.operands) == 0);
        CHECK((saves.results & ~said.results) == 0);
        Saves& all = read[op.function];
        all.operands = static_cast<std::uint8_t>(all.operands | saves.operands);
        all.results = static_cast<std::uint8_t>(all.results | saves.results);
      }
    }
  }
  for (const auto& [function, saves] : read) {
    INFO(name_of(function));
    CHECK(saves == traits(function).saves);
  }
}

// transformers' head reads hidden states i - 1, of which the first is what enters the layers:
// behind the third, index 2, autograd leaves gradients None.
TEST_CASE("Layers behind the last that a head reads run, and nothing comes back from them") {
  const Json config = {{"architectures", {"BeitForSemanticSegmentation"}},
                       {"model_type", "beit"},
                       {"hidden_size", 64},
                       {"num_attention_heads", 4},
                       {"intermediate_size", 128},
                       {"num_hidden_layers", 5},
                       {"image_size", 64},
                       {"out_indices", {1, 2, 3, 4}}};
  const Workload w = build_step({"beit", "beit", OwnedJson(config)}, Step{.batch = 2});
  for (const Block& block : w.blocks) {
    if (!block.is_layer) continue;
    INFO(block.name << " " << block.numbers.front());
    CHECK(!block.forward.empty());
    CHECK(block.backward.empty() == (block.numbers.front() > 2));
  }
}
