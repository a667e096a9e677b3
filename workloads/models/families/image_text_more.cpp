// More models that read images beside text: Aria, DeepSeek-VL, EXAONE 4.5, HyperCLOVA X, Kimi K2.5,
// VideoLLaMA 3, Ovis 2, LFM 3, ERNIE 4.5 VL. A step here is one of text alone, as image_text.cpp
// has it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

constexpr const char* text_at = "model.language_model.";

// Learned rows that attend to patches, as many as the most that a page of them needs.
ModelSpec aria(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec =
      inside(read_text(text, "aria_text"), text_at, "lm_head", is_tied(c, text, false));
  const std::int64_t hidden =
      add_siglip_tower(spec, images, "model.vision_tower.",
                       {.hidden = 1152, .patch = 32, .heads = 16, .head = false});
  std::int64_t rows = c.count("max_value_projector_patch_to_query_dict", 0);
  if (const auto queries = c.sub("projector_patch_to_query_dict")) {
    for (const auto& [patches, number] : queries->json().members()) {
      rows = std::max(rows, queries->size(patches));
    }
  }
  constexpr std::int64_t usual = 256;
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.multi_modal_projector.";
  const std::string cross = at + "cross_attn.";
  spec.apart.push_back({at + "query", {rows > 0 ? rows : usual, hidden}});
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    add_linear(spec, cross + name, hidden, hidden, false);
  }
  spec.apart.push_back({cross + "multihead_attn.in_proj_weight", {3 * hidden, hidden}});
  spec.apart.push_back({cross + "multihead_attn.in_proj_bias", {3 * hidden}});
  add_linear(spec, cross + "multihead_attn.out_proj", hidden, hidden, true);
  add_linear(spec, cross + "linear", hidden, hidden, true);
  for (const std::string& norm :
       {cross + "layer_norm", cross + "layer_norm_kv", at + "layer_norm"}) {
    add_norm(spec, norm, hidden, true);
  }
  add_linear(spec, at + "feed_forward.linear_in", out, hidden, false);
  add_linear(spec, at + "feed_forward.linear_out", out, out, false);
  return spec;
}

ModelSpec deepseek_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec = inside(read_text(text, "llama"), text_at, "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = add_siglip_tower(spec, images_of(c), "model.vision_model.");
  const std::int64_t out = spec.stacks.back().hidden;
  add_linear(spec, "model.aligner.linear1", out, hidden, true);
  add_linear(spec, "model.aligner.linear2", out, out, true);
  return spec;
}

