// Models with mixtures of experts that read images beside text, whose text is a description of
// their own: Step 3.7, MiniMax M3; and Nemotron 3 Omni. A step here is one of text alone, as
// image_text.cpp has it.
//
// Source: transformers 5.23.0, configuration_X.py and modeling_X.py of each.
#include <fmt/format.h>
#include <algorithm>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

constexpr const char* inside_model = "model.language_model.";

// A list with entries for layers of multi-token prediction, too, which are left out.
std::vector<std::string> types_of(const Config& c, std::int64_t layers, std::string_view key,
                                  const std::function<std::string(std::int64_t)>& otherwise) {
  std::vector<std::string> types = c.texts(key);
  const auto more =
      static_cast<std::size_t>(layers + c.count("num_nextn_predict_layers|num_mtp_layers", 0));
  if (types.size() == more) types.resize(static_cast<std::size_t>(layers));
  if (types.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) types.push_back(otherwise(i));
  }
  if (static_cast<std::int64_t>(types.size()) != layers) {
    c.fail(key, fmt::format("has {} entries for {} layers", types.size(), layers));
  }
  return types;
}

// Softmax' place is a sigmoid's, in the model's type; a bias moves the choice.
void choose_by_sigmoid(Experts& experts) {
  experts.router.scores = RouterScores::sigmoid;
  experts.router.fp32_logits = true;
  experts.router.renormalize = Renormalize::in_place;
  experts.router.correction_bias = "e_score_correction_bias";
  experts.router.correction_flat = true;
}

std::int64_t windowed_heads(const Config& c, const Sizes& n) {
  const auto legacy = c.sub("attention_other_setting");
  const std::int64_t otherwise = legacy ? legacy->size("num_attention_heads", n.heads) : n.heads;
  if (legacy) {
    legacy->pass_over({"attention_type", "num_attention_groups", "head_dim", "true_head_dim"});
  }
  return c.optional_size("num_sliding_attention_heads", std::nullopt).value_or(otherwise);
}

// Windowed layers with heads of another number, a gate of each head, clamped gates of MLPs.
ModelSpec step_text(const Config& c) {
  Sizes n = read_sizes(
      c, {.kv_heads = 8, .head_dim = 128, .hidden = 4096, .width = 11264, .vocab = 128815});
  n.norm = NormKind::rms_offset;
  n.kv_heads = c.size("num_attention_groups|num_key_value_heads", n.kv_heads);
  Attention base = llama_attention(c, n);
  base.kv_heads = n.kv_heads;
  base.o_bias = base.q_bias;
  base.q_norm = {n.norm, "q_norm"};
  base.k_norm = {n.norm, "k_norm"};
  base.gate_name = "g_proj";
  base.gate_per_head = true;
  base.rotary.concatenated = true;
  Mlp mlp = llama_mlp(n);
  mlp.limited = true;
  mlp.bias = c.flag("mlp_bias", false);
  Experts experts =
      read_experts(c, n, "n_routed_experts|moe_num_experts|num_local_experts", 288,
                   "num_experts_per_tok|moe_top_k", 8, c.size("moe_intermediate_size", 1280));
  choose_by_sigmoid(experts);
  experts.gate = ExpertsGate::limited;
  experts.shared = mlp;
  experts.shared->name = "shared_experts";
  experts.shared->width = c.size("share_expert_dim|share_expert_dims", 1280);
  // Bounds of gates, which are clamped in any case; layers of multi-token prediction; a base of
  // rotary positions for each layer.
  c.pass_over({"swiglu_limits", "swiglu_limits_shared", "mtp_layer_types", "mtp_mlp_layer_types",
               "query_pre_attn_scalar", "moe_router_scaling_factor", "per_layer_config",
               "rope_theta", "sliding_window", "use_bidirectional_attention"});
  const std::int64_t of_windows = windowed_heads(c, n);
  static_cast<void>(
      c.divided("num_sliding_attention_heads", of_windows, "num_key_value_heads", n.kv_heads));
  const auto types = types_of(c, n.layers, "layer_types",
                              [](std::int64_t) { return std::string("full_attention"); });
  const auto mlps = types_of(c, n.layers, "mlp_layer_types", [](std::int64_t i) {
    return std::string(i < 3 ? "dense" : "sparse");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   Attention attention = base;
                   if (!full) attention.heads = of_windows;
                   attention.window = full ? 0 : c.count("sliding_window", 0);
                   attention.rotary.table = full ? "rotary" : "rotary of windows";
                   attention.rotary.dims = static_cast<std::int64_t>(
                       static_cast<double>(n.head_dim) *
                       c.rotary_number(full ? "full_attention" : "sliding_attention",
                                       "partial_rotary_factor", 1));
                   const bool dense = mlps[static_cast<std::size_t>(i)] == "dense";
                   const std::string name =
                       std::string(full ? "full" : "windowed") + (dense ? ", dense" : ", experts");
                   if (dense) return llama_layer(n, name, attention, mlp);
                   return llama_layer(n, name, attention, experts);
                 }));
}

