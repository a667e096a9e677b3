#include "workloads/views/big_vision.hpp"

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

const std::vector<std::string>& big_vision_families() {
  static const std::vector<std::string> table = {"siglip"};
  return table;
}

// Each under its tower; "+1" is the example's dimension of what all examples share.
constexpr std::array big_vision_rows = std::to_array<ViewRow>(
    {{"logit_scale", "params/t", "-=*"},
     {"logit_bias", "params/b", "-=*"},
     {"vision_model.embeddings.patch_embedding.weight", "params/img/embedding/kernel",
      "-=patch_height -=patch_width -=channels -=hidden"},
     {"vision_model.embeddings.patch_embedding.bias", "params/img/embedding/bias", "-=hidden"},
     {"vision_model.embeddings.position_embedding.weight", "params/img/pos_embedding",
      "+1 -=positions -=hidden"},
     {"vision_model.post_layernorm.weight", "params/img/Transformer/encoder_norm/scale", "-=*"},
     {"vision_model.post_layernorm.bias", "params/img/Transformer/encoder_norm/bias", "-=*"},
     {"vision_model.head.probe", "params/img/MAPHead_0/probe", "-=one -=pooled_row -=hidden"},
     {"vision_model.head.attention.in_proj_weight",
      "params/img/MAPHead_0/MultiHeadDotProductAttention_0/{qkv:query,key,value}/kernel",
      "-=hidden -=pool_heads -=pool_dim"},
     {"vision_model.head.attention.in_proj_bias",
      "params/img/MAPHead_0/MultiHeadDotProductAttention_0/{qkv:query,key,value}/bias",
      "-=pool_heads -=pool_dim"},
     {"vision_model.head.attention.out_proj.weight",
      "params/img/MAPHead_0/MultiHeadDotProductAttention_0/out/kernel",
      "-=pool_heads -=pool_dim -=hidden"},
     {"vision_model.head.attention.out_proj.bias",
      "params/img/MAPHead_0/MultiHeadDotProductAttention_0/out/bias", "-=hidden"},
     {"vision_model.head.layernorm.weight", "params/img/MAPHead_0/LayerNorm_0/scale", "-=*"},
     {"vision_model.head.layernorm.bias", "params/img/MAPHead_0/LayerNorm_0/bias", "-=*"},
     {"vision_model.head.mlp.fc1.weight", "params/img/MAPHead_0/MlpBlock_0/Dense_0/kernel",
      "-=hidden -=ffn"},
     {"vision_model.head.mlp.fc1.bias", "params/img/MAPHead_0/MlpBlock_0/Dense_0/bias", "-=ffn"},
     {"vision_model.head.mlp.fc2.weight", "params/img/MAPHead_0/MlpBlock_0/Dense_1/kernel",
      "-=ffn -=hidden"},
     {"vision_model.head.mlp.fc2.bias", "params/img/MAPHead_0/MlpBlock_0/Dense_1/bias", "-=hidden"},
     {"text_model.embeddings.token_embedding.weight", "params/txt/Embed_0/embedding",
      "-=vocab -=hidden"},
     {"text_model.embeddings.position_embedding.weight", "params/txt/pos_embedding",
      "+1 -=positions -=hidden"},
     {"text_model.final_layer_norm.weight", "params/txt/Encoder_0/encoder_norm/scale", "-=*"},
     {"text_model.final_layer_norm.bias", "params/txt/Encoder_0/encoder_norm/bias", "-=*"},
     {"text_model.head.weight", "params/txt/head/kernel", "-=hidden -=features"},
     {"text_model.head.bias", "params/txt/head/bias", "-=*"},
     // Of a layer.
     {"layer_norm1.weight", "LayerNorm_0/scale", "-=*"},
     {"layer_norm1.bias", "LayerNorm_0/bias", "-=*"},
     {"layer_norm2.weight", "LayerNorm_1/scale", "-=*"},
     {"layer_norm2.bias", "LayerNorm_1/bias", "-=*"},
     {"self_attn.q_proj.weight", "MultiHeadDotProductAttention_0/query/kernel",
      "-=hidden -=heads -=*"},
     {"self_attn.k_proj.weight", "MultiHeadDotProductAttention_0/key/kernel",
      "-=hidden -=heads -=*"},
     {"self_attn.v_proj.weight", "MultiHeadDotProductAttention_0/value/kernel",
      "-=hidden -=heads -=*"},
     {"self_attn.out_proj.weight", "MultiHeadDotProductAttention_0/out/kernel",
      "-=heads -=head_dim -=hidden"},
     {"self_attn.q_proj.bias", "MultiHeadDotProductAttention_0/query/bias", "-=heads -=*"},
     {"self_attn.k_proj.bias", "MultiHeadDotProductAttention_0/key/bias", "-=heads -=*"},
     {"self_attn.v_proj.bias", "MultiHeadDotProductAttention_0/value/bias", "-=heads -=*"},
     {"self_attn.out_proj.bias", "MultiHeadDotProductAttention_0/out/bias", "-=*"},
     {"mlp.fc1.weight", "MlpBlock_0/Dense_0/kernel", "-=hidden -=ffn"},
     {"mlp.fc1.bias", "MlpBlock_0/Dense_0/bias", "-=*"},
     {"mlp.fc2.weight", "MlpBlock_0/Dense_1/kernel", "-=ffn -=hidden"},
     {"mlp.fc2.bias", "MlpBlock_0/Dense_1/bias", "-=*"}});

}  // namespace

ViewedLayers big_vision_layers(const ViewInput& input) {
  const auto& known = big_vision_families();
  if (std::count(known.begin(), known.end(), input.family) == 0) {
    fail_without_family(input, "big_vision", known);
  }
  ViewedLayers layers;
  for (const auto& [stack, count] : layer_counts(input.workload)) {
    const std::string tower =
        stack.starts_with("text_model.") ? "txt/Encoder_0" : "img/Transformer";
    const TreeView::Layer scanned = {
        .path = "params/" + tower + "/encoderblock", .mark = "", .stacked = true};
    layers[stack].assign(count, scanned);
  }
  return layers;
}

std::optional<ViewedParameter> big_vision_parameter(const ViewInput& input, TensorId parameter) {
  auto viewed = by_row(input.workload, parameter, big_vision_rows, {});
  if (viewed) viewed->form.has_axes = false;
  return viewed;
}

}  // namespace shardsim
