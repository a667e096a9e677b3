// Models of images and text of 2026: Muse Glimmer, Mistral Large 4, and Gemma 4's unified model,
// which has no towers. A step here is one of text alone, as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include <algorithm>
#include <utility>

#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/key_sharing.hpp"

namespace shardsim::models {
namespace {

// Gemma 2's layers with a gate of attention's result, norms of embeddings, queries and keys without
// weights, and layers without positions.
ModelSpec muse_glimmer_text(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 2,
                           .head_dim = 128,
                           .activation_keys = "hidden_activation",
                           .hidden = 6656,
                           .width = 19968,
                           .vocab = 202048});
  n.norm = NormKind::rms_offset;
  const auto every_fourth = [&](std::int64_t i) { return (n.layers - 1 - i) % 4 == 0; };
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string(every_fourth(i) ? "full_attention" : "sliding_attention");
  });
  std::vector<bool> turned;
  if (const auto list = c.json().find("layer_rope_theta"); list && !list->is_null()) {
    for (const JsonReader& theta : list->elements()) turned.push_back(theta.number() != 0);
    if (static_cast<std::int64_t>(turned.size()) < n.layers) {
      c.fail("layer_rope_theta", "has fewer entries than layers");
    }
  }
  c.pass_over({"layer_rope_theta", "qk_scale_factor", "output_multiplier", "post_norm_eps"});
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = is_full(types, i);
                             Attention a = llama_attention(c, n);
                             a.q_norm = plain_power_norm("qk_norm");
                             a.k_norm = plain_power_norm("qk_norm");
                             a.scaled_queries = true;
                             a.gate_name = "gate_proj";
                             a.window = full ? 0 : c.count("sliding_window", 2048);
                             const auto at = static_cast<std::size_t>(i);
                             if (turned.empty() ? every_fourth(i) : !turned[at]) a.rotary.dims = 0;
                             LayerKind layer =
                                 llama_layer(n, full ? "full" : "windowed", a, llama_mlp(n));
                             layer.branches[0].after = {n.norm, "post_attention_layernorm"};
                             layer.branches[1].before.name = "pre_feedforward_layernorm";
                             layer.branches[1].after = {n.norm, "post_feedforward_layernorm"};
                             return layer;
                           }));
  Stack& stack = spec.stacks[0];
  stack.norm = power_norm("model.norm");
  std::get<TokenEmbedding>(stack.input).norm = plain_power_norm("model.embed_tokens.embed_norm");
  spec.head.scaled = true;
  spec.head.soft_cap = c.cap("final_logit_softcapping", 20);
  return spec;
}

ModelSpec muse_glimmer(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec =
      inside(muse_glimmer_text(text), "model.language_model.", "lm_head", is_tied(c, text, false));
  std::get<TokenEmbedding>(spec.stacks.back().input).shifted = true;  // numbers are copied
  const std::int64_t hidden = images.size("hidden_size", 1536);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t narrow = c.size("projector_hidden_size", 4096);
  images.pass_over({"max_position_embeddings", "merge_size", "layer_types"});
  c.pass_over({"projector_hidden_act"});
  const std::string at = "model.vision_tower.";
  add_linear(spec, at + "patch_embedder.patch_embedding", hidden,
             images.size("patch_temporal", 2) * 3 * patch * patch, false);
  add_table(spec, at + "patch_embedder.position_embedding_table",
            images.size("pos_emb_height", 32) * images.size("pos_emb_width", 32), hidden);
  add_norm(spec, at + "ln_pre", hidden, true);
  add_norm(spec, at + "ln_post", hidden, true);
  add_linear(spec, "model.vision_adapter.fc1", narrow, c.size("out_hidden_size", 6144), false);
  add_linear(spec, "model.vision_adapter.fc2", narrow, narrow, false);
  add_linear(spec, "model.vision_projection", spec.stacks.back().hidden, narrow, false);
  add_silent(spec,
             tower(at + "layers", hidden, images.size("num_hidden_layers", 50),
                   images.size("num_attention_heads", 16), images.size("intermediate_size", 8960),
                   {.norm1 = "norm1", .norm2 = "norm2", .attention = "attn", .out = "proj"}));
  return spec;
}

// DeepSeek-V3.2's attention without a latent of queries, these times learned numbers of each head;
// every fourth layer has no positions. Some layers use the index of one before.
LatentAttention mistral_large4_attention(const Config& c, const Sizes& n, bool turned, bool picks) {
  LatentAttention a = read_latent(c, n);
  a.q_rank = 0;
  a.nope_dim = c.size("qk_nope_head_dim", 64);
  if (!turned) {
    a.nope_dim += std::exchange(a.rope_dim, 0);
    a.turned = false;
  }
  a.learned_scale = "softmax_scaling";
  a.chosen = c.size("index_topk", 2048);
  if (picks) {
    KeyIndex& index = a.index.emplace();
    index.heads = c.size("index_n_heads", 32);
    index.head_dim = c.size("index_head_dim", 128);
    index.input_norm = "q_input_norm";
    index.learned_scale = "softmax_scaling";
  }
  return a;
}

