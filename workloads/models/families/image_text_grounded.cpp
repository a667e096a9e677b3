// Models that name places in images: Kosmos-2 (arXiv:2306.14824), Kosmos-2.5 (arXiv:2309.11419),
// Florence-2 (arXiv:2311.06242). A step here is one of text alone, as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_kosmos2.py, modeling_kosmos2_5.py, modeling_florence2.py.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

// What a file leaves out.
struct KosmosSizes {
  std::int64_t hidden = 2048, heads = 32, width = 8192, vocab = 65037;
};

Sizes kosmos_sizes(const Config& c, const KosmosSizes& usual) {
  Sizes n;
  n.hidden = c.size("embed_dim", usual.hidden);
  n.layers = c.layers("layers", 24);
  n.heads = n.kv_heads = c.size("attention_heads", usual.heads);
  n.head_dim = c.divided("embed_dim", n.hidden, "attention_heads", n.heads);
  n.width = c.size("ffn_dim", usual.width);
  n.vocab = c.size("vocab_size", usual.vocab);
  n.activation = c.activation("activation_function", "gelu");
  c.pass_over({"layerdrop"});  // layers that a step leaves out at random are counted
  return n;
}

// Norms before the branches, and of what their last products read.
ModelSpec kosmos2_text(const Config& c) {
  const Sizes n = kosmos_sizes(c, {});
  if (c.flag("add_cross_attention", false)) {
    c.fail("add_cross_attention", "only false is supported");
  }
  Attention attention = fairseq_attention(c, n);
  attention.o_norm = layer_norm("inner_attn_ln");
  Mlp mlp = fairseq_mlp(c, n, "ffn");
  mlp.inner_norm = layer_norm("ffn_layernorm");
  return fairseq_decoder(c, n, attention, mlp);
}

ModelSpec kosmos2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  require(images, {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                   "patch_size"});
  const bool tied = c.flag("tie_word_embeddings", true);
  const bool text_tied = text.flag("tie_word_embeddings", true);  // either ties
  ModelSpec spec =
      inside(kosmos2_text(text), "text_model.model.", "text_model.lm_head", tied || text_tied);
  add_silent(spec, clip_vision(images, "vision_model.model."));
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "image_to_text_projection.";
  spec.apart.push_back({at + "latent_query", {c.size("latent_query_num", 64), out}});
  add_linear(spec, at + "dense", out, images.size("hidden_size"), true);
  for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    add_linear(spec, at + "x_attn." + name, out, out, true);
  }
  return spec;
}

// Without norms of what attention's last product reads; images' tokens are of another type. What
// enters the layers is dropped twice, of which one is here.
ModelSpec kosmos2_5_text(const Config& c) {
  const Sizes n = kosmos_sizes(c, {.hidden = 1536, .heads = 16, .width = 6144, .vocab = 108481});
  Attention attention = fairseq_attention(c, n);
  attention.dropout = c.rate("attention_dropout", 0);
  Mlp mlp = fairseq_mlp(c, n, "ffn");
  mlp.inner_norm = layer_norm("ffn_layernorm");
  ModelSpec spec = fairseq_decoder(c, n, attention, mlp);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.scaled = true;                           // by 1, too
  input.types = "text_model.model.segment_emb";  // where kosmos2_5 puts it
  input.type_rows = 2;
  return spec;
}

// Pix2Struct's encoder: rows of patches that say where they lie.
ModelSpec kosmos2_5(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  const bool tied = c.flag("tie_word_embeddings", true);
  const bool text_tied = text.flag("tie_word_embeddings", true);  // either ties
  ModelSpec spec =
      inside(kosmos2_5_text(text), "text_model.model.", "text_model.lm_head", tied || text_tied);
  const std::int64_t hidden = images.size("hidden_size", 1536);
  const std::int64_t heads = images.size("num_attention_heads", 24);
  const std::int64_t inner = heads * images.size("head_dim", 64);
  const std::int64_t width = images.size("intermediate_size", 3968);
  const std::int64_t places = images.size("max_num_patches", 4096);
  images.pass_over({"dense_act_fn", "dropout_rate", "attention_dropout"});
  const std::string at = "vision_model.";
  add_linear(spec, at + "embeddings.patch_projection", hidden,
             images.size("patch_embed_hidden_size", 768), true);
  add_table(spec, at + "embeddings.row_embedder", places, hidden);
  add_table(spec, at + "embeddings.column_embedder", places, hidden);
  add_norm(spec, at + "layernorm", hidden, false);
  for (std::int64_t i = 0; i < images.layers("num_hidden_layers", 18); ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", at, i);
    for (const char* name : {"query", "key", "value"}) {
      add_linear(spec, layer + "attention." + name, inner, hidden, false);
    }
    add_linear(spec, layer + "attention.output", hidden, inner, false);
    add_linear(spec, layer + "mlp.wi_0", width, hidden, false);
    add_linear(spec, layer + "mlp.wi_1", width, hidden, false);
    add_linear(spec, layer + "mlp.wo", hidden, width, false);
    add_norm(spec, layer + "pre_mlp_layer_norm", hidden, false);
    add_norm(spec, layer + "pre_attention_layer_norm", hidden, false);
  }
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string between = "image_to_text_projection.";
  spec.apart.push_back({between + "latent_query", {c.size("latent_query_num", 2048), out}});
  add_linear(spec, between + "dense", out, hidden, true);
  for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    add_linear(spec, between + "x_attn." + name, out, out, true);
  }
  return spec;
}

