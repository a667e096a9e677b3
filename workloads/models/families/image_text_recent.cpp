// Models of images and text since 2024 whose towers or projectors are their own. A step here is one
// of text alone, as image_text.cpp has it.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

void add_gated(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t width,
               std::int64_t out) {
  add_linear(spec, at + "gate_proj", width, in, false);
  add_linear(spec, at + "up_proj", width, in, false);
  add_linear(spec, at + "down_proj", out, width, false);
}

// GLM-4.1V and 4.5V: patches of frames, squares of features merged by a convolution. GLM-OCR norms
// heads in place of patches and has no table of places.
// Heads as wide as they are many parts of the stream, where GLM 4's class has another default.
void set_even_heads(Stack& stack) {
  for (LayerKind& kind : stack.kinds) {
    for (Branch& branch : kind.branches) {
      auto* attention = std::get_if<Attention>(&branch.body);
      if (attention == nullptr) continue;
      const std::int64_t dim = stack.hidden / attention->heads;
      attention->rotary.dims = attention->rotary.dims * dim / attention->head_dim;
      attention->head_dim = dim;
    }
  }
}

ModelSpec glm_vision(const Config& c, std::string_view architecture, bool norms_heads = false,
                     TiedBy by = TiedBy::either) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  images.pass_over({"attention_dropout", "hidden_dropout_prob"});
  ModelSpec spec = inside(read_as(text, architecture), "model.language_model.", "lm_head",
                          is_tied(c, text, false, by));
  if (!text.given("head_dim")) set_even_heads(spec.stacks.back());
  set_tables_by_example(spec);
  const std::int64_t hidden = images.size("hidden_size", 1536);
  const std::int64_t out = images.size("out_hidden_size", 4096);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t side = images.size("image_size", 336) / patch;
  const std::int64_t channels = images.size("in_channels", 3);
  const std::int64_t width = images.size("intermediate_size", norms_heads ? 4096 : 13696);
  const bool bias = images.flag("attention_bias", norms_heads);
  const std::string at = "model.visual.";
  if (!norms_heads) {
    spec.apart.push_back(
        {at + "embeddings.position_embedding.weight", {side * side, hidden}, true});
    add_norm(spec, at + "post_conv_layernorm", hidden, false);
  }
  spec.apart.push_back({at + "patch_embed.proj.weight",
                        {hidden, channels, images.size("temporal_patch_size", 2), patch, patch}});
  spec.apart.push_back({at + "patch_embed.proj.bias", {hidden}});
  add_linear(spec, at + "merger.proj", out, out, false);
  add_norm(spec, at + "merger.post_projection_norm", out, true);
  add_gated(spec, at + "merger.", out, norms_heads ? out * channels : width, out);
  spec.apart.push_back({at + "downsample.weight", {out, hidden, merge, merge}});
  spec.apart.push_back({at + "downsample.bias", {out}});
  add_norm(spec, at + "post_layernorm", hidden, false);
  Stack stack = tower(at + "blocks", hidden, images.size("depth", 24), images.size("num_heads", 12),
                      norms_heads ? width : out,
                      {.norm1 = "norm1",
                       .norm2 = "norm2",
                       .attention = "attn",
                       .out = "proj",
                       .up = "up_proj",
                       .down = "down_proj",
                       .qkv = "qkv",
                       .norm = NormKind::rms,
                       .bias = false,
                       .form = MlpForm::gated});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    set_biases(attention, bias, norms_heads && bias);
    if (!norms_heads) continue;
    attention.q_norm = {NormKind::rms, "q_norm"};
    attention.k_norm = {NormKind::rms, "k_norm"};
    std::get<Mlp>(kind.branches[1].body).bias = bias;
  }
  add_silent(spec, std::move(stack));
  return spec;
}