// A convolution of patches, layers with factors of what they add, two that make features fewer.
ModelSpec step3p7(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(step_text(text), inside_model, "lm_head", is_tied(c, text, false));
  const std::int64_t hidden = images.size("hidden_size|width", 1536);
  const std::int64_t patch = images.size("patch_size", 14);
  const double ratio = images.ratio("mlp_ratio", 8960.0 / 1536.0);
  const auto width = static_cast<std::int64_t>(ratio * static_cast<double>(hidden));
  images.pass_over({"intermediate_size", "layer_scale_init_value", "ls_init_value"});
  const std::string at = "model.vision_model.";
  add_convolution(spec, at + "embeddings.patch_embedding",
                  {hidden, images.size("num_channels", 3), patch, patch}, false);
  images.pass_over({"max_position_embeddings"});  // as many as patches
  const std::int64_t side = images.size("image_size", 728) / patch;
  add_table(spec, at + "embeddings.position_embedding", side * side, hidden);
  add_norm(spec, at + "pre_layernorm", hidden, true);
  constexpr std::int64_t taps = 3;
  add_convolution(spec, at + "downsampler1", {2 * hidden, hidden, taps, taps}, true);
  add_convolution(spec, at + "downsampler2", {4 * hidden, 2 * hidden, taps, taps}, true);
  add_linear(spec, "model.multi_modal_projector", spec.stacks.back().hidden, 4 * hidden,
             c.flag("projector_bias", false));
  Stack stack = tower(at + "layers", hidden, images.size("num_hidden_layers|layers", 47),
                      images.size("num_attention_heads|heads", 16), width,
                      {.norm1 = "layernorm_before", .norm2 = "layernorm_after"});
  for (LayerKind& kind : stack.kinds) {
    kind.branches[0].scale = "lambda_1";
    kind.branches[1].scale = "lambda_2";
  }
  add_silent(spec, std::move(stack));
  return spec;
}

// A key of sparse_attention_config, as the authors' files have it, or of the text itself.
std::int64_t of_index(const Config& c, const char* key, const char* legacy,
                      std::int64_t otherwise) {
  const auto own = c.sub("sparse_attention_config");
  const std::int64_t size = c.size(key, otherwise);
  return own ? own->size(legacy, size) : size;
}

// "sparse_attention_freq" and "moe_layer_freq" are lists of ones and zeros.
std::vector<std::string> m3_types(const Config& c, std::int64_t layers) {
  std::vector<std::int64_t> sparse;
  if (const auto own = c.sub("sparse_attention_config")) {
    own->pass_over({"use_sparse_attention", "sparse_init_block", "sparse_score_type",
                    "sparse_disable_index_value"});
    sparse = own->integers("sparse_attention_freq");
  }
  return layer_types(c, layers, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_sparse = at < sparse.size() && sparse[at] != 0;
    return std::string(is_sparse ? "minimax_m3_sparse" : "full_attention");
  });
}

