// Models of images and text of 2026: Muse Glimmer and Gemma 4's unified model, which has no towers.
// A step here is one of text alone, as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_muse_glimmer.py, modeling_gemma4_unified.py.
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
          {"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", gemma4_unified}};
}

}  // namespace shardsim::models