// Segment Anything's encoder beside SigLIP's, its picture of an early layer through a neck of its
// own.
ModelSpec deepseek_vl_hybrid(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config fine = nested(c, "high_res_vision_config");
  ModelSpec spec = inside(read_text(text, "llama"), text_at, "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = add_siglip_tower(spec, images_of(c), "model.vision_model.");
  const std::string at = "model.high_res_vision_";
  add_network(spec, sam_encoder(fine, at + "model.vision_encoder."), fine.json().place());
  const std::int64_t channels = fine.size("output_channels", 256);
  constexpr std::int64_t taps = 3;
  spec.apart.push_back({at + "alpha", {1}});
  add_convolution(spec, at + "neck.conv1", {channels, fine.size("hidden_size", 768), 1, 1}, false);
  add_norm(spec, at + "neck.layer_norm1", channels, true);
  add_convolution(spec, at + "neck.conv2", {channels, channels, taps, taps}, false);
  add_norm(spec, at + "neck.layer_norm2", channels, true);
  add_convolution(spec, at + "proj.conv1", {2 * channels, channels, taps, taps}, false);
  add_convolution(spec, at + "proj.conv2", {4 * channels, 2 * channels, taps, taps}, false);
  const std::int64_t out = spec.stacks.back().hidden;
  add_linear(spec, "model.aligner.vision_proj", out / 2, hidden, true);
  add_linear(spec, "model.aligner.high_res_vision_proj", out / 2, 4 * channels, true);
  add_linear(spec, "model.aligner.proj", out, out, true);
  return spec;
}

// Qwen2.5-VL's tower with fewer heads of keys.
ModelSpec exaone4_5(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec = inside(read_text(text, "exaone4"), text_at, "lm_head", is_tied(c, text, false));
  add_qwen2_5_images(spec, images_of(c), "model.visual.", /*usual_kv_heads=*/8);
  return spec;
}

ModelSpec hyperclovax_vision(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec =
      inside(read_text(text, "hyperclovax"), text_at, "lm_head", is_tied(c, text, true));
  add_qwen2_5_images(spec, images, "model.vision_model.");
  add_linear(spec, "model.projector", spec.stacks.back().hidden,
             images.size("out_hidden_size", 3584), true);
  return spec;
}

ModelSpec kimi_k25(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"projection_layer_norm_eps"});
  images.pass_over({"pos_emb_time"});  // computed
  ModelSpec spec =
      inside(read_text(text, "deepseek_v3"), text_at, "lm_head", is_tied(c, text, true));
  std::get<TokenEmbedding>(spec.stacks.back().input).shifted = true;  // numbers are copied
  const std::int64_t hidden = images.size("hidden_size", 1152);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::string at = "model.vision_tower.";
  add_convolution(spec, at + "patch_embed.proj", {hidden, 3, patch, patch}, true);
  spec.apart.push_back(
      {at + "patch_embed.pos_emb.position_embeddings",
       {images.size("pos_emb_height", 64), images.size("pos_emb_width", 64), hidden}});
  add_norm(spec, at + "final_layernorm", hidden, true);
  const std::vector<std::int64_t> merge = images.sizes("merge_kernel_size", {2, 2});
  if (merge.size() != 2) images.fail("merge_kernel_size", "is not rows and columns");
  const std::int64_t merged = hidden * merge[0] * merge[1];
  add_norm(spec, "model.mm_projector.pre_norm", c.size("projection_hidden_size", 1152), true);
  add_linear(spec, "model.mm_projector.in_proj", merged, merged, true);
  add_linear(spec, "model.mm_projector.out_proj", spec.stacks.back().hidden, merged, true);
  add_silent(spec,
             tower(at + "layers", hidden, images.size("num_hidden_layers", 27),
                   images.size("num_attention_heads", 16), images.size("intermediate_size", 4304),
                   {.norm1 = "norm1", .norm2 = "norm2", .attention = "attn", .out = "proj"}));
  return spec;
}

// SigLIP's tower whose places are turned.
ModelSpec video_llama_3(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "qwen2"), text_at, "lm_head", is_tied(c, text, false, TiedBy::either));
  const std::int64_t hidden =
      add_siglip_tower(spec, images_of(c), "model.vision_model.", {.head = false, .places = false});
  const std::int64_t out = spec.stacks.back().hidden;
  add_linear(spec, "model.projector.readout.0", out, hidden, true);
  add_linear(spec, "model.projector.readout.2", out, out, true);
  return spec;
}

// Images as words of a vocabulary of their own, each a mixture of the table's rows.
ModelSpec ovis2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"vocab_size", "visual_indicator_token_ids"});
  images.pass_over({"tokenize_function"});
  ModelSpec spec = inside(read_text(text, "qwen2"), text_at, "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t side = images.size("image_size", 224) / patch;
  const std::int64_t words = images.size("vocab_size", 16384);
  const std::int64_t own = words - images.count("num_visual_indicator_tokens", 5);
  if (own < 1) images.fail("num_visual_indicator_tokens", "leaves no words");
  const std::int64_t stride = images.size("hidden_stride", 1);
  const bool bias = images.flag("qkv_bias", false);
  const bool mlp_bias = images.flag("mlp_bias", false);
  const std::string at = "model.vision_tower.transformer.";
  add_convolution(spec, at + "embeddings.patch_embedding",
                  {hidden, images.size("num_channels", 3), patch, patch}, true);
  add_table(spec, at + "embeddings.position_embedding", side * side, hidden);
  add_norm(spec, at + "embeddings.rms_norm", hidden, false);
  add_norm(spec, at + "rms_norm", hidden, false);
  add_linear(spec, "model.vision_tower.head_linear", own, hidden * stride * stride, false);
  add_norm(spec, "model.vision_tower.head_norm", own, true);
  add_table(spec, "model.visual_embeddings_table", words, c.size("hidden_size", 1536));
  Stack stack = tower(at + "encoder.layers", hidden, images.size("num_hidden_layers", 24),
                      images.size("num_attention_heads", 8), images.size("intermediate_size", 2816),
                      {.norm1 = "rms_norm1",
                       .norm2 = "rms_norm2",
                       .attention = "attention",
                       .up = "up_proj",
                       .down = "down_proj",
                       .norm = NormKind::rms,
                       .bias = bias,
                       .form = MlpForm::gated,
                       .mlp = "ffn"});
  for (LayerKind& kind : stack.kinds) std::get<Mlp>(kind.branches[1].body).bias = mlp_bias;
  add_silent(spec, std::move(stack));
  return spec;
}