ModelSpec minimax_m3_text(const Config& c) {
  Sizes n = read_sizes(
      c, {.kv_heads = 4, .head_dim = 128, .hidden = 6144, .width = 3072, .vocab = 200064});
  n.norm = NormKind::rms_offset;
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  attention.rotary.dims = rotary_dims(c, n.head_dim, 1);  // whatever "rotary_dim" says
  attention.rotary.concatenated = true;
  c.pass_over({"hidden_act", "swiglu_alpha", "swiglu_limit", "rotary_dim"});
  Mixer indexed{
      IndexedAttention{.heads = n.heads,
                       .kv_heads = n.kv_heads,
                       .head_dim = n.head_dim,
                       .rotary = attention.rotary,
                       .norm = {n.norm, ""},
                       .index_heads = of_index(c, "index_n_heads", "sparse_num_index_heads", 4),
                       .index_dim = of_index(c, "index_head_dim", "sparse_index_dim", 128),
                       .block = of_index(c, "index_block_size", "sparse_block_size", 128),
                       .blocks = of_index(c, "index_topk_blocks", "sparse_topk_blocks", 16),
                       .near = of_index(c, "index_local_blocks", "sparse_local_block", 1),
                       .dropout = attention.dropout}};
  Mlp dense = llama_mlp(n);
  dense.form = MlpForm::fused_gate;
  dense.clamped = true;
  dense.activation = "silu";
  dense.up = "gate_up_proj";
  dense.width = c.size("dense_intermediate_size", 12288);
  Experts experts =
      read_experts(c, n, "num_local_experts|num_experts", 128, "num_experts_per_tok", 4, n.width);
  experts.activation = "silu";
  choose_by_sigmoid(experts);
  experts.gate = ExpertsGate::clamped;
  experts.shared = dense;
  experts.shared->name = "shared_experts";
  experts.shared->width = c.size("shared_intermediate_size", 3072);
  const std::vector<std::int64_t> routed = c.integers("moe_layer_freq");
  const auto types = m3_types(c, n.layers);
  const auto mlps = layer_types(
      c, n.layers,
      [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return std::string(at < routed.size() && routed[at] == 0 ? "dense" : "sparse");
      },
      "mlp_layer_types");
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   const bool is_dense = mlps[static_cast<std::size_t>(i)] == "dense";
                   LayerKind layer = llama_layer(
                       n,
                       std::string(full ? "full" : "picked") + (is_dense ? ", dense" : ", experts"),
                       attention, experts);
                   if (!full) layer.branches[0].body = indexed;
                   if (is_dense) layer.branches[1].body = dense;
                   return layer;
                 }));
}

ModelSpec minimax_m3(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(minimax_m3_text(text), inside_model, "lm_head",
                          is_tied(c, text, false, TiedBy::either));
  const std::int64_t hidden = images.size("hidden_size", 1280);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t out = spec.stacks.back().hidden;
  const std::int64_t width = c.size("projector_hidden_size", 6144);
  c.pass_over({"merged_hidden_size"});
  const std::string at = "model.vision_tower.";
  add_convolution(
      spec, at + "embeddings.proj",
      {hidden, images.size("num_channels", 3), images.size("temporal_patch_size", 2), patch, patch},
      false);
  add_norm(spec, at + "pre_layrnorm", hidden, true);
  const std::string projector = "model.multi_modal_projector.";
  add_linear(spec, projector + "linear_1", width, hidden, true);
  add_linear(spec, projector + "linear_2", out, width, true);
  add_linear(spec, projector + "merge_linear_1", width, out * merge * merge, true);
  add_linear(spec, projector + "merge_linear_2", out, width, true);
  add_silent(spec, tower(at + "layers", hidden, images.size("num_hidden_layers", 32),
                         images.size("num_attention_heads", 16),
                         images.size("intermediate_size", 5120), {}));
  return spec;
}