ModelSpec glm_ocr(const Config& c) {
  const Config text = nested(c, "text_config");
  require(text, {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                 "num_attention_heads", "num_key_value_heads"});
  ModelSpec spec = glm_vision(c, "Glm4ForCausalLM", /*norms_heads=*/true);
  for (LayerKind& kind : spec.stacks.back().kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    set_biases(attention, false, false);
    if (!text.given("head_dim")) attention.head_dim = spec.stacks.back().hidden / attention.heads;
    attention.rotary.dims = rotary_dims(text, attention.head_dim, 1);
  }
  return spec;
}

ModelSpec glm4v(const Config& c) { return glm_vision(c, "Glm4ForCausalLM"); }
ModelSpec glm4v_moe(const Config& c) { return glm_vision(c, "Glm4MoeForCausalLM"); }
// Either text model.
ModelSpec glm46v(const Config& c) {
  const Config text = nested(c, "text_config");
  const bool has_experts = text.text("model_type", "glm4v_text") == "glm4v_moe_text";
  return glm_vision(c, has_experts ? "Glm4MoeForCausalLM" : "Glm4ForCausalLM",
                    /*norms_heads=*/false, TiedBy::model);
}

ModelSpec qwen3_5(const Config& c) {
  return qwen3_vl_like(
      c, [](const Config& t) { return read_as(t, "Qwen3_5ForCausalLM"); }, 0);
}
ModelSpec qwen3_5_moe(const Config& c) {
  return qwen3_vl_like(
      c, [](const Config& t) { return read_as(t, "Qwen3_5MoeForCausalLM"); }, 0);
}

// Llama 3.2 Vision's text: some layers attend to images alone, and text passes them by.
ModelSpec mllama_text(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .width = 14336, .vocab = 128256});
  constexpr std::int64_t of_images = 8;  // rows of the table beside the vocabulary's
  std::vector<std::int64_t> crossing = c.integers("cross_attention_layers");
  if (crossing.empty()) crossing = {3, 8, 13, 18, 23, 28, 33, 38};
  c.pass_over({"dropout"});
  const auto crosses = [&](std::int64_t i) {
    return std::find(crossing.begin(), crossing.end(), i) != crossing.end();
  };
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             Attention attention = llama_attention(c, n);
                             if (!crosses(i))
                               return llama_layer(n, "full", attention, llama_mlp(n));
                             attention.name = "cross_attn";
                             attention.q_norm = {n.norm, "q_norm"};
                             attention.k_norm = {n.norm, "k_norm"};
                             LayerKind layer = llama_layer(n, "images", attention, llama_mlp(n));
                             layer.silent = true;
                             return layer;
                           }));
  std::get<TokenEmbedding>(spec.stacks[0].input).vocab = n.vocab + of_images;
  set_tied(spec, false);  // its rows are not the head's, whatever the file says
  return spec;
}

// Of those layers, which the stack's names have to be known for.
void add_gates(ModelSpec& spec) {
  const Stack& stack = spec.stacks.back();
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    if (!stack.kinds[static_cast<std::size_t>(stack.order[i])].silent) continue;
    for (const char* gate : {"cross_attn_attn_gate", "cross_attn_mlp_gate"}) {
      spec.apart.push_back({fmt::format("{}.{}.{}", stack.prefix, i, gate), {1}});
    }
  }
}

ModelSpec mllama_causal(const Config& c) {
  ModelSpec spec = mllama_text(c);
  add_gates(spec);
  return spec;
}

