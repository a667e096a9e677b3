// Kin of LLaVA: towers of images and their projectors beside a text model. A step here is one of
// text alone, as image_text.cpp has it.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

constexpr const char* projector = "model.multi_modal_projector.";

ModelSpec read_inside(const Config& c, std::string_view text, bool tied,
                      TiedBy by = TiedBy::model) {
  const Config config = nested(c, "text_config");
  return inside(read_text(config, text), "model.language_model.", "lm_head",
                is_tied(c, config, tied, by));
}

// Tiles of images, between whose rows a learned one stands.
ModelSpec with_newline(const Config& c, ModelSpec spec, std::string_view vision) {
  spec.apart.push_back({"model.image_newline", {spec.stacks.back().hidden}});
  add_two_linears(spec, c, add_tower(spec, images_of(c), "model.vision_tower.", vision));
  return spec;
}

ModelSpec llava_next(const Config& c) {
  c.pass_over({"use_image_newline_parameter"});
  return with_newline(c, read_inside(c, "llama", false), "clip_vision_model");
}

ModelSpec llava_onevision(const Config& c) {
  c.pass_over({"vision_aspect_ratio", "use_image_newline_parameter"});
  return with_newline(c, read_inside(c, "qwen2", false, TiedBy::either), "siglip_vision_model");
}

// Of frames, whose features are pooled, too.
ModelSpec llava_next_video(const Config& c) {
  c.pass_over({"image_seq_length", "spatial_pool_mode", "spatial_pool_stride",
               "use_image_newline_parameter", "video_seq_length"});
  return with_newline(c, read_inside(c, "llama", false, TiedBy::either), "clip_vision_model");
}

// Towers of images and of frames.
ModelSpec video_llava(const Config& c) {
  c.pass_over({"image_seq_length", "video_seq_length"});
  ModelSpec spec = read_inside(c, "llama", false);
  const Config images = images_of(c);
  add_tower(spec, images, "model.video_tower.", "clip_vision_model");
  add_two_linears(spec, c, add_tower(spec, images, "model.image_tower.", "clip_vision_model"));
  return spec;
}

// Features of several layers side by side.
ModelSpec vipllava(const Config& c) {
  ModelSpec spec = read_inside(c, "llama", false);
  const std::int64_t hidden = add_tower(spec, images_of(c, /*several_layers=*/true),
                                        "model.vision_tower.", "clip_vision_model");
  constexpr std::int64_t usual = 5;
  const auto given =
      static_cast<std::int64_t>(c.integers("vision_feature_layers|vision_feature_layer").size());
  const std::int64_t features = hidden * (given > 0 ? given : usual);
  c.pass_over({"projector_layernorm_eps"});
  add_norm(spec, std::string(projector) + "projector_layernorm", features, true);
  add_two_linears(spec, c, features);
  return spec;
}

ModelSpec paligemma(const Config& c) {
  nested(c, "text_config").pass_over({"num_image_tokens", "use_bidirectional_attention"});
  ModelSpec spec = read_inside(c, "gemma", true);
  const Config images = images_of(c);
  images.pass_over({"num_image_tokens", "projector_hidden_act"});
  c.pass_over({"hidden_size", "vocab_size", "_vocab_size"});  // text_config says them
  constexpr std::int64_t usual_image_token = 256000;          // configuration_paligemma.py
  copy_numbers_of_images(c, spec, usual_image_token);
  const std::int64_t hidden = add_siglip_tower(spec, images, "model.vision_tower.");
  add_linear(spec, std::string(projector) + "linear", c.size("projection_dim", 2048), hidden, true);
  return spec;
}

// Patches that lie in a square become one token.
ModelSpec idefics3(const Config& c) {
  const Config text = nested(c, "text_config");
  text.pass_over({"neftune_noise_alpha", "perceiver_config", "pixel_shuffle_factor",
                  "qk_layer_norms", "use_resampler"});
  const Config images = images_of(c);
  images.pass_over({"max_image_size", "size", "use_base_siglip", "tie_word_embeddings"});
  c.pass_over({"image_seq_len", "vocab_size", "_pad_token_id"});
  ModelSpec spec =
      inside(read_text(text, "llama"), "model.text_model.", "lm_head", is_tied(c, text, false));
  const std::int64_t hidden =
      add_siglip_tower(spec, images, "model.vision_model.",
                       {.hidden = 1152, .patch = 32, .heads = 16, .head = false});
  const std::int64_t scale = c.size("scale_factor", 2);
  add_linear(spec, "model.connector.modality_projection.proj", spec.stacks.back().hidden,
             hidden * scale * scale, false);
  return spec;
}

// [height, width] in files; squares alone.
std::int64_t square(const Config& c, std::string_view key, std::int64_t otherwise) {
  const auto value = c.json().find(key);
  if (!value || !value->is_array()) return c.size(key, otherwise);
  const std::vector<std::int64_t> sides = c.sizes(key, {});
  if (sides.size() != 2 || sides[0] != sides[1]) c.fail(key, "only squares are supported");
  return sides[0];
}

}  // namespace

