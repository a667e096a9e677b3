// A view is another description of the same parameters: nothing of what is computed changes.
#include <catch2/catch.hpp>
#include <map>

#include "base/json.hpp"
#include "graph_helpers.hpp"
#include "workloads/step/step.hpp"
#include "workloads/views/tree_leaves.hpp"
#include "workloads/views/view.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

Workload step_of(const std::string& model, const std::string& view,
                 const Rematerialization& rematerialization = {}) {
  const ModelConfig config = load_model_config(model, "", {});
  Step step;
  step.view = view;
  step.rematerialization = rematerialization;
  if (reads_tokens(config)) step.sequence = 64;
  return build_step(config, step);
}

std::int64_t elements_of(const std::vector<TreeLeaf>& leaves) {
  std::int64_t elements = 0;
  for (const TreeLeaf& leaf : leaves) elements += element_count(leaf.leaf);
  return elements;
}

const TreeLeaf& leaf_named(const std::vector<TreeLeaf>& leaves, const std::string& name) {
  const auto found = std::find_if(leaves.begin(), leaves.end(),
                                  [&](const TreeLeaf& leaf) { return leaf.leaf.name == name; });
  REQUIRE(found != leaves.end());
  return *found;
}

}  // namespace

TEST_CASE("Under every view the leaves are all parameters, and FLOPs stay what they are") {
  const std::vector<std::string> of_all = {"easydel", "flax", "flax-scanned", "levanter"};
  for (const std::string model :
       {"llama-3.1-8b", "mixtral-8x7b", "gpt2", "vit-b16", "nemotron-3-nano-30b-a3b"}) {
    const Workload own = step_of(model, "");
    std::vector<std::string> views = of_all;
    if (model != "vit-b16" && model != "nemotron-3-nano-30b-a3b") views.emplace_back("maxtext");
    if (views.back() == "maxtext") views.emplace_back("praxis");
    for (const std::string& view : views) {
      INFO(model << " as " << view);
      const Workload viewed = step_of(model, view);
      CHECK(elements_of(tree_leaves(viewed)) == parameter_count(own));
      CHECK(parameter_count(viewed) == parameter_count(own));
      CHECK(model_flops(viewed) == model_flops(own));
    }
  }
}

// [in, heads, head] of 32 heads of 128, and the layers where each framework has them.
TEST_CASE("One parameter under several views") {
  const auto shape = [](const std::string& view, const std::string& name) {
    return leaf_named(tree_leaves(step_of("llama-3.1-8b", view)), name).leaf.shape;
  };
  using Shape = std::vector<std::int64_t>;
  CHECK(shape("maxtext", "decoder/layers/self_attention/query/kernel") == Shape{4096, 32, 32, 128});
  CHECK(shape("easydel", "model/layers/31/self_attn/q_proj/kernel") == Shape{4096, 4096});
  CHECK(shape("flax", "model/layers/31/self_attn/q_proj/kernel") == Shape{4096, 32, 128});
  CHECK(shape("flax-scanned", "model/layers/self_attn/q_proj/kernel") == Shape{32, 4096, 32, 128});
  CHECK(shape("levanter", "model/layers/stacked/self_attn/q_proj/weight") ==
        Shape{32, 8, 4, 128, 4096});
  CHECK(shape("praxis", "params/lm/transformer/repeat/sub/x_layers_0/self_attention/query/w") ==
        Shape{32, 4096, 32, 128});
}

// Layers that are rematerialized differently are blocks of their own, and one leaf all the same.
TEST_CASE("Layers of several kinds of blocks are stacked in one leaf") {
  Rematerialization every_second;
  every_second.policy = Rematerialization::Policy::full;
  every_second.layers = Rematerialization::Layers::every;
  every_second.count = 2;
  const Workload w = step_of("llama-3.1-8b", "maxtext", every_second);
  REQUIRE(w.blocks.size() > 3);
  const auto leaves = tree_leaves(w);
  const TreeLeaf& query = leaf_named(leaves, "decoder/layers/self_attention/query/kernel");
  CHECK(query.holds.size() == 32);
  CHECK(query.leaf.shape[1] == 32);
}

