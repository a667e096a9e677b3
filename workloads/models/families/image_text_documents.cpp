// Models that read pages: GOT-OCR 2, Unlimited-OCR, Molmo 2, LightOn-OCR, PaddleOCR-VL,
// Qianfan-OCR, Granite Docling, MiniCPM-V 4.6 and its kin for pages. A step here is one of text
// alone, as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

constexpr const char* text_prefix = "model.language_model.";

// Segment Anything's encoder, whose picture two convolutions make smaller.
ModelSpec got_ocr2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  c.pass_over({"image_seq_length"});
  ModelSpec spec = inside(read_text(text, "qwen2"), text_prefix, "lm_head", is_tied(c, text, true));
  add_network(spec, sam_encoder(images, "model.vision_tower.", 3072), images.json().place());
  const std::int64_t channels = images.size("output_channels", 256);
  const std::int64_t out = spec.stacks.back().hidden;
  constexpr std::int64_t taps = 3;
  const std::string at = "model.multi_modal_projector.";
  add_convolution(spec, at + "conv_upsampler1", {2 * channels, channels, taps, taps}, false);
  add_convolution(spec, at + "conv_upsampler2", {out, 2 * channels, taps, taps}, false);
  add_linear(spec, at + "multimodal_projector", out, out, true);
  return spec;
}

// Attention of a window, all of the page, and experts after the first layer.
ModelSpec unlimited_text(const Config& c) {
  const Sizes n = read_sizes(c, {.hidden = 1280, .width = 6848, .vocab = 129280});
  Attention attention = llama_attention(c, n);
  attention.window = c.count("sliding_window", 128);
  for (const std::string& type : c.texts("layer_types")) {
    if (type != "reference_sliding_attention") {
      c.fail("layer_types", "only \"reference_sliding_attention\" is supported");
    }
  }
  Experts experts = deepseek_experts(c, n, 64, 6, 896, 2);
  experts.router.masked = c.text("topk_method", "greedy") == "group_limited_greedy";
  if (experts.router.masked) read_groups(c, experts.router, 1, 1);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  experts.shared->bias = mlp.bias;
  const auto types = layer_types(
      c, n.layers, [](std::int64_t i) { return std::string(i == 0 ? "dense" : "sparse"); },
      "mlp_layer_types");
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (types[static_cast<std::size_t>(i)] == "dense") {
                     return llama_layer(n, "dense", attention, mlp);
                   }
                   return llama_layer(n, "experts", attention, experts);
                 }));
}

// DeepSeek-OCR's: Segment Anything's encoder before CLIP's layers, whose features lie side by side.
ModelSpec unlimited_ocr(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  const Config sam = nested(images, "sam_config");
  const Config clip = nested(images, "encoder_config");
  ModelSpec spec = inside(unlimited_text(text), text_prefix, "lm_head", is_tied(c, text, false));
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.vision_tower.sam_encoder.";
  add_network(spec, sam_encoder(sam, at), sam.json().place());
  const std::vector<std::int64_t> channels = sam.sizes("downsample_channels", {512, 1024});
  std::int64_t in = sam.size("output_channels", 256);
  constexpr std::int64_t taps = 3;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    add_convolution(spec, fmt::format("{}proj.conv{}", at, i + 1), {channels[i], in, taps, taps},
                    false);
    in = channels[i];
  }
  const std::string clip_at = "model.vision_tower.vision_encoder.";
  Stack stack = clip_vision(clip, clip_at);
  // Its rows come from the first encoder, and nobody norms one of them.
  const auto patches = std::get<PatchEmbedding>(stack.input);
  stack.input = NoInput{};
  stack.norm = {};
  stack.norm_first_only = false;
  const std::int64_t hidden = stack.hidden;
  spec.apart.push_back({clip_at + "embeddings.class_embedding", {hidden}});
  add_table(spec, clip_at + "embeddings.position_embedding", patches.rows(), hidden);
  add_norm(spec, clip_at + "pre_layrnorm", hidden, true);
  add_silent(spec, std::move(stack));
  add_linear(spec, "model.multi_modal_projector", out, hidden + in, true);
  spec.apart.push_back({"model.view_separator", {out}});
  spec.apart.push_back({"model.image_newline", {out}});
  return spec;
}