// Tiles of an image, their places among up to four, layers of each tile and of all together.
void add_tiled_tower(ModelSpec& spec, const Config& images, const std::string& at) {
  const std::int64_t hidden = images.size("hidden_size", 1280);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t side = images.size("image_size", 448) / patch;
  const std::int64_t tiles = images.size("max_num_tiles", 4);
  const auto ratios = images.json().find("supported_aspect_ratios");
  constexpr std::int64_t usual_ratios = 8;  // and one for none
  const std::int64_t shapes =
      1 + (ratios ? static_cast<std::int64_t>(ratios->elements().size()) : usual_ratios);
  images.pass_over({"supported_aspect_ratios", "intermediate_layers_indices"});
  const auto add_one = [&](const std::string& name) { spec.apart.push_back({at + name, {1}}); };
  const auto add_table = [&](const std::string& name, std::int64_t width) {
    spec.apart.push_back({at + name + ".weight", {shapes, width}, true});
  };
  spec.apart.push_back({at + "class_embedding", {hidden}});
  spec.apart.push_back(
      {at + "patch_embedding.weight", {hidden, images.size("num_channels", 3), patch, patch}});
  const std::int64_t rows = side * side + 1;
  add_one("gated_positional_embedding.gate");
  spec.apart.push_back({at + "gated_positional_embedding.embedding", {rows, hidden}});
  add_table("gated_positional_embedding.tile_embedding", tiles * rows * hidden);
  for (const char* place : {"pre_tile_positional_embedding", "post_tile_positional_embedding"}) {
    add_one(std::string(place) + ".gate");
    add_table(std::string(place) + ".embedding", tiles * hidden);
  }
  add_norm(spec, at + "layernorm_pre", hidden, true);
  add_norm(spec, at + "layernorm_post", hidden, true);
  const std::int64_t heads = images.size("attention_heads", 16);
  const std::int64_t width = images.size("intermediate_size", 5120);
  const auto add_layers = [&](const std::string& name, std::int64_t layers) {
    Stack stack =
        tower(at + name, hidden, layers, heads, width,
              {.norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .out = "o_proj"});
    for (LayerKind& kind : stack.kinds) {
      set_biases(std::get<Attention>(kind.branches[0].body), false, false);
    }
    add_silent(spec, std::move(stack));
  };
  const std::int64_t both = images.layers("num_global_layers", 8);
  for (std::int64_t i = 0; i < both; ++i) {
    add_one(fmt::format("global_transformer.layers.{}.gate_attn", i));
    add_one(fmt::format("global_transformer.layers.{}.gate_ffn", i));
  }
  add_layers("transformer.layers", images.layers("num_hidden_layers", 32));
  add_layers("global_transformer.layers", both);
}

ModelSpec mllama(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(mllama_text(text), "model.language_model.", "lm_head", false);
  add_gates(spec);
  add_linear(spec, "model.multi_modal_projector", spec.stacks.back().hidden,
             images.size("vision_output_dim", 7680), true);
  add_tiled_tower(spec, images, "model.vision_model.");
  return spec;
}

// Learned rows that read what the tower left, layer by layer.
void add_resampler(ModelSpec& spec, const Config& c) {
  const auto own = c.sub("perceiver_config");
  const Config none = nested(c, "text_config");
  const Config& p = own ? *own : none;
  const auto size = [&](const char* key, std::int64_t usual) {
    return own ? p.size(key, usual) : usual;
  };
  // As wide as the text, whatever the file says.
  if (own) own->pass_over({"hidden_act", "attention_dropout", "hidden_size"});
  const std::int64_t hidden = spec.stacks.back().hidden;
  const std::int64_t head = size("resampler_head_dim", 96);
  const std::int64_t queries = head * size("resampler_n_heads", 16);
  const std::int64_t keys = head * size("num_key_value_heads", 4);
  const std::string at = "model.connector.perceiver_resampler.";
  spec.apart.push_back({at + "latents", {size("resampler_n_latents", 64), hidden}});
  for (std::int64_t i = 0; i < size("resampler_depth", 3); ++i) {
    const std::string layer = fmt::format("{}layers.{}.", at, i);
    for (const char* norm :
         {"input_latents_norm", "input_context_norm", "post_attention_layernorm"}) {
      add_norm(spec, layer + norm, hidden, false);
    }
    add_linear(spec, layer + "self_attn.q_proj", queries, hidden, false);
    add_linear(spec, layer + "self_attn.k_proj", keys, hidden, false);
    add_linear(spec, layer + "self_attn.v_proj", keys, hidden, false);
    add_linear(spec, layer + "self_attn.o_proj", hidden, queries, false);
    add_gated(spec, layer + "mlp.", hidden, 4 * hidden, hidden);
  }
  add_norm(spec, at + "norm", hidden, false);
}