ModelSpec mistral_large4_text(const Config& c) {
  const Sizes n = read_sizes(c, {});
  c.pass_over({"layer_types", "index_layer_types", "head_dim", "qk_head_dim", "no_rope_layers",
               "mlp_bias", "first_k_dense_replace", "index_topk_freq", "index_skip_topk_offset",
               "index_topk_pattern", "indexer_types", "no_rope_layer_interval"});
  const std::vector<std::int64_t> sources = c.integers("kv_source_layers");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != static_cast<std::int64_t>(i)) {
      c.fail("kv_source_layers", "layers that read another's latents are not supported");
    }
  }
  std::vector<std::int64_t> turned = c.integers("no_rope_layers");
  const std::int64_t period = c.size("no_rope_layer_interval", 4);
  for (auto i = static_cast<std::int64_t>(turned.size()); i < n.layers; ++i) {
    turned.push_back((i + 1) % period != 0 ? 1 : 0);
  }
  const auto indexes = indexer_types(c, n.layers);
  const std::int64_t dense = c.count("first_k_dense_replace", 1);
  const auto mlps = layer_types(
      c, n.layers, [&](std::int64_t i) { return std::string(i < dense ? "dense" : "sparse"); },
      "mlp_layer_types");
  Experts experts = deepseek_experts(c, n, 128, 4, 6144, 1);
  experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 1, 1);
  const Mlp mlp = llama_mlp(n);
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const auto at = static_cast<std::size_t>(i);
                             const bool has = turned[at] != 0, picks = indexes[at] == "full";
                             const bool plain = mlps[at] == "dense";
                             const std::string name = std::string(plain ? "dense" : "experts") +
                                                      (has ? "" : ", no positions") +
                                                      (picks ? "" : ", the index before");
                             const LatentAttention a = mistral_large4_attention(c, n, has, picks);
                             if (plain) return latent_layer(n, name, a, mlp);
                             return latent_layer(n, name, a, experts);
                           }));
  spec.buffers.push_back({"model.rotary_emb.alpha", {c.size("qk_rope_head_dim", 64) / 2}});
  spec.head.soft_cap = c.cap("final_logit_softcapping", 30);
  return spec;
}

ModelSpec mistral_large4(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(mistral_large4_text(text), "model.language_model.", "lm_head",
                          is_tied(c, text, false));
  for (NamedBuffer& buffer : spec.buffers) buffer.name = "model.language_model.rotary_emb.alpha";
  add_pixtral_projector(spec, c, add_pixtral_tower(spec, images, "model.vision_tower."));
  return spec;
}

// Patches of pixels and frames of sound are projected as they are.
ModelSpec gemma4_unified(const Config& c) {
  const Config text = nested(c, "text_config");
  c.pass_over({"boa_token_id", "eoa_token_index"});
  ModelSpec spec = inside(read_as(text, "Gemma4UnifiedForCausalLM"), "model.language_model.",
                          "lm_head", is_tied(c, text, true));
  std::get<TokenEmbedding>(spec.stacks.back().input).shifted = true;  // numbers are copied
  const std::int64_t out = spec.stacks.back().hidden;
  constexpr const char* project = "embedding_projection";
  if (const auto images = c.sub("vision_config")) {
    const std::string at = "model.embed_vision.";
    const std::int64_t side =
        images->size("patch_size", 16) * images->size("pooling_kernel_size", 3);
    const std::int64_t width = images->size("mm_embed_dim", 3840);
    images->pass_over({"model_patch_size"});
    add_norm(spec, at + "patch_ln1", side * side * 3, true);
    add_linear(spec, at + "patch_dense", width, side * side * 3, true);
    add_norm(spec, at + "patch_ln2", width, true);
    spec.apart.push_back({at + "pos_embedding", {images->size("mm_posemb_size", 1120), 2, width}});
    add_norm(spec, at + "pos_norm", width, true);
    add_linear(spec, at + "multimodal_embedder." + project, out,
               images->size("output_proj_dims", 3840), false);
  }
  if (const auto sounds = c.sub("audio_config")) {
    add_linear(spec, std::string("model.embed_audio.") + project, out,
               sounds->size("audio_embed_dim|hidden_size|output_proj_dims", 640), false);
  }
  return spec;
}

}  // namespace

std::vector<Family> latest_image_text_families() {
  return {{"MuseGlimmerForConditionalGeneration", "muse_glimmer", muse_glimmer},
          {"MistralLarge4ForConditionalGeneration", "mistral_large4", mistral_large4},
          {"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", gemma4_unified}};
}

}  // namespace shardsim::models