// Molmo 2's: two layers' features side by side pool into one, by attention.
void add_pooled_features(ModelSpec& spec, const Config& adapter, std::int64_t hidden) {
  adapter.pass_over({"hidden_act", "attention_dropout"});
  const std::vector<std::int64_t> layers = adapter.given("vision_feature_layer")
                                               ? adapter.integers("vision_feature_layer")
                                               : std::vector<std::int64_t>{24, 18};
  const std::int64_t in = hidden * static_cast<std::int64_t>(layers.size());
  const std::int64_t dim = adapter.size("head_dim", 72);
  const std::int64_t queries = dim * adapter.size("num_attention_heads", 16);
  const std::int64_t keys = dim * adapter.size("num_key_value_heads", 16);
  const std::int64_t pooled = adapter.size("hidden_size", 1152);
  const bool bias = adapter.flag("attention_bias", true);
  const std::string pool = "model.multi_modal_projector.image_pooling_2d.";
  add_linear(spec, pool + "q_proj", queries, in, bias);
  add_linear(spec, pool + "k_proj", keys, in, bias);
  add_linear(spec, pool + "v_proj", keys, in, bias);
  add_linear(spec, pool + "o_proj", pooled, queries, true);
  const std::int64_t width = adapter.size("intermediate_size", 18944);
  const bool mlp_bias = adapter.flag("mlp_bias", false);
  const std::string projector = "model.multi_modal_projector.image_projector.";
  add_linear(spec, projector + "gate_proj", width, pooled, mlp_bias);
  add_linear(spec, projector + "up_proj", width, pooled, mlp_bias);
  add_linear(spec, projector + "down_proj", adapter.size("text_hidden_size", 3584), width, false);
}

// Rows of the table beside the vocabulary's.
ModelSpec molmo2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  require(text, {"vocab_size", "intermediate_size", "num_hidden_layers", "num_key_value_heads"});
  if (text.flag("norm_after", false)) text.fail("norm_after", "true is not supported");
  if (text.text("qk_norm_type", "qwen3") != "qwen3") {
    text.fail("qk_norm_type", "only \"qwen3\" is supported");
  }
  text.pass_over({"rope_scaling_layers"});
  c.pass_over({"frame_start_token_id", "frame_end_token_id", "image_patch_id",
               "low_res_image_start_token_id", "image_col_id", "image_low_res_id",
               "use_frame_special_tokens"});
  images.pass_over({"hidden_act", "image_size", "attention_dropout"});
  ModelSpec spec =
      inside(read_as(text, "Qwen3ForCausalLM"), text_prefix, "lm_head", is_tied(c, text, false));
  std::get<TokenEmbedding>(spec.stacks.back().input).vocab +=
      text.count("additional_vocab_size", 128);
  const std::int64_t hidden = images.size("hidden_size", 1152);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::string at = "model.vision_tower.";
  spec.apart.push_back(
      {at + "positional_embedding", {images.size("num_position_embeddings", 729), hidden}});
  add_linear(spec, at + "patch_embedding", hidden, images.size("num_channels", 3) * patch * patch,
             true);
  add_pooled_features(spec, nested(c, "adapter_config"), hidden);
  Stack stack = tower(at + "layers", hidden, images.size("num_hidden_layers", 25),
                      images.size("num_attention_heads", 16),
                      images.size("intermediate_size", 4304), {.out = "o_proj"});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    attention.kv_heads = images.size("num_key_value_heads", 16);
    attention.head_dim = images.size("head_dim", 72);
    set_biases(attention, images.flag("attention_bias", true), true);
  }
  add_silent(spec, std::move(stack));
  return spec;
}

// HunyuanOCR: convolutions merge patches; learned rows begin and end images and their lines.
ModelSpec hunyuan_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"im_newline_id", "im_start_id", "im_end_id"});
  images.pass_over({"attention_dropout", "interpolate_mode", "temporal_patch_size",
                    "img_max_token_num", "max_image_size", "min_image_size", "text_hidden_size"});
  ModelSpec spec = inside(read_as(text, "HunYuanDenseV1ForCausalLM"), text_prefix, "lm_head",
                          is_tied(c, text, true));
  const std::int64_t hidden = images.size("hidden_size", 1152);
  const std::int64_t patch = images.size("patch_size", 16);
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t out = images.size("out_hidden_size", 4096);
  const std::string at = "model.vision_tower.";
  add_convolution(spec, at + "embeddings.patch_embedding",
                  {hidden, images.size("num_channels", 3), patch, patch}, true);
  add_table(spec, at + "embeddings.position_embedding", images.size("max_vit_seq_len", 16384) + 1,
            hidden);
  const std::string merger = at + "patch_merger.";
  spec.apart.push_back({merger + "image_newline", {4 * hidden}});
  for (const char* row : {"image_begin", "image_end", "image_sep"}) {
    spec.apart.push_back({merger + row, {out}});
  }
  add_convolution(spec, merger + "proj_conv", {2 * hidden, hidden, merge, merge}, true);
  add_convolution(spec, merger + "proj_out", {4 * hidden, 2 * hidden, 1, 1}, true);
  add_linear(spec, merger + "mlp", out, 4 * hidden, true);
  add_norm(spec, merger + "before_rms", hidden, false);
  add_norm(spec, merger + "after_rms", out, false);
  const std::int64_t heads = images.size("num_attention_heads", 16);
  Stack stack = tower(at + "layers", hidden, images.size("num_hidden_layers", 27), heads,
                      images.size("intermediate_size", 4304), {.out = "o_proj"});
  for (LayerKind& kind : stack.kinds) {
    std::get<Attention>(kind.branches[0].body).kv_heads = images.size("num_key_value_heads", heads);
  }
  add_silent(spec, std::move(stack));
  return spec;
}

