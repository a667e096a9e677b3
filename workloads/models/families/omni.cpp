// Models that hear and see beside text: the thinkers of Qwen 2.5 and 3 Omni, Gemma 4, Phi-4
// multimodal. Text runs; towers of images and sounds have their parameters.
//
// Source: transformers 5.23.0, modeling_qwen2_5_omni.py, modeling_qwen3_omni_moe.py,
// modeling_gemma4.py, modeling_phi4_multimodal.py.
#include <fmt/format.h>

#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t taps = 3;

void add(ModelSpec& spec, const std::string& name, const Shape& shape) {
  spec.apart.push_back({name, shape});
}

void add_convolution(ModelSpec& spec, const std::string& name, const Shape& shape) {
  add(spec, name + ".weight", shape);
  add(spec, name + ".bias", {shape.front()});
}

void pass_over_sounds(const Config& audio) {
  audio.pass_over({"activation_function", "dropout", "attention_dropout", "activation_dropout",
                   "encoder_layerdrop", "layerdrop", "scale_embedding", "hidden_act", "n_window",
                   "n_window_infer", "conv_chunksize", "max_source_positions", "head_dim",
                   "num_key_value_heads", "num_hidden_layers"});
}

// Whisper's encoder without a table of positions; its width.
std::int64_t add_sound_layers(ModelSpec& spec, const Config& audio, const std::string& at,
                              bool k_bias) {
  pass_over_sounds(audio);
  const std::int64_t hidden = audio.size("d_model|hidden_size", 1280);
  Stack stack =
      tower(at + "layers", hidden, audio.size("encoder_layers", 32),
            audio.size("encoder_attention_heads", 20), audio.size("encoder_ffn_dim", 5120),
            {.norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"});
  for (LayerKind& kind : stack.kinds) {
    std::get<Attention>(kind.branches[0].body).k_bias = k_bias;
    std::get<Mlp>(kind.branches[1].body).name = "";
  }
  add_silent(spec, std::move(stack));
  add_norm(spec, at + "ln_post", hidden, true);
  return hidden;
}

void pass_over_talk(const Config& c) {
  c.pass_over({"position_id_per_seconds", "seconds_per_chunk", "audio_start_token_id",
               "audio_end_token_id", "user_token_id"});
}

}  // namespace

// Patches of frames, and how wide a square of them is that is merged into one token.
std::int64_t add_qwen_patches(ModelSpec& spec, const Config& images, const std::string& at,
                              std::int64_t hidden, std::int64_t usual_patch) {
  const std::int64_t patch = images.size("patch_size", usual_patch);
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  spec.apart.push_back({at + "patch_embed.proj.weight",
                        {hidden, images.size("in_channels|in_chans", 3),
                         images.size("temporal_patch_size", 2), patch, patch}});
  return hidden * merge * merge;
}

namespace {

ModelSpec qwen2_5_omni(const Config& c) {
  pass_over_talk(c);
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  const Config audio = nested(c, "audio_config");
  ModelSpec spec = inside(qwen2(text), "model.language_model.", "lm_head", is_tied(c, text, false));
  set_tables_by_example(spec);
  const std::string ear = "model.audio_tower.";
  const std::int64_t width = add_sound_layers(spec, audio, ear, /*k_bias=*/false);
  const std::int64_t heard = audio.size("output_dim", 3584);
  add_convolution(spec, ear + "conv1", {width, audio.size("num_mel_bins", 128), taps});
  add_convolution(spec, ear + "conv2", {width, width, taps});
  spec.apart.push_back({ear + "audio_bos_eos_token.weight", {2, heard}, /*embedding=*/true});
  add_linear(spec, ear + "proj", heard, width, true);

  add_qwen2_5_images(spec, images, "model.visual.", /*usual_kv_heads=*/0, /*fused=*/false);
  return spec;
}

// Three convolutions that halve time and bins.
void add_qwen3_ear(ModelSpec& spec, const Config& audio) {
  const std::string at = "model.audio_tower.";
  const std::int64_t width = add_sound_layers(spec, audio, at, /*k_bias=*/true);
  const std::int64_t channels = audio.size("downsample_hidden_size", 480);
  add_convolution(spec, at + "conv2d1", {channels, 1, taps, taps});
  add_convolution(spec, at + "conv2d2", {channels, channels, taps, taps});
  add_convolution(spec, at + "conv2d3", {channels, channels, taps, taps});
  std::int64_t bins = audio.size("num_mel_bins", 128);
  for (int i = 0; i < 3; ++i) bins = (bins + 1) / 2;
  add_linear(spec, at + "conv_out", width, channels * bins, false);
  add_linear(spec, at + "proj1", width, width, true);
  add_linear(spec, at + "proj2", audio.size("output_dim", 3584), width, true);
}

// The weights of picked experts sum to one unless the file says no.
ModelSpec qwen3_omni_text(const Config& text) {
  ModelSpec spec = read_as(text, "Qwen3MoeForCausalLM");
  if (text.given("norm_topk_prob")) return spec;
  for (LayerKind& kind : spec.stacks[0].kinds) {
    if (auto* experts = std::get_if<Experts>(&kind.branches[1].body)) {
      experts->router.renormalize = Renormalize::in_place;
    }
  }
  return spec;
}

ModelSpec qwen3_omni(const Config& c) {
  pass_over_talk(c);
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  const Config audio = nested(c, "audio_config");
  ModelSpec spec =
      inside(qwen3_omni_text(text), "model.language_model.", "lm_head", is_tied(c, text, false));
  set_tables_by_example(spec);
  add_qwen3_ear(spec, audio);
  constexpr std::size_t usual_deep = 3;
  add_qwen3_images(spec, images,
                   {.norm = "ln_q", .first = "mlp.0", .second = "mlp.2", .deep = "merger_list"},
                   usual_deep);
  return spec;
}

// A product within bounds that files hold: NAME.linear.weight and four numbers.
void add_clipped(ModelSpec& spec, const std::string& name, std::int64_t out, std::int64_t in,
                 bool clips) {
  add(spec, name + ".linear.weight", {out, in});
  if (!clips) return;
  for (const char* bound : {"input_min", "input_max", "output_min", "output_max"}) {
    spec.buffers.push_back({fmt::format("{}.{}", name, bound), {}});
  }
}

void add_gemma4_eye(ModelSpec& spec, const Config& c, const std::string& at, std::int64_t text) {
  c.pass_over({"hidden_activation", "attention_bias", "attention_dropout", "pooling_kernel_size",
               "default_output_length", "global_head_dim", "_sliding_window_pattern"});
  const std::int64_t hidden = c.size("hidden_size", 768);
  const std::int64_t width = c.size("intermediate_size", 3072);
  const std::int64_t heads = c.size("num_attention_heads", 12);
  const std::int64_t dim = c.size("head_dim", 64);
  const std::int64_t keys = dim * c.size("num_key_value_heads", 12);
  const std::int64_t patch = c.size("patch_size", 16);
  const bool clips = c.flag("use_clipped_linears", false);
  add(spec, at + "patch_embedder.position_embedding_table",
      {2, c.size("position_embedding_size", 10'240), hidden});
  add(spec, at + "patch_embedder.input_proj.weight", {hidden, 3 * patch * patch});
  for (std::int64_t i = 0; i < c.layers("num_hidden_layers", 16); ++i) {
    const std::string layer = fmt::format("{}encoder.layers.{}.", at, i);
    add_clipped(spec, layer + "self_attn.q_proj", heads * dim, hidden, clips);
    add_clipped(spec, layer + "self_attn.k_proj", keys, hidden, clips);
    add_clipped(spec, layer + "self_attn.v_proj", keys, hidden, clips);
    add_clipped(spec, layer + "self_attn.o_proj", hidden, heads * dim, clips);
    add_clipped(spec, layer + "mlp.gate_proj", width, hidden, clips);
    add_clipped(spec, layer + "mlp.up_proj", width, hidden, clips);
    add_clipped(spec, layer + "mlp.down_proj", hidden, width, clips);
    for (const char* norm : {"q_norm", "k_norm"}) {
      add(spec, fmt::format("{}self_attn.{}.weight", layer, norm), {dim});
    }
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      add(spec, fmt::format("{}{}.weight", layer, norm), {hidden});
    }
  }
  if (c.flag("standardize", false)) {
    spec.buffers.push_back({at + "std_bias", {hidden}});
    spec.buffers.push_back({at + "std_scale", {hidden}});
  }
  add(spec, "model.embed_vision.embedding_projection.weight", {text, hidden});
}

// A Conformer's layer (arXiv:2005.08100).
void add_gemma4_sound_layer(ModelSpec& spec, const Config& c, const std::string& at,
                            std::int64_t hidden, bool clips) {
  constexpr std::int64_t wider = 4;
  for (const char* half : {"feed_forward1", "feed_forward2"}) {
    const std::string name = fmt::format("{}{}.", at, half);
    add_clipped(spec, name + "ffw_layer_1", wider * hidden, hidden, clips);
    add_clipped(spec, name + "ffw_layer_2", hidden, wider * hidden, clips);
    add(spec, name + "pre_layer_norm.weight", {hidden});
    add(spec, name + "post_layer_norm.weight", {hidden});
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj", "post"}) {
    add_clipped(spec, fmt::format("{}self_attn.{}", at, name), hidden, hidden, clips);
  }
  add(spec, at + "self_attn.per_dim_scale", {hidden / c.size("num_attention_heads", 8)});
  add(spec, at + "self_attn.relative_k_proj.weight", {hidden, hidden});
  add_clipped(spec, at + "lconv1d.linear_start", 2 * hidden, hidden, clips);
  add_clipped(spec, at + "lconv1d.linear_end", hidden, hidden, clips);
  add(spec, at + "lconv1d.depthwise_conv1d.weight", {hidden, 1, c.size("conv_kernel_size", 5)});
  for (const char* norm : {"lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn",
                           "norm_post_attn", "norm_out"}) {
    add(spec, fmt::format("{}{}.weight", at, norm), {hidden});
  }
}

void add_gemma4_ear(ModelSpec& spec, const Config& c, const std::string& at, std::int64_t text) {
  c.pass_over({"hidden_act", "residual_weight", "attention_chunk_size", "attention_context_left",
               "attention_context_right", "attention_logit_cap", "attention_invalid_logits_value",
               "gradient_clipping"});
  constexpr std::int64_t bins = 128;  // of mel spectra, a quarter of which is left
  const std::int64_t hidden = c.size("hidden_size", 1024);
  const bool clips = c.flag("use_clipped_linears", true);
  const std::vector<std::int64_t> channels = c.sizes("subsampling_conv_channels", {128, 32});
  if (channels.size() != 2) c.fail("subsampling_conv_channels", "two numbers are expected");
  const std::string conv = at + "subsample_conv_projection.";
  std::int64_t in = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("{}layer{}.", conv, i);
    add(spec, layer + "conv.weight", {channels[i], in, taps, taps});
    add(spec, layer + "norm.weight", {channels[i]});
    in = channels[i];
  }
  add(spec, conv + "input_proj_linear.weight", {hidden, bins / 4 * in});
  for (std::int64_t i = 0; i < c.layers("num_hidden_layers", 12); ++i) {
    add_gemma4_sound_layer(spec, c, fmt::format("{}layers.{}.", at, i), hidden, clips);
  }
  const std::int64_t out = c.size("output_proj_dims", 1536);
  add_linear(spec, at + "output_proj", out, hidden, true);
  add(spec, "model.embed_audio.embedding_projection.weight", {text, out});
}

// Files may leave either tower out.
ModelSpec gemma4(const Config& c) {
  c.pass_over({"vision_soft_tokens_per_image", "audio_ms_per_token", "boa_token_id",
               "eoa_token_index", "eoa_token_id", "tie_word_embeddings"});
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(gemma4_text(text), "model.language_model.", "lm_head", is_tied(c, text, true));
  const std::int64_t hidden = spec.stacks.back().hidden;
  if (const auto images = c.sub("vision_config")) {
    add_gemma4_eye(spec, *images, "model.vision_tower.", hidden);
  }
  if (const auto audio = c.sub("audio_config")) {
    add_gemma4_ear(spec, *audio, "model.audio_tower.", hidden);
  }
  return spec;
}

}  // namespace

std::vector<Family> omni_families() {
  return {{"Qwen2_5OmniThinkerForConditionalGeneration", "qwen2_5_omni_thinker", qwen2_5_omni},
          {"Qwen3OmniMoeThinkerForConditionalGeneration", "qwen3_omni_moe_thinker", qwen3_omni},
          {"Gemma4ForConditionalGeneration", "gemma4", gemma4}};
}

}  // namespace shardsim::models
