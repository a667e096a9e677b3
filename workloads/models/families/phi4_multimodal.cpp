// Phi-4 multimodal: Phi-3's layers; towers of images and sounds, which text does not run, lie
// beside the embedding.
//
// Source: transformers 5.23.0, modeling_phi4_multimodal.py.
#include <fmt/format.h>

#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

void add_one(ModelSpec& spec, const std::string& name, const Shape& shape) {
  spec.apart.push_back({name, shape});
}

void add_filter(ModelSpec& spec, const std::string& name, const Shape& shape) {
  add_one(spec, name + ".weight", shape);
  add_one(spec, name + ".bias", {shape.front()});
}

// SigLIP's, with a head that pools.
void add_phi4_eye(ModelSpec& spec, const Config& c, const std::string& at, std::int64_t text) {
  c.pass_over({"hidden_act", "attention_dropout", "feature_layer", "image_token_id"});
  const std::int64_t hidden = c.size("hidden_size", 1152);
  const std::int64_t width = c.size("intermediate_size", 4304);
  const std::int64_t patch = c.size("patch_size", 14);
  const std::int64_t side = c.size("crop_size|image_size", 448) / patch;
  add_one(spec, at + "global_img_feature_extensor", {1, 1, hidden});
  add_one(spec, at + "sub_img_feature_extensor", {1, 1, 1, hidden});
  const std::string tower_at = at + "img_processor.";
  add_filter(spec, tower_at + "embeddings.patch_embedding",
             {hidden, c.size("num_channels", 3), patch, patch});
  spec.apart.push_back({tower_at + "embeddings.position_embedding.weight",
                        {side * side, hidden},
                        /*embedding=*/true});
  add_silent(spec, tower(tower_at + "encoder.layers", hidden, c.layers("num_hidden_layers", 27),
                         c.size("num_attention_heads", 16), width, {}));
  add_norm(spec, tower_at + "post_layernorm", hidden, true);
  const std::string head = tower_at + "head.";
  add_one(spec, head + "probe", {1, 1, hidden});
  add_one(spec, head + "attention.in_proj_weight", {3 * hidden, hidden});
  add_one(spec, head + "attention.in_proj_bias", {3 * hidden});
  add_linear(spec, head + "attention.out_proj", hidden, hidden, true);
  add_norm(spec, head + "layernorm", hidden, true);
  add_linear(spec, head + "mlp.fc1", width, hidden, true);
  add_linear(spec, head + "mlp.fc2", hidden, width, true);
  add_linear(spec, at + "img_projection_up", text, hidden, true);
  add_linear(spec, at + "img_projection_down", text, text, true);
}

void add_phi4_sound_layer(ModelSpec& spec, const Config& c, const std::string& at,
                          std::int64_t hidden) {
  const std::int64_t width = c.size("intermediate_size", 1536);
  const std::int64_t wide = c.size("ext_pw_out_channel", 1024);
  const std::int64_t separable = c.size("depthwise_separable_out_channel", 1024);
  for (const char* half : {"feed_forward_in", "feed_forward_out"}) {
    const std::string name = fmt::format("{}{}.", at, half);
    add_norm(spec, name + "layer_norm", hidden, true);
    add_linear(spec, name + "gate_up_proj", 2 * width, hidden, true);
    add_linear(spec, name + "down_proj", hidden, width, true);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    add_linear(spec, fmt::format("{}self_attn.{}", at, name), hidden, hidden, true);
  }
  const std::string conv = at + "conv.";
  add_norm(spec, conv + "layer_norm", hidden, true);
  add_one(spec, conv + "glu.b1", {1, wide, 1});
  add_one(spec, conv + "glu.b2", {1, wide, 1});
  add_filter(spec, conv + "glu.ext_pw_conv_1d", {2 * wide, hidden, 1});
  add_filter(spec, conv + "dw_sep_conv_1d.dw_conv", {hidden, 1, c.size("kernel_size", 3)});
  add_filter(spec, conv + "dw_sep_conv_1d.pw_conv", {separable, hidden, 1});
  add_filter(spec, conv + "ext_pw_conv_1d", {wide, hidden, 1});
  add_norm(spec, at + "layer_norm_att", hidden, true);
  add_norm(spec, at + "layer_norm", hidden, true);
}

// A Conformer (arXiv:2005.08100) behind convolutions that make time shorter, by halves.
void add_phi4_ear(ModelSpec& spec, const Config& c, const std::string& at, std::int64_t text) {
  c.pass_over({"activation", "chunk_size", "left_chunk", "dropout_rate", "conv_activation",
               "conv_glu_type", "nemo_activation", "feature_layer", "audio_token_id",
               "nemo_final_size"});
  if (c.size("depthwise_multiplier", 1) != 1) {
    c.fail("depthwise_multiplier", "only 1 is supported");
  }
  constexpr std::int64_t taps = 3;
  const std::int64_t hidden = c.size("hidden_size", 1024);
  const std::int64_t channels = c.size("nemo_conv_channels", 1024);
  const std::int64_t bins = c.size("input_size", 80);
  const std::string conv = at + "encoder.embed.conv.";
  add_filter(spec, conv + "0", {channels, 1, taps, taps});
  std::int64_t left = (bins + 1) / 2;
  int module = 2;  // behind an activation
  for (std::int64_t by = c.size("time_reduction", 8) / 2; by > 1; by /= 2, module += 3) {
    add_filter(spec, fmt::format("{}{}", conv, module), {channels, 1, taps, taps});
    add_filter(spec, fmt::format("{}{}", conv, module + 1), {channels, channels, 1, 1});
    left = (left + 1) / 2;
  }
  add_linear(spec, at + "encoder.embed.out", hidden, channels * left, true);
  const std::int64_t distances = c.size("bias_max_distance", 1000);
  spec.apart.push_back({at + "encoder.relative_attention_bias_layer.bias_values.weight",
                        {c.flag("bias_symmetric", false) ? distances : 2 * distances,
                         c.size("num_attention_heads", 16)},
                        /*embedding=*/true});
  for (const char* name : {"global_mean", "global_invstd"}) {
    spec.buffers.push_back({fmt::format("{}encoder.encoder_embedding.{}", at, name), {bins}});
  }
  for (std::int64_t i = 0; i < c.layers("num_blocks", 24); ++i) {
    add_phi4_sound_layer(spec, c, fmt::format("{}encoder.encoders.{}.", at, i), hidden);
  }
  const std::int64_t read = hidden * c.size("downsample_rate", 1);
  for (const char* kind : {"speech", "vision_speech"}) {
    add_linear(spec, fmt::format("{}up_proj_for_{}", at, kind), text, read, true);
    add_linear(spec, fmt::format("{}down_proj_for_{}", at, kind), text, text, true);
  }
}

ModelSpec phi4_multimodal(const Config& c) {
  ModelSpec spec = read_as(c, "Phi3ForCausalLM");
  const std::int64_t hidden = spec.stacks.back().hidden;
  add_phi4_eye(spec, nested(c, "vision_config"), "model.embed_tokens_extend.image_embed.", hidden);
  add_phi4_ear(spec, nested(c, "audio_config"), "model.embed_tokens_extend.audio_embed.", hidden);
  return spec;
}

}  // namespace

std::vector<Family> phi4_multimodal_families() {
  return {{"Phi4MultimodalForCausalLM", "phi4_multimodal", phi4_multimodal}};
}

}  // namespace shardsim::models