// Persimmon; patches are products of their pixels, as wide as the text.
ModelSpec fuyu(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "persimmon"), text_at, "lm_head", is_tied(c, text, false));
  const std::int64_t patch = c.size("patch_size", 30);
  c.pass_over({"image_size"});
  add_linear(spec, "model.vision_embed_tokens", spec.stacks.back().hidden,
             c.size("num_channels", 3) * patch * patch, true);
  return spec;
}

// Layers that attend among layers of convolutions over places.
void add_lfm3_images(ModelSpec& spec, const Config& images, const std::string& at) {
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t heads = images.size("num_attention_heads", 16);
  const std::int64_t head = images.divided("hidden_size", hidden, "num_attention_heads", heads);
  const std::int64_t keys = head * images.size("num_key_value_heads", 8);
  const std::int64_t width = images.size("intermediate_size", 2560);
  const std::int64_t taps = images.size("conv_kernel_size", 3);
  const std::int64_t patch = images.size("patch_size", 16);
  add_linear(spec, at + "patch_embed", hidden,
             images.size("in_channels", 3) * images.size("temporal_patch_size", 2) * patch * patch,
             false);
  add_norm(spec, at + "embedding_norm", hidden, false);
  const std::int64_t layers = images.layers("num_hidden_layers", 14);
  const auto types = layer_types(images, layers, [](std::int64_t i) {
    return std::string(i > 0 && i % 2 == 0 ? "full_attention" : "conv");
  });
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", at, i);
    add_norm(spec, layer + "operator_norm", hidden, false);
    add_norm(spec, layer + "ffn_norm", hidden, false);
    add_linear(spec, layer + "feed_forward.w1", width, hidden, false);
    add_linear(spec, layer + "feed_forward.w3", width, hidden, false);
    add_linear(spec, layer + "feed_forward.w2", hidden, width, false);
    if (!is_full(types, i)) {
      add_linear(spec, layer + "conv.in_proj", 3 * hidden, hidden, false);
      add_convolution(spec, layer + "conv.spatial_conv", {hidden, 1, taps, taps}, false);
      add_linear(spec, layer + "conv.out_proj", hidden, hidden, false);
      continue;
    }
    add_linear(spec, layer + "self_attn.q_proj", hidden, hidden, false);
    add_linear(spec, layer + "self_attn.k_proj", keys, hidden, false);
    add_linear(spec, layer + "self_attn.v_proj", keys, hidden, false);
    add_linear(spec, layer + "self_attn.out_proj", hidden, hidden, false);
    add_norm(spec, layer + "self_attn.q_norm", head, false);
    add_norm(spec, layer + "self_attn.k_norm", head, false);
  }
}

ModelSpec lfm3_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(read_text(text, "lfm3"), text_at, "lm_head", is_tied(c, text, true));
  add_lfm3_images(spec, images, "model.vision_tower.");
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t width = c.size("projector_hidden_size", 4096);
  const bool bias = c.flag("projector_bias", true);
  const std::string at = "model.multi_modal_projector.";
  add_norm(spec, at + "layer_norm", hidden, true);
  add_linear(spec, at + "linear_1", width, hidden * merge * merge, bias);
  add_linear(spec, at + "linear_2", spec.stacks.back().hidden, width, bias);
  return spec;
}