// 26 layers of Gemma 3 in a cycle of 6: four of each place, and two that are left over.
TEST_CASE("MaxText's places in a cycle") {
  const Json config = {{"model_type", "gemma3_text"},
                       {"hidden_size", 64},
                       {"intermediate_size", 128},
                       {"num_hidden_layers", 26},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 1},
                       {"head_dim", 32},
                       {"vocab_size", 256}};
  Step step;
  step.sequence = 64;
  step.view = "maxtext";
  const auto leaves = tree_leaves(build_step({"gemma", "gemma", OwnedJson(config)}, step));
  const auto shape = [&](const std::string& name) { return leaf_named(leaves, name).leaf.shape; };
  using Shape = std::vector<std::int64_t>;
  CHECK(shape("decoder/layers/layers_5/mlp/wi_0/kernel") == Shape{64, 4, 128});
  CHECK(shape("decoder/layers_remainder/layers_1/mlp/wi_0/kernel") == Shape{64, 128});
  CHECK(shape("decoder/layers/layers_0/self_attention/key/kernel") == Shape{64, 4, 1, 32});
}

// nn.Linear(hidden, hidden) of its streams, and coefficients of each.
TEST_CASE("Square matrices are kernels of two dimensions, of which one has the name") {
  const Json json = {{"architectures", {"Gemma3nForCausalLM"}},
                     {"model_type", "gemma3n_text"},
                     {"num_hidden_layers", 5},
                     {"num_kv_shared_layers", 0},
                     {"hidden_size", 256},
                     {"intermediate_size", 512},
                     {"num_attention_heads", 8},
                     {"num_key_value_heads", 2},
                     {"vocab_size", 1000},
                     {"vocab_size_per_layer_input", 1000}};
  const ModelConfig config{"gemma3n", "gemma3n", OwnedJson(json)};
  Step step{.kind = StepKind::forward, .view = "easydel"};
  step.sequence = 64;
  using Shape = std::vector<std::int64_t>;
  const std::vector<TreeLeaf> easydel = tree_leaves(build_step(config, step));
  CHECK(leaf_named(easydel, "model/altup_projections/0/kernel").leaf.shape == Shape{256, 256});
  CHECK(leaf_named(easydel, "model/layers/0/altup/modality_router/kernel").leaf.shape ==
        Shape{256, 4});
  step.view = "flax";
  const std::vector<TreeLeaf> flax = tree_leaves(build_step(config, step));
  CHECK(*leaf_named(flax, "model/altup_projections/0/kernel").leaf.logical_axes ==
        std::vector<std::optional<std::string>>{std::nullopt, "embed"});
}

namespace {

ModelConfig small_t5() {
  const Json json = {{"architectures", {"T5ForConditionalGeneration"}},
                     {"model_type", "t5"},
                     {"vocab_size", 1000},
                     {"d_model", 64},
                     {"d_kv", 16},
                     {"d_ff", 128},
                     {"num_layers", 3},
                     {"num_decoder_layers", 2},
                     {"num_heads", 4},
                     {"tie_word_embeddings", false},
                     {"feed_forward_proj", "gated-gelu"}};
  return {"t5", "t5", OwnedJson(json)};
}

ModelConfig small_siglip() {
  const Json tower = {{"hidden_size", 64},
                      {"intermediate_size", 128},
                      {"num_hidden_layers", 3},
                      {"num_attention_heads", 4}};
  Json text = tower, image = tower;
  text.update({{"num_hidden_layers", 2}, {"vocab_size", 1000}, {"max_position_embeddings", 16}});
  image.update({{"image_size", 64}, {"patch_size", 16}});
  const Json json = {{"architectures", {"SiglipModel"}},
                     {"model_type", "siglip"},
                     {"text_config", text},
                     {"vision_config", image}};
  return {"siglip", "siglip", OwnedJson(json)};
}

std::vector<TreeLeaf> leaves_under(const ModelConfig& config, const std::string& view,
                                   std::int64_t sequence) {
  Step step{.kind = StepKind::forward, .view = view};
  step.sequence = sequence;
  const std::vector<TreeLeaf> leaves = tree_leaves(build_step(config, step));
  CHECK(elements_of(leaves) == parameter_count(build_step(config, step)));
  return leaves;
}

}  // namespace