// Parakeet's encoder of sounds (arXiv:2305.05084): spectra made shorter by convolutions; layers of
// attention with distances and a convolution between two halves of an MLP. Its width.
std::int64_t add_parakeet(ModelSpec& spec, const Config& c, const std::string& at,
                          bool usual_bias) {
  const std::int64_t hidden = c.size("hidden_size", 1024);
  const std::int64_t heads = c.size("num_attention_heads", 8);
  const std::int64_t head_dim = c.divided("hidden_size", hidden, "num_attention_heads", heads);
  const std::int64_t width = c.size("intermediate_size", 4096);
  const std::int64_t channels = c.size("subsampling_conv_channels", 256);
  const std::int64_t kernel = c.size("subsampling_conv_kernel_size", 3);
  const bool bias = c.flag("attention_bias", usual_bias);
  const bool convolved = c.flag("convolution_bias", true);
  const std::int64_t taps = c.size("conv_kernel_size", 9);
  std::int64_t bins = c.size("num_mel_bins", 80);
  std::int64_t left = c.size("subsampling_factor", 8);
  c.pass_over({"subsampling_conv_stride", "scale_input", "dropout", "dropout_positions",
               "layerdrop", "activation_dropout", "attention_dropout", "max_position_embeddings",
               "hidden_act", "num_key_value_heads", "sampling_rate"});
  if (c.size("subsampling_conv_stride", 2) != 2) {
    c.fail("subsampling_conv_stride", "only 2 is supported");
  }
  const std::string shorter = at + "subsampling.layers.";
  add_convolution(spec, shorter + "0", {channels, 1, kernel, kernel}, true);
  for (int number = 2; left > 2; left /= 2, number += 3, bins /= 2) {
    add_convolution(spec, shorter + std::to_string(number), {channels, 1, kernel, kernel}, true);
    add_convolution(spec, shorter + std::to_string(number + 1), {channels, channels, 1, 1}, true);
  }
  add_linear(spec, at + "subsampling.linear", hidden, channels * (bins / 2), true);
  const std::int64_t layers = c.layers("num_hidden_layers", 24);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = at + "layers." + std::to_string(i) + ".";
    for (const char* half : {"feed_forward1.", "feed_forward2."}) {
      add_linear(spec, layer + half + "linear1", width, hidden, bias);
      add_linear(spec, layer + half + "linear2", hidden, width, bias);
    }
    const std::string attention = layer + "self_attn.";
    spec.apart.push_back({attention + "bias_u", {heads, head_dim}});
    spec.apart.push_back({attention + "bias_v", {heads, head_dim}});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      add_linear(spec, attention + name, hidden, hidden, bias);
    }
    add_linear(spec, attention + "relative_k_proj", hidden, hidden, false);
    const std::string conv = layer + "conv.";
    add_convolution(spec, conv + "pointwise_conv1", {2 * hidden, hidden, 1}, convolved);
    add_convolution(spec, conv + "depthwise_conv", {hidden, 1, taps}, convolved);
    add_convolution(spec, conv + "pointwise_conv2", {hidden, hidden, 1}, convolved);
    add_norm(spec, conv + "norm", hidden, true);
    for (const char* mean : {"running_mean", "running_var"}) {
      spec.buffers.push_back({conv + "norm." + mean, {hidden}});
    }
    spec.buffers.push_back({conv + "norm.num_batches_tracked", {}});
    for (const char* norm :
         {"norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out"}) {
      add_norm(spec, layer + norm, hidden, true);
    }
  }
  return hidden;
}