// ERNIE 4.5's text, whose layers have experts for images, too: those do not run on text.
ModelSpec ernie_text(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .tied = true});
  const std::vector<std::int64_t> widths = c.sizes("moe_intermediate_size", {1536, 512});
  if (widths.size() != 2) c.fail("moe_intermediate_size", "is not of text and of images");
  const bool bias = c.flag("use_bias", false);
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias, bias);
  attention.rotary.fp32 = attention.rotary.by_example = true;
  Mlp mlp = llama_mlp(n);
  mlp.bias = bias;
  Experts experts = read_experts(c, n, "moe_num_experts|num_experts", 64,
                                 "moe_k|num_experts_per_tok", 6, widths[0]);
  experts.name = "mlp.text_moe";
  experts.router.fp32_weight = experts.router.cast_back = true;
  experts.router.renormalize = Renormalize::clamped;
  experts.router.correction_bias = "moe_statics.e_score_correction_bias";
  experts.router.correction_is_parameter = true;
  Experts of_images = experts;
  of_images.name = "mlp.vision_moe";
  of_images.width = widths[1];
  if (const std::int64_t shared = c.count("moe_num_shared_experts", 2); shared > 0) {
    experts.shared = mlp;
    experts.shared->name = "mlp.shared_experts";
    experts.shared->width = experts.width * shared;
    experts.shared_outside = true;
  }
  const auto types = layer_types(
      c, n.layers, [](std::int64_t i) { return std::string(i == 0 ? "dense" : "sparse"); },
      "mlp_layer_types");
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (types[static_cast<std::size_t>(i)] == "dense") {
                     return llama_layer(n, "dense", attention, mlp);
                   }
                   LayerKind layer = llama_layer(n, "experts", attention, experts);
                   layer.branches.push_back({.body = of_images, .silent = true});
                   return layer;
                 }));
}

ModelSpec ernie4_5_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(ernie_text(text), text_at, "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = images.size("hidden_size", 1280);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::string at = "model.vision_tower.";
  add_linear(spec, at + "patch_embed.proj", hidden, images.size("in_channels", 3) * patch * patch,
             false);
  add_norm(spec, at + "ln", hidden, true);
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t merged = hidden * merge * merge;
  const std::string resampler = "model.resampler_model.";
  const auto add_mlp = [&](const std::string& name, std::int64_t in) {
    add_linear(spec, resampler + name + ".fc1", merged, in, true);
    add_linear(spec, resampler + name + ".fc2", merged, merged, true);
    add_norm(spec, resampler + name + ".ln", merged, true);
  };
  add_mlp("spatial_linear", merged);
  add_mlp("temporal_linear", merged * images.size("temporal_merge_size", 2));
  const std::int64_t out = spec.stacks.back().hidden;
  add_linear(spec, resampler + "mlp", out, merged, true);
  add_norm(spec, resampler + "after_norm", out, false);
  add_silent(
      spec,
      tower(
          at + "blocks", hidden, images.size("depth", 32), images.size("num_heads", 16),
          images.size("intermediate_size", 5120),
          {.norm1 = "norm1", .norm2 = "norm2", .attention = "attn", .out = "proj", .qkv = "qkv"}));
  return spec;
}

}  // namespace

std::vector<Family> more_image_text_families() {
  return {
      {"AriaForConditionalGeneration", "aria", aria},
      {"DeepseekVLForConditionalGeneration", "deepseek_vl", deepseek_vl},
      {"Exaone4_5_ForConditionalGeneration", "exaone4_5", exaone4_5},
      {"HyperCLOVAXVisionV2ForConditionalGeneration", "hyperclovax_vision_v2", hyperclovax_vision},
      {"Kimi_K25ForConditionalGeneration", "kimi_k25", kimi_k25},
      {"VideoLlama3ForConditionalGeneration", "video_llama_3", video_llama_3},
      {"Ovis2ForConditionalGeneration", "ovis2", ovis2},
      {"FuyuForCausalLM", "fuyu", fuyu},
      {"DeepseekVLHybridForConditionalGeneration", "deepseek_vl_hybrid", deepseek_vl_hybrid},
      {"Lfm3VlForConditionalGeneration", "lfm3_vl", lfm3_vl},
      {"Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_vl_moe", ernie4_5_vl}};
}

}  // namespace shardsim::models