TEST_CASE("Each of two stacks has leaves of its own") {
  using Shape = std::vector<std::int64_t>;
  const auto shape = [](const ModelConfig& config, const std::string& view,
                        const std::string& name) {
    INFO(view);
    return leaf_named(leaves_under(config, view, 16), name).leaf.shape;
  };
  const ModelConfig t5 = small_t5();
  CHECK(shape(t5, "easydel", "encoder/block/2/layer/0/SelfAttention/q/kernel") == Shape{64, 64});
  CHECK(shape(t5, "flax", "decoder/block/1/layer/0/SelfAttention/q/kernel") == Shape{64, 4, 16});
  // The layers that look the biases up and that read them last are kinds of their own.
  CHECK(shape(t5, "flax-scanned", "encoder/block_1/layer/0/SelfAttention/q/kernel") ==
        Shape{1, 64, 4, 16});
  CHECK(shape(t5, "levanter", "decoder/block/stacked_1/layer/0/SelfAttention/q/weight") ==
        Shape{1, 4, 1, 16, 64});
  CHECK(shape(t5, "t5x", "encoder/layers_2/attention/query/kernel") == Shape{64, 64});
  const std::vector<TreeLeaf> leaves = leaves_under(t5, "t5x", 16);
  for (const auto& [name, axes] : std::map<std::string, std::vector<std::string>>{
           {"token_embedder/embedding", {"vocab", "embed"}},
           {"encoder/relpos_bias/rel_embedding", {"heads", "relpos_buckets"}},
           {"encoder/layers_0/pre_attention_layer_norm/scale", {"embed"}},
           {"encoder/layers_0/attention/out/kernel", {"joined_kv", "embed"}},
           {"encoder/layers_0/mlp/wi_1/kernel", {"embed", "mlp"}},
           {"decoder/layers_1/pre_self_attention_layer_norm/scale", {"embed"}},
           {"decoder/layers_1/self_attention/value/kernel", {"embed", "joined_kv"}},
           {"decoder/layers_1/pre_cross_attention_layer_norm/scale", {"embed"}},
           {"decoder/layers_1/encoder_decoder_attention/key/kernel", {"embed", "joined_kv"}},
           {"decoder/layers_1/pre_mlp_layer_norm/scale", {"embed"}},
           {"decoder/layers_1/mlp/wo/kernel", {"mlp", "embed"}},
           {"decoder/logits_dense/kernel", {"embed", "vocab"}}}) {
    INFO(name);
    const std::vector<std::optional<std::string>> expected(axes.begin(), axes.end());
    CHECK(*leaf_named(leaves, name).leaf.logical_axes == expected);
  }
  const ModelConfig siglip = small_siglip();
  const std::string query = "/encoderblock/MultiHeadDotProductAttention_0/query/kernel";
  CHECK(shape(siglip, "big_vision", "params/img/Transformer" + query) == Shape{3, 64, 4, 16});
  CHECK(shape(siglip, "big_vision", "params/txt/Encoder_0" + query) == Shape{2, 64, 4, 16});
  CHECK(shape(siglip, "big_vision", "params/img/pos_embedding") == Shape{1, 16, 64});
  CHECK(shape(siglip, "big_vision", "params/img/embedding/kernel") == Shape{16, 16, 3, 64});
  CHECK(shape(siglip, "big_vision",
              "params/img/MAPHead_0/MultiHeadDotProductAttention_0/key/kernel") ==
        Shape{64, 4, 16});
}