ModelSpec idefics2(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "mistral"), "model.text_model.", "lm_head", is_tied(c, text, false));
  const std::int64_t hidden =
      add_siglip_tower(spec, images_of(c), "model.vision_model.", {.patch = 32, .head = false});
  const std::int64_t out = spec.stacks.back().hidden;
  add_gated(spec, "model.connector.modality_projection.", hidden,
            text.size("intermediate_size", 14336), out);
  add_resampler(spec, c);
  return spec;
}

// LFM2 with SigLIP 2's tower; squares of patches become one token.
ModelSpec lfm2_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "lfm2"), "model.language_model.", "lm_head", is_tied(c, text, true));
  const Config images = images_of(c);
  const std::int64_t hidden = add_siglip_tower(spec, images, "model.vision_tower.", {.flat = true});
  const std::int64_t factor = c.size("downsample_factor", 2);
  const std::int64_t merged = hidden * factor * factor;
  const std::int64_t width = c.size("projector_hidden_size", 2560);
  const bool bias = c.flag("projector_bias", true);
  const std::string at = "model.multi_modal_projector.";
  if (c.flag("projector_use_layernorm", true)) add_norm(spec, at + "layer_norm", merged, true);
  add_linear(spec, at + "linear_1", width, merged, bias);
  add_linear(spec, at + "linear_2", spec.stacks.back().hidden, width, bias);
  return spec;
}

ModelSpec qwen2_audio(const Config& c) {
  const Config text = nested(c, "text_config");
  c.pass_over({"tie_word_embeddings"});  // the class never does
  text.pass_over({"tie_word_embeddings"});
  ModelSpec spec =
      inside(read_text(text, "qwen2"), "model.language_model.", "lm_head", /*tied=*/false);
  const std::int64_t hidden =
      add_audio_tower(spec, nested(c, "audio_config"), "model.audio_tower.");
  add_linear(spec, "model.multi_modal_projector.linear", spec.stacks.back().hidden, hidden, true);
  spec.head.causal_loss = false;  // the class's own, of logits as they are
  spec.head.shifted = true;
  return spec;
}

// Frames that lie in a row of four are one token.
ModelSpec voxtral(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config audio = nested(c, "audio_config");
  c.pass_over({"projector_hidden_act", "hidden_size"});
  c.pass_over({"tie_word_embeddings"});  // the class never does
  text.pass_over({"tie_word_embeddings"});
  ModelSpec spec =
      inside(read_text(text, "llama"), "model.language_model.", "lm_head", /*tied=*/false);
  add_audio_tower(spec, audio, "model.audio_tower.");
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.multi_modal_projector.";
  add_linear(spec, at + "linear_1", out, audio.size("intermediate_size", 5120), false);
  add_linear(spec, at + "linear_2", out, out, false);
  return spec;
}

}  // namespace

std::vector<Family> recent_image_text_families() {
  return {{"Glm4vForConditionalGeneration", "glm4v", glm4v},
          {"Glm4vMoeForConditionalGeneration", "glm4v_moe", glm4v_moe},
          {"Glm46VForConditionalGeneration", "glm46v", glm46v},
          {"GlmOcrForConditionalGeneration", "glm_ocr", glm_ocr},
          {"Qwen3_5ForConditionalGeneration", "qwen3_5", qwen3_5},
          {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", qwen3_5_moe},
          {"MllamaForConditionalGeneration", "mllama", mllama},
          {"MllamaForCausalLM", "mllama_text_model", mllama_causal},
          {"Idefics2ForConditionalGeneration", "idefics2", idefics2},
          {"Lfm2VlForConditionalGeneration", "lfm2_vl", lfm2_vl},
          {"Qwen2AudioForConditionalGeneration", "qwen2_audio", qwen2_audio},
          {"VoxtralForConditionalGeneration", "voxtral", voxtral}};
}

}  // namespace shardsim::models