// One number for each stage.
std::vector<std::int64_t> of_stages(const Config& c, const char* key,
                                    std::vector<std::int64_t> usual, std::size_t stages) {
  std::vector<std::int64_t> values = c.sizes(key, std::move(usual));
  if (values.size() != stages) c.fail(key, "has not one entry for each of embed_dim");
  return values;
}

// DaViT (arXiv:2204.03645): attention of windows, then of groups of channels.
std::int64_t add_davit(ModelSpec& spec, const Config& c, const std::string& at) {
  const auto widths = c.sizes("embed_dim", {128, 256, 512, 1024});
  const std::size_t stages = widths.size();
  const auto depths = of_stages(c, "depths", {1, 1, 9, 1}, stages);
  const auto patch = of_stages(c, "patch_size", {7, 3, 3, 3}, stages);
  const auto heads = of_stages(c, "num_heads", {4, 8, 16, 32}, stages);
  const auto groups = of_stages(c, "num_groups", {4, 8, 16, 32}, stages);
  std::vector<bool> norms_first{false, true, true, true};
  if (const auto list = c.json().find("patch_prenorm")) {
    norms_first.clear();
    for (const auto& item : list->json()) norms_first.push_back(item.get<bool>());
  }
  if (norms_first.size() != stages) c.fail("patch_prenorm", "has not one entry for each stage");
  const bool bias = c.flag("qkv_bias", true);
  const double ratio = c.ratio("mlp_ratio", 4);
  c.pass_over({"window_size", "drop_path_rate", "patch_padding", "patch_stride",
               "activation_function", "patch_prenorm"});
  constexpr std::int64_t taps = 3;
  std::int64_t in = c.size("in_channels", 3);
  for (std::size_t s = 0; s < stages; ++s) {
    const std::int64_t width = widths[s];
    static_cast<void>(c.divided("embed_dim", width, "num_heads", heads[s]));
    static_cast<void>(c.divided("embed_dim", width, "num_groups", groups[s]));
    const std::string cut = fmt::format("{}convs.{}.", at, s);
    add_convolution(spec, cut + "conv", {width, in, patch[s], patch[s]}, true);
    add_norm(spec, cut + "norm", norms_first[s] ? in : width, true);
    const auto ffn = static_cast<std::int64_t>(ratio * static_cast<double>(width));
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      for (const auto& [block, attention] : {std::pair{"spatial_block", "window_attn"},
                                             std::pair{"channel_block", "channel_attn"}}) {
        const std::string name = fmt::format("{}blocks.{}.{}.{}.", at, s, i, block);
        for (const char* half : {"1", "2"}) {
          add_convolution(spec, name + "conv" + half, {width, 1, taps, taps}, true);
          add_norm(spec, name + "norm" + half, width, true);
        }
        add_linear(spec, name + attention + ".qkv", 3 * width, width, bias);
        add_linear(spec, name + attention + ".proj", width, width, true);
        add_linear(spec, name + "ffn.fc1", ffn, width, true);
        add_linear(spec, name + "ffn.fc2", width, ffn, true);
      }
    }
    in = width;
  }
  return in;
}

// BART's names start with "model.", under which the rest is of this model.
void rename_bart(ModelSpec& spec, const std::string& to) {
  const std::string from = "model.";
  const auto rename = [&](std::string& name) {
    if (name.starts_with(from)) name.replace(0, from.size(), to);
  };
  for (Stack& stack : spec.stacks) {
    auto& input = std::get<TokenEmbedding>(stack.input);
    for (std::string* name : {&stack.prefix, &stack.norm.name, &input.name, &input.table_of,
                              &input.positions, &input.norm.name, &input.dropout_name}) {
      rename(*name);
    }
  }
  for (SharedTable& table : spec.shared) rename(table.name);
  for (NamedParameter& parameter : spec.apart) rename(parameter.name);
  rename(spec.head.tied_to);
}

ModelSpec florence2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  for (const Config* config : {&c, &text}) {
    if (!config->flag("tie_word_embeddings", true)) {
      config->fail("tie_word_embeddings", "only true is supported");
    }
  }
  ModelSpec spec = bart(text);
  spec.buffers.clear();  // of the head alone
  spec.head.fp32_loss = true;
  rename_bart(spec, "model.language_model.");
  const std::int64_t width = add_davit(spec, images, "model.vision_tower.");
  const std::int64_t out = images.size("projection_dim", 1024);
  const std::int64_t places = images.size("max_position_embeddings", 50);
  const std::string at = "model.multi_modal_projector.";
  add_linear(spec, at + "image_projection", out, width, false);
  add_norm(spec, at + "image_proj_norm", out, true);
  add_table(spec, at + "image_position_embed.row_embeddings", places, width / 2);
  add_table(spec, at + "image_position_embed.column_embeddings", places, width - width / 2);
  spec.buffers.push_back({at + "visual_temporal_embed.pos_idx_to_embed",
                          {images.size("max_temporal_embeddings", 100), width}});
  return spec;
}

}  // namespace

std::vector<Family> grounded_image_text_families() {
  return {{"Kosmos2ForConditionalGeneration", "kosmos-2", kosmos2},
          {"Kosmos2_5ForConditionalGeneration", "kosmos-2.5", kosmos2_5},
          {"Florence2ForConditionalGeneration", "florence2", florence2}};
}

}  // namespace shardsim::models