// praxis 1.4.0, TransformerFeedForwardMoe: wi and wo are [experts, in, out].
TEST_CASE("praxis' experts are a matrix each of gate, up and down") {
  const std::vector<TreeLeaf> leaves = tree_leaves(step_of("mixtral-8x7b", "praxis"));
  using Shape = std::vector<std::int64_t>;
  const std::string at = "params/lm/transformer/repeat/sub/x_layers_0/ff_layer/";
  CHECK(leaf_named(leaves, at + "wi_gate_0").leaf.shape == Shape{32, 8, 4096, 14336});
  CHECK(leaf_named(leaves, at + "wi_0").leaf.shape == Shape{32, 8, 4096, 14336});
  CHECK(leaf_named(leaves, at + "wo_0").leaf.shape == Shape{32, 8, 14336, 4096});
  CHECK(leaf_named(leaves, at + "gate").leaf.shape == Shape{32, 4096, 8});
}

// What does not run beside text alone has no ops that tell kernels from norms and tables.
TEST_CASE("The images' part of a model that got text alone has kernels, scales and tables") {
  const ModelConfig config = load_model_config(
      JsonReader(Json::parse(R"({"architectures": ["PaliGemmaForConditionalGeneration"],
          "model_type": "paligemma", "projection_dim": 64, "hidden_size": 64,
          "text_config": {"model_type": "gemma", "hidden_size": 64, "intermediate_size": 128,
            "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 1,
            "head_dim": 16, "vocab_size": 1024},
          "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 48,
            "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
            "image_size": 56, "patch_size": 14}})"),
                 {"test", ""}),
      "");
  using Shape = std::vector<std::int64_t>;
  for (const auto& [view, root] :
       std::map<std::string, std::string>{{"easydel", ""}, {"flax", "model/"}}) {
    INFO(view);
    const std::vector<TreeLeaf> leaves = leaves_under(config, view, 16);
    for (const auto& [name, shape] : std::map<std::string, Shape>{
             {"multi_modal_projector/linear/kernel", {48, 64}},
             {"vision_tower/embeddings/patch_embedding/kernel", {14, 14, 3, 48}},
             {"vision_tower/embeddings/position_embedding/embedding", {16, 48}},
             {"vision_tower/encoder/layers/1/mlp/fc1/kernel", {48, 96}},
             {"vision_tower/encoder/layers/1/layer_norm1/scale", {48}},
             {"vision_tower/head/mlp/fc2/kernel", {96, 48}}}) {
      INFO(name);
      CHECK(leaf_named(leaves, root + name).leaf.shape == shape);
    }
  }
}

// maxtext 0.2.5, models/qwen3_5.py: Qwen3_5ScannableBlock's layer_0 to layer_3, whose delta rule is
// Qwen3-Next's, with one matrix for queries, keys, values and gates, one for both heads' numbers.
TEST_CASE("MaxText holds Qwen 3.5's projections end to end") {
  const ModelConfig config =
      load_model_config(JsonReader(Json::parse(R"({"architectures": ["Qwen3_5MoeForCausalLM"],
          "model_type": "qwen3_5_moe_text", "hidden_size": 64, "num_hidden_layers": 8,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1024,
          "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
          "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "num_experts": 4,
          "num_experts_per_tok": 2, "moe_intermediate_size": 32,
          "shared_expert_intermediate_size": 32})"),
                                   {"test", ""}),
                        "");
  using Shape = std::vector<std::int64_t>;
  const std::vector<TreeLeaf> leaves = leaves_under(config, "maxtext-0.2.5", 64);
  const std::string at = "decoder/layers/layer_1/attention/";
  const TreeLeaf& qkvz = leaf_named(leaves, at + "in_proj_qkvz/kernel");
  CHECK(qkvz.leaf.shape == Shape{64, 2, 2 * 16 + 2 * 32});
  CHECK(*qkvz.leaf.logical_axes ==
        std::vector<std::optional<std::string>>{"embed_attn", "layers", "gdn_head"});
  CHECK(leaf_named(leaves, at + "in_proj_ba/kernel").leaf.shape == Shape{64, 2, 8});
  CHECK(leaf_named(leaves, "decoder/layers/layer_3/attention/attention/key/kernel").leaf.shape ==
        Shape{64, 2, 2, 16});
}