ModelSpec internvl_like(const Config& c, std::string_view text, bool tied,
                        const std::string& layers) {
  ModelSpec spec = read_inside(c, text, tied);
  const Config images = images_of(c);
  images.pass_over({"attention_dropout", "hidden_dropout_prob", "projection_dropout", "dropout",
                    "layer_scale_init_value"});
  c.pass_over({"image_seq_length"});
  const std::string at = "model.vision_tower.";
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t patch = square(images, "patch_size", 14);
  const std::int64_t side = square(images, "image_size", 448) / patch;
  spec.apart.push_back({at + "embeddings.cls_token", {1, 1, hidden}});
  if (images.flag("use_mask_token", false)) {
    spec.apart.push_back({at + "embeddings.mask_token", {1, 1, hidden}});
  }
  if (images.flag("use_absolute_position_embeddings", true)) {
    spec.apart.push_back({at + "embeddings.position_embeddings", {1, side * side + 1, hidden}});
  }
  const std::string patches = at + "embeddings.patch_embeddings.projection";
  spec.apart.push_back(
      {patches + ".weight", {hidden, images.size("num_channels", 3), patch, patch}});
  spec.apart.push_back({patches + ".bias", {hidden}});
  const bool is_rms = images.text("norm_type", "layer_norm") == "rms_norm";
  Stack stack =
      tower(at + layers, hidden, images.size("num_hidden_layers", 24),
            images.size("num_attention_heads", 16), images.size("intermediate_size", 4096),
            {.norm1 = "layernorm_before",
             .norm2 = "layernorm_after",
             .attention = "attention",
             .out = "projection_layer"});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    set_biases(attention, images.flag("attention_bias", false), true);
    if (images.flag("use_qk_norm", false)) {
      attention.norm_whole = true;
      attention.q_norm = {NormKind::rms, "q_norm"};
      attention.k_norm = {NormKind::rms, "k_norm"};
    }
    kind.branches[0].scale = "lambda_1";
    kind.branches[1].scale = "lambda_2";
    if (!is_rms) continue;
    for (Branch& branch : kind.branches) branch.before = {NormKind::rms, branch.before.name};
  }
  if (!images.flag("use_mean_pooling", true)) add_norm(spec, at + "layernorm", hidden, true);
  const double ratio = c.ratio("downsample_ratio", 0.5);
  const auto merged = static_cast<std::int64_t>(static_cast<double>(hidden) / (ratio * ratio));
  add_norm(spec, std::string(projector) + "layer_norm", merged, true);
  add_two_linears(spec, c, merged);
  add_silent(spec, std::move(stack));
  return spec;
}

namespace {

ModelSpec internvl(const Config& c) { return internvl_like(c, "qwen2", true, "encoder.layer"); }

// Command A's: squares of patches, and a gated projector.
ModelSpec gated_projector(const Config& c, bool normed) {
  ModelSpec spec = read_inside(c, "cohere2", true);
  const std::int64_t hidden = add_siglip_tower(spec, images_of(c), "model.vision_tower.");
  const std::int64_t factor = c.size("downsample_factor", 2);
  const std::int64_t out = spec.stacks.back().hidden;
  const std::int64_t inner = c.size("alignment_intermediate_size", normed ? out : 36864);
  const std::int64_t in = hidden * factor * factor;
  const std::string at = projector;
  c.pass_over({"adapter_layer_norm_eps"});
  if (normed) add_norm(spec, at + "layernorm", in, true);
  add_linear(spec, at + "linear_1", inner, in, true);
  add_linear(spec, at + "linear_2", out, inner / 2, true);
  return spec;
}

ModelSpec aya_vision(const Config& c) { return gated_projector(c, /*normed=*/true); }
ModelSpec cohere2_vision(const Config& c) { return gated_projector(c, /*normed=*/false); }

}  // namespace

std::vector<Family> image_text_kin_families() {
  return {{"LlavaNextForConditionalGeneration", "llava_next", llava_next},
          {"LlavaOnevisionForConditionalGeneration", "llava_onevision", llava_onevision},
          {"LlavaNextVideoForConditionalGeneration", "llava_next_video", llava_next_video},
          {"VideoLlavaForConditionalGeneration", "video_llava", video_llava},
          {"VipLlavaForConditionalGeneration", "vipllava", vipllava},
          {"PaliGemmaForConditionalGeneration", "paligemma", paligemma},
          {"Idefics3ForConditionalGeneration", "idefics3", idefics3},
          {"SmolVLMForConditionalGeneration", "smolvlm", idefics3},
          {"InternVLForConditionalGeneration", "internvl", internvl},
          {"AyaVisionForConditionalGeneration", "aya_vision", aya_vision},
          {"Cohere2VisionForConditionalGeneration", "cohere2_vision", cohere2_vision}};
}

}  // namespace shardsim::models
