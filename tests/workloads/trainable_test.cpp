// What a step trains, adapters, and products in narrow formats. Figures are derived from the sizes
// of Llama-3.1-8B: h 4096, queries 4096, keys and values 1024 each, f 14336, 32 layers.
#include "workloads/step/trainable.hpp"

#include <catch2/catch.hpp>

#include "graph_helpers.hpp"
#include "workloads/step/step.hpp"

namespace shardsim::trainable_test {
using namespace shardsim::test;
namespace {

constexpr std::int64_t layers = 32;
constexpr std::int64_t h = 4096;
constexpr std::int64_t kv = 1024;
constexpr std::int64_t f = 14336;
constexpr std::int64_t vocab = 128256;

Workload step_of(const Step& step) {
  return build_step(load_model_config("llama-3.1-8b", "", {}), step);
}

Step llama_step() { return {.batch = 1, .sequence = 1024}; }

Workload with_lora(std::vector<std::string> targets, std::int64_t rank = 16) {
  Step step = llama_step();
  step.lora = Lora{rank, std::move(targets)};
  return step_of(step);
}

Workload training(std::vector<std::string> trainable) {
  Step step = llama_step();
  step.trainable = std::move(trainable);
  return step_of(step);
}

std::int64_t trained_parameters(const Workload& w) {
  std::int64_t count = 0;
  for (const ParameterView& view : parameters(w)) {
    if (at(w, view.tensor).trained) count += w.elements(at(w, view.tensor).dims) * view.instances();
  }
  return count;
}

// Of matmuls of the backward pass, what repeats forward ones left out.
double backward_flops(const Workload& w) {
  double flops = 0;
  for (const Block& block : w.blocks) {
    for (const Op& op : block.backward) {
      if (op.recompute || kind_of(op) != OpKind::einsum) continue;
      double points = flops_per_point(w, op);
      for (const LabelId label : factors(op)) {
        points *= static_cast<double>(w.labels[static_cast<std::size_t>(label)].size);
      }
      flops += points * static_cast<double>(block.instances());
    }
  }
  return flops;
}

bool has_gradient(const Workload& w, TensorId parameter) {
  return std::any_of(w.tensors.begin(), w.tensors.end(), [&](const Tensor& tensor) {
    return tensor.role == TensorRole::parameter_gradient && tensor.primal == parameter;
  });
}

}  // namespace

TEST_CASE("Frozen parameters have neither gradient nor optimizer state") {
  const Workload w = training({"norm"});  // 65 of them
  CHECK(trained_parameters(w) == 65 * h);
  std::int64_t updated = 0;
  for (const Block& block : w.blocks) {
    updated += static_cast<std::int64_t>(block.optimizer.size()) * block.instances();
  }
  CHECK(updated == 65);
  for (const ParameterView& view : parameters(w)) {
    CHECK(has_gradient(w, view.tensor) == at(w, view.tensor).trained);
  }
  CHECK(parameter_count(w) == 8'030'261'248);
}

TEST_CASE("The backward pass ends where nothing before is trained") {
  const Workload w = training({R"(layers\.(30|31)\.)", "lm_head", R"(model\.norm)"});
  // Layers 0 to 29 are one kind, without a backward pass; 30 is another than 31: its input has no
  // gradient.
  REQUIRE(w.blocks.size() == 5);
  CHECK(w.blocks[1].instances() == 30);
  CHECK(w.blocks[0].backward.empty());
  CHECK(w.blocks[1].backward.empty());
  CHECK(kept_bytes(w, w.blocks[1]) == 0);
  CHECK(w.blocks[2].numbers == std::vector<std::int32_t>{30});
  CHECK(w.blocks[3].numbers == std::vector<std::int32_t>{31});
  // 2 T N each for the gradients of weights and of what they read; of q, k and v of layer 30, too,
  // for the norm in front of them.
  const double layer = 2.0 * h * h + 2.0 * h * kv + 3.0 * h * f;
  const double head = 1.0 * h * vocab;
  CHECK(backward_flops(w) == 2 * 1024 * 2 * (2 * layer + head));
}

TEST_CASE("All trained is the same graph as nothing said") {
  const Workload all = training({""});
  const Workload usual = step_of(llama_step());
  CHECK(backward_flops(all) == backward_flops(usual));
  CHECK(kept_bytes(all) == kept_bytes(usual));
  CHECK(trained_parameters(all) == 8'030'261'248);
}

TEST_CASE("Adapters of an attention: Megatron's fused qkv has one A") {
  CHECK(trained_parameters(with_lora({"linear_qkv"})) == layers * 16 * (h + h + 2 * kv));
  CHECK(trained_parameters(with_lora({"linear_qkv"}, 32)) == layers * 32 * (h + h + 2 * kv));
  // And of its output projection.
  CHECK(trained_parameters(with_lora({"attention"})) ==
        layers * 16 * (h + h + 2 * kv) + layers * 16 * (h + h));
  CHECK(trained_parameters(with_lora({"mlp"})) ==
        layers * 16 * (h + 2 * f) + layers * 16 * (f + h));
  // PEFT's: each its own.
  CHECK(trained_parameters(with_lora({"[qv]_proj"})) == layers * 16 * ((h + h) + (h + kv)));
}

TEST_CASE("An adapter is two products beside its layer, a scale and a sum") {
  const Workload w = with_lora({"linear_qkv"});
  // The first layer's input has no gradient: the embedding is frozen.
  REQUIRE(w.blocks.size() == 4);
  CHECK(w.blocks[1].numbers == std::vector<std::int32_t>{0});
  CHECK(w.blocks[2].instances() == 31);
  const Block& layer = w.blocks[2];
  CHECK(with_function(layer.forward, "matmul").size() == 7 + 4);
  CHECK(with_function(layer.forward, "scale").size() == 3);
  const Op* down = with_function(layer.forward, "matmul").front();
  CHECK(down->name == "model.layers.{}.self_attn.linear_qkv.lora_A");
  CHECK(w.shape(at(w, down->operands[1].tensor).dims) == std::vector<std::int64_t>{16, h});
  const Op* base = with_function(layer.forward, "matmul")[1];
  CHECK(base->name == "model.layers.{}.self_attn.q_proj");
  const Op* up = with_function(layer.forward, "matmul")[2];
  CHECK(at(w, up->operands[1].tensor).name == "model.layers.{}.self_attn.q_proj.lora_B.weight");
  CHECK(w.shape(at(w, up->operands[1].tensor).dims) == std::vector<std::int64_t>{h, 16});
  // Backward: gradients of what frozen weights read, not of the weights; of adapters both. The
  // first layer's frozen q, k, v need none, nor does its A's input; the frozen head passes its on.
  const double all = 2.0 * h * h + 2.0 * h * kv + 3.0 * h * f;
  const double qkv = 1.0 * h * h + 2.0 * h * kv;
  const double adapter = 16.0 * (h + h + 2 * kv);
  const double expected = layers * (all + 2 * adapter) - qkv - 16.0 * h + 1.0 * h * vocab;
  CHECK(backward_flops(w) == 2 * 1024 * expected);
}

// What a frozen weight's gradient would read is not kept.
TEST_CASE("Adapters keep less than training of all") {
  const Workload usual = step_of(llama_step());
  const Workload w = with_lora({"linear_qkv"});
  const Block& layer = w.blocks[2];
  // Kept of attention: q and k turned, v, the result with its logsumexp; of the norms their input
  // and rstd, of the first its result, too, which A reads; A's result; gate, up, silu's. Gone: what
  // o_proj, gate, up and down read but attention's result, which its own gradient reads: the second
  // norm's result 2h and the product 2f.
  CHECK(kept_bytes(usual, block_of(usual, "model.layers.{}")) - kept_bytes(w, layer) ==
        1024 * (2 * h + 2 * f - 2 * 16));
}

TEST_CASE("Patterns and targets that find nothing are errors") {
  CHECK_THROWS_WITH(training({"norm", "nrom"}),
                    "/trainable/1: pattern \"nrom\" matches no parameter of llama-3.1-8b");
  CHECK_THROWS_WITH(with_lora({"x_proj"}),
                    "/lora/targets/0: no linear layer of llama-3.1-8b is \"x_proj\"");
  CHECK_THROWS_WITH(with_lora({R"(layers\.3\.self_attn\.q_proj)"}),
                    "/lora/targets/0: the pattern tells model.layers.0.self_attn.q_proj.weight and "
                    "model.layers.3.self_attn.q_proj.weight apart, which is not supported");
}

TEST_CASE("Narrow products are those of layers' linear parts, forward and backward") {
  Step step = llama_step();
  step.precision.products.format = ProductFormat::fp8;
  Workload w = step_of(step);
  const Block& layer = block_of(w, "model.layers.{}");
  for (const std::vector<Op>* ops : {&layer.forward, &layer.backward}) {
    for (const Op& op : *ops) {
      CHECK((op.multiplied_in == DType::f8) == (kind_of(op) == OpKind::einsum));
    }
  }
  for (const Op& op : block_of(w, "head").forward) CHECK_FALSE(op.multiplied_in);
  // What lies in memory keeps its type.
  for (const Tensor& tensor : w.tensors) CHECK(tensor.dtype != DType::f8);
  CHECK(kept_bytes(w) == kept_bytes(step_of(llama_step())));
  CHECK(warnings_of(step).size() == 1);
  CHECK(warnings_of(llama_step()).empty());

  // Gathered in fp8: parameters of products lie so where they are read; gradients do not.
  step.precision.products.gathered = true;
  w = step_of(step);
  for (const Tensor& tensor : w.tensors) {
    if (tensor.role == TensorRole::parameter) {
      CHECK((tensor.dtype == DType::f8) == (tensor.name.ends_with("_proj.weight")));
    } else {
      CHECK(tensor.dtype != DType::f8);
    }
  }
  // Attention at fp8's peak, too, forward and backward.
  const auto attention = [&] {
    const Block& block = block_of(w, "model.layers.{}");
    return std::vector<std::optional<DType>>{
        with_function(block.forward, "attention").front()->multiplied_in,
        with_function(block.backward, "attention_backward").front()->multiplied_in};
  };
  CHECK(attention() == std::vector<std::optional<DType>>{std::nullopt, std::nullopt});
  step.precision.products.attention = true;
  w = step_of(step);
  CHECK(attention() == std::vector<std::optional<DType>>{DType::f8, DType::f8});
  step.precision.products.attention = false;
  // One layer at either end in bf16: two kinds.
  step.precision.products.first_wide = 1;
  step.precision.products.last_wide = 1;
  w = step_of(step);
  REQUIRE(w.blocks.size() == 4);
  CHECK(w.blocks[1].numbers == std::vector<std::int32_t>{0, 31});
  CHECK(w.blocks[2].instances() == 30);
  CHECK_FALSE(with_function(w.blocks[1].forward, "matmul").front()->multiplied_in);
  CHECK(with_function(w.blocks[2].forward, "matmul").front()->multiplied_in);
}

// DeepSeek-V3 (arXiv:2412.19437, section 4.2): h 7168, 128 heads, ranks 1536 and 512, 256 experts
// of width 2048 and a shared one.
TEST_CASE("A module of multi-token prediction is a layer, two norms, a projection and the head") {
  Step step{.batch = 1, .sequence = 1024};
  const auto deepseek = [&] { return build_step(load_model_config("deepseek-v3", "", {}), step); };
  const Workload usual = deepseek();
  step.mtp_layers = 1;
  const Workload w = deepseek();
  const std::int64_t width = 7168;
  const std::int64_t attention = 1536 * width + 1536 + 128 * (128 + 64) * 1536 +
                                 (512 + 64) * width + 512 + 128 * (128 + 128) * 512 +
                                 width * 128 * 128;
  const std::int64_t experts = 257 * 3 * width * 2048 + 256 * width;
  CHECK(parameter_count(w) - parameter_count(usual) ==
        attention + experts + 2 * width        // the layer
            + 3 * width + 2 * width * width);  // enorm, hnorm, the head's norm; eh_proj
  // Six operations for each weight that a token meets: 8 experts and the shared one, the router,
  // the head and eh_proj; and of attention, whose heads are 192 and 128 wide.
  const double active = static_cast<double>(attention - 1536 - 512) + 9.0 * 3 * 7168 * 2048 +
                        256.0 * 7168 + 129280.0 * 7168 + 2.0 * 7168 * 7168;
  const double scores = 6.0 * 1024 * 1024 * 128 * (192 + 128);
  CHECK(model_flops(w).full_attention.count() - model_flops(usual).full_attention.count() ==
        Approx(6 * 1024 * active + scores));
  // Embedding and head are the model's own; what the module's look-up gives them is added up.
  const auto lookups = [](const Workload& graph) {
    return with_function(block_of(graph, "head").backward, "embedding_backward").size();
  };
  CHECK(lookups(usual) == 0);
  CHECK(lookups(w) == 1);
  CHECK(with_function(block_of(w, "head").backward, "nll_loss_backward").size() == 2);
}

TEST_CASE("Multi-token prediction is not of everything") {
  Step step{.batch = 1, .sequence = 64, .mtp_layers = 1};
  CHECK_THROWS_AS(build_step(load_model_config("gpt2", "", {}), step), InputError);
  step.outputs = {"logits"};
  CHECK_THROWS_WITH(build_step(load_model_config("llama-3.2-1b", "", {}), step),
                    "/outputs: outputs of a step with multi-token prediction are not supported");
  step = {.batch = 1, .mtp_layers = 1};
  CHECK_THROWS_WITH(build_step(load_model_config("vit-b16", "", {}), step),
                    "/mtp_layers: multi-token prediction is of language models");
}

}  // namespace shardsim::trainable_test