// Mistral 3's tower and projector before Qwen3.
ModelSpec lighton_ocr(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec = inside(read_text(text, "qwen3"), text_prefix, "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = add_pixtral_tower(spec, images_of(c), "model.vision_encoder.");
  const std::int64_t merge = c.size("spatial_merge_size", 2);
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.vision_projection.";
  add_norm(spec, at + "norm", hidden, false);
  add_linear(spec, at + "patch_merger.merging_layer", hidden, hidden * merge * merge, false);
  add_linear(spec, at + "linear_1", out, hidden, false);
  add_linear(spec, at + "linear_2", out, out, false);
  return spec;
}

ModelSpec paddleocr_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(read_as(text, "Ernie4_5ForCausalLM"), text_prefix, "lm_head",
                          is_tied(c, text, true, TiedBy::either));
  for (LayerKind& kind : spec.stacks.back().kinds) {
    // Tables are made once, in the model's type.
    Rotary& rotary = std::get<Attention>(kind.branches[0].body).rotary;
    rotary.fp32 = rotary.each_layer = false;
  }
  const std::int64_t hidden = add_siglip_tower(spec, images, "model.visual.vision_model.",
                                               {.hidden = 1152,
                                                .patch = 14,
                                                .heads = 16,
                                                .head = false,
                                                .image = 384,
                                                .width = 4304,
                                                .layers = 27});
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t merged = hidden * merge * merge;
  add_norm(spec, "model.projector.pre_norm", hidden, true);
  add_linear(spec, "model.projector.linear_1", merged, merged, true);
  add_linear(spec, "model.projector.linear_2", spec.stacks.back().hidden, merged, true);
  return spec;
}

ModelSpec qianfan_ocr(const Config& c) {
  nested(c, "vision_config").pass_over({"drop_path_rate"});
  ModelSpec spec = internvl_like(c, "qwen3", /*tied=*/false, "layers");
  const bool bias = nested(c, "vision_config").flag("attention_bias", true);
  for (Stack& stack : spec.stacks) {
    if (stack.role != StackRole::silent) continue;
    for (LayerKind& kind : stack.kinds) {
      set_biases(std::get<Attention>(kind.branches[0].body), bias, true);
    }
  }
  return spec;
}

// What makes tokens of squares of patches; features of some layers have a merger of their own.
void add_route(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t out,
               std::size_t layers) {
  add_linear(spec, at + "projection", out, in, false);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string merger = fmt::format("{}deepstack_mergers.{}.", at, i);
    add_norm(spec, merger + "layer_norm", in, true);
    add_linear(spec, merger + "linear_1", out, in, true);
    add_linear(spec, merger + "linear_2", out, out, true);
  }
}