// Sounds of Nemotron 3 Omni, whose Parakeet has no biases unless the file says so.
void add_omni_sounds(ModelSpec& spec, const Config& sounds) {
  const std::int64_t hidden = add_parakeet(spec, sounds, "audio_tower.", /*usual_bias=*/false);
  const std::int64_t inner = sounds.size("projection_hidden_size");
  const bool bias = sounds.flag("projection_bias", false);
  add_norm(spec, "embed_audio.layer_norm", hidden, false);
  add_linear(spec, "embed_audio.linear_1", inner, hidden, bias);
  add_linear(spec, "embed_audio.linear_2", spec.stacks.back().hidden, inner, bias);
}

// Nemotron-H with RADIO's images, for frames in pairs, too, and sounds.
ModelSpec nemotron_h_omni(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"audio_config", "force_image_size", "vision_hidden_size", "video_pruning_rate",
               "video_temporal_patch_size"});
  images.pass_over({"attention_probs_dropout_prob", "hidden_dropout_prob", "drop_path_rate",
                    "num_channels", "patch_size", "summary_idxs", "norm_mean", "norm_std"});
  if (images.flag("use_swiglu_ffn", false)) {
    images.fail("use_swiglu_ffn", "true is not supported");
  }
  ModelSpec spec = inside(read_text(text, "nemotron_h"), "language_model.model.",
                          "language_model.lm_head", text.flag("tie_word_embeddings", false));
  const std::int64_t hidden = images.size("hidden_size", 1280);
  const std::int64_t patch = images.size("patch_size", 16);
  const std::int64_t side = images.size("max_img_size", 2048) / patch;
  const double ratio = images.ratio("mlp_ratio", 4);
  const auto width = static_cast<std::int64_t>(ratio * static_cast<double>(hidden));
  const std::string at = "vision_model.embeddings.";
  spec.apart.push_back({at + "position_embedding", {1, side * side, hidden}});
  spec.apart.push_back(
      {at + "cls_register_token",
       {images.count("num_cls_tokens", 3) + images.count("num_registers", 7), hidden}});
  add_linear(spec, at + "patch_projection", hidden, images.size("patch_dim", 3 * patch * patch),
             false);
  if (images.optional_size("video_temporal_patch_size", 2)) {
    add_linear(spec, at + "video_patch_projection", hidden,
               images.size("video_patch_dim", 6 * patch * patch), false);
  }
  spec.buffers.push_back({"vision_model.summary_idxs",
                          {static_cast<std::int64_t>(images.integers("summary_idxs").size())}});
  const double shrink = c.ratio("downsample_ratio", 0.5);
  const auto merged = static_cast<std::int64_t>(static_cast<double>(hidden) / (shrink * shrink));
  const std::int64_t inner = c.size("projector_hidden_size", 4096);
  add_norm(spec, "multi_modal_projector.layer_norm", merged, false);
  add_linear(spec, "multi_modal_projector.linear_1", inner, merged, false);
  add_linear(spec, "multi_modal_projector.linear_2", spec.stacks.back().hidden, inner, false);
  Stack stack =
      tower("vision_model.encoder.layer", hidden, images.size("num_hidden_layers", 32),
            images.size("num_attention_heads", 16), width,
            {.norm1 = "norm1", .norm2 = "norm2", .attention = "attention", .out = "o_proj"});
  for (LayerKind& kind : stack.kinds) {
    set_biases(std::get<Attention>(kind.branches[0].body), images.flag("qkv_bias", true), true);
    kind.branches[0].scale = "layer_scale1.lambda1";
    kind.branches[1].scale = "layer_scale2.lambda1";
  }
  add_silent(spec, std::move(stack));
  if (const auto sounds = c.sub("audio_config")) add_omni_sounds(spec, *sounds);
  return spec;
}

}  // namespace

std::vector<Family> sparse_image_text_families() {
  return {{"NemotronH_Omni_Reasoning_V3", "nemotron_h_omni", nemotron_h_omni},
          {"Step3p7ForConditionalGeneration", "step3p7", step3p7},
          {"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", minimax_m3},
          {"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", minimax_m3_text}};
}

}  // namespace shardsim::models