// Idefics 3's tower before Granite; a coarse way to the text and a fine one.
ModelSpec granite_docling(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  require(text, {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                 "num_attention_heads", "num_key_value_heads"});
  c.pass_over({"density_router_threshold", "density_router_loss_weight"});
  ModelSpec spec = inside(read_as(text, "GraniteForCausalLM"), "model.text_model.", "lm_head",
                          is_tied(c, text, true));
  const std::int64_t hidden =
      add_siglip_tower(spec, images, "model.vision_model.", {.head = false, .image = 512});
  const std::int64_t out = images.size("out_hidden_size", 1024);
  const std::int64_t scale = images.size("scale_factor", 4);
  const std::size_t deep = images.given("deepstack_visual_indexes")
                               ? images.integers("deepstack_visual_indexes").size()
                               : 3;
  const std::string at = "model.vision_model.connector.";
  add_norm(spec, at + "ln_in", hidden, true);
  add_route(spec, at + "coarse.", hidden * scale * scale, out, deep);
  if (images.flag("use_fine_route", true)) {
    const std::int64_t half = scale / 2;
    add_route(spec, at + "fine.", hidden * half * half, out, deep);
  }
  add_norm(spec, at + "ln_mid", out, true);
  add_linear(spec, at + "mlp_fc2", out, out, false);
  add_norm(spec, at + "ln_out", out, true);
  if (const auto router = c.optional_size("density_router_hidden_size", std::nullopt)) {
    add_linear(spec, "model.density_router.att", 1, hidden, true);
    add_norm(spec, "model.density_router.norm", hidden, true);
    add_linear(spec, "model.density_router.fc1", *router, hidden, true);
    add_linear(spec, "model.density_router.fc2", 1, *router, true);
  }
  return spec;
}

// SigLIP's tower, within which windows of patches attend and are merged, before Qwen3.5.
ModelSpec minicpm_v(const Config& c, bool tied) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over(
      {"insert_layer_id", "image_size", "drop_vision_last_layer", "downsample_mode", "patch_size"});
  images.pass_over({"insert_layer_id"});
  ModelSpec spec =
      inside(read_text(text, "qwen3_5_text"), text_prefix, "lm_head", is_tied(c, text, tied));
  const std::string at = "model.vision_tower.";
  const std::int64_t hidden = add_siglip_tower(spec, images, at, {.head = false});
  const std::vector<std::int64_t> window = images.sizes("window_kernel_size", {2, 2});
  const std::vector<std::int64_t> merge = c.sizes("merge_kernel_size", {2, 2});
  if (window.size() != 2) images.fail("window_kernel_size", "is not rows and columns");
  if (merge.size() != 2) c.fail("merge_kernel_size", "is not rows and columns");
  const std::int64_t square = window[0] * window[1];
  const std::string merger = at + "vit_merger.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    add_linear(spec, merger + "self_attn." + name, hidden, hidden, true);
  }
  const std::int64_t inner = images.size("intermediate_size", 3072) * square;
  add_norm(spec, merger + "layer_norm1", hidden, true);
  add_norm(spec, merger + "pre_norm", hidden * square, true);
  add_linear(spec, merger + "linear_1", inner, hidden * square, true);
  add_linear(spec, merger + "linear_2", hidden, inner, true);
  const std::int64_t merged = hidden * merge[0] * merge[1];
  const std::int64_t times = c.size("merger_times", 1);
  for (std::int64_t i = 0; i < times; ++i) {
    const std::string layer = fmt::format("model.merger.mlp.{}.", i);
    add_norm(spec, layer + "pre_norm", merged, true);
    add_linear(spec, layer + "linear_1", merged, merged, true);
    add_linear(spec, layer + "linear_2", i + 1 < times ? hidden : spec.stacks.back().hidden, merged,
               true);
  }
  return spec;
}

ModelSpec minicpmv4_6(const Config& c) { return minicpm_v(c, /*tied=*/false); }
ModelSpec minicpm_ocr(const Config& c) { return minicpm_v(c, /*tied=*/true); }

}  // namespace

std::vector<Family> document_families() {
  return {{"GotOcr2ForConditionalGeneration", "got_ocr2", got_ocr2},
          {"UnlimitedOcrForConditionalGeneration", "unlimited_ocr", unlimited_ocr},
          {"Molmo2ForConditionalGeneration", "molmo2", molmo2},
          {"HunYuanVLForConditionalGeneration", "hunyuan_vl", hunyuan_vl},
          {"LightOnOcrForConditionalGeneration", "lighton_ocr", lighton_ocr},
          {"PaddleOCRVLForConditionalGeneration", "paddleocr_vl", paddleocr_vl},
          {"QianfanOCRForConditionalGeneration", "qianfan_ocr", qianfan_ocr},
          {"GraniteDoclingForConditionalGeneration", "granite_docling", granite_docling},
          {"MiniCPMV4_6ForConditionalGeneration", "minicpmv4_6", minicpmv4_6},
          {"MiniCPMV4_7ForConditionalGeneration", "minicpmv4_7", minicpmv4_6},
          {"MiniCPMOcrForConditionalGeneration", "minicpm_ocr", minicpm_ocr}};
}

}  // namespace shardsim::models
