// Parts of models that read images beside text, which image_text.hpp declares.
#include <fmt/format.h>

#include <functional>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

// "model.layers" becomes "model.language_model.layers".
void rename(std::string& name, const std::string& from, const std::string& to) {
  if (name.starts_with(from)) name.replace(0, from.size(), to);
}

// Attention of one learned row to all patches, and an MLP.
void add_siglip_head(ModelSpec& spec, const std::string& at, std::int64_t hidden,
                     std::int64_t width) {
  spec.apart.push_back({at + "probe", {1, 1, hidden}});
  spec.apart.push_back({at + "attention.in_proj_weight", {3 * hidden, hidden}});
  spec.apart.push_back({at + "attention.in_proj_bias", {3 * hidden}});
  add_linear(spec, at + "attention.out_proj", hidden, hidden, true);
  add_norm(spec, at + "layernorm", hidden, true);
  add_linear(spec, at + "mlp.fc1", width, hidden, true);
  add_linear(spec, at + "mlp.fc2", hidden, width, true);
}

}  // namespace

Config nested(const Config& c, std::string_view key) {
  if (auto config = c.sub(key)) return *std::move(config);
  c.json().fail(fmt::format("missing key \"{}\"", key));
}

void require(const Config& text, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!text.given(key)) text.json().fail(fmt::format("missing key \"{}\"", key));
  }
}

// The text model under `to` in place of "model."; its head where `head` says.
ModelSpec inside(ModelSpec spec, const std::string& to, const std::string& head, bool tied) {
  Stack& stack = spec.stacks.back();
  auto& embedding = std::get<TokenEmbedding>(stack.input);
  rename(stack.prefix, "model.", to);
  rename(stack.norm.name, "model.", to);
  for (std::string* name : {&embedding.name, &embedding.positions, &embedding.project}) {
    rename(*name, "model.", to);
  }
  if (stack.per_layer) {
    for (std::string* name :
         {&stack.per_layer->table, &stack.per_layer->project, &stack.per_layer->norm.name}) {
      rename(*name, "model.", to);
    }
  }
  spec.head.name = head;
  set_tied(spec, tied);
  return spec;
}

// Its activation, windows and how its rows are chosen: the images' part does not run here.
Config images_of(const Config& c, bool several_layers) {
  Config images = nested(c, "vision_config");
  images.pass_over({"hidden_act", "head_dim", "image_size", "window_size", "fullatt_block_indexes",
                    "tokens_per_second", "projection_dim", "spatial_patch_size",
                    "vision_feature_layer", "vision_feature_select_strategy"});
  c.pass_over({"projector_hidden_act"});
  const auto layers = c.json().find("vision_feature_layer");
  if (!several_layers && layers && layers->is_array()) {
    layers->fail("a list of layers, whose features lie side by side, is not supported");
  }
  return images;
}

void add_silent(ModelSpec& spec, Stack stack) {
  stack.role = StackRole::silent;
  spec.stacks.insert(spec.stacks.begin(), std::move(stack));
}

void add_linear(ModelSpec& spec, const std::string& name, std::int64_t out, std::int64_t in,
                bool bias) {
  spec.apart.push_back({name + ".weight", {out, in}});
  if (bias) spec.apart.push_back({name + ".bias", {out}});
}

void add_norm(ModelSpec& spec, const std::string& name, std::int64_t width, bool bias) {
  spec.apart.push_back({name + ".weight", {width}});
  if (bias) spec.apart.push_back({name + ".bias", {width}});
}

void add_convolution(ModelSpec& spec, const std::string& name, Shape weight, bool bias) {
  const std::int64_t out = weight[0];
  spec.apart.push_back({name + ".weight", std::move(weight)});
  if (bias) spec.apart.push_back({name + ".bias", {out}});
}

void add_table(ModelSpec& spec, const std::string& name, std::int64_t rows, std::int64_t width) {
  spec.apart.push_back({name + ".weight", {rows, width}, true});
}

void add_network(ModelSpec& spec, const Blueprint& network, const Place& place) {
  Eager e({.place = place});
  run(e, network, {.batch = 1, .side = network.side, .text = network.text});
  for (const Parameter& parameter : e.parameters()) {
    spec.apart.push_back({parameter.name, parameter.shape});
  }
  for (const Buffer& buffer : e.buffers()) spec.buffers.push_back({buffer.name, buffer.shape});
}

void set_tables_by_example(ModelSpec& spec) {
  for (LayerKind& kind : spec.stacks.back().kinds) {
    for (Branch& branch : kind.branches) {
      auto* attention = std::get_if<Attention>(&branch.body);
      if (attention == nullptr) continue;
      attention->rotary.each_layer = false;
      attention->rotary.by_example = true;
    }
  }
}

bool is_tied(const Config& c, const Config& text, bool otherwise, TiedBy by) {
  const bool by_model = c.flag("tie_word_embeddings", otherwise);
  const bool by_text = text.flag("tie_word_embeddings", otherwise);
  if (by == TiedBy::either) return by_model || by_text;
  return by == TiedBy::text ? by_text : by_model;
}

void copy_numbers_of_images(const Config& c, ModelSpec& spec, std::int64_t usual_token) {
  auto& input = std::get<TokenEmbedding>(spec.stacks.back().input);
  const std::int64_t token = c.integer("image_token_index|image_token_id", usual_token);
  if (token >= input.vocab) input.shifted = true;
}

ModelSpec read_as(const Config& text, std::string_view architecture) {
  for (const Family& family : families()) {
    if (family.architecture == architecture) return family.read(text);
  }
  text.fail("model_type", fmt::format("no text model {}", architecture));
}

ModelSpec read_text(const Config& text, std::string_view otherwise) {
  const std::string type = text.text("model_type", otherwise);
  for (const Family& family : families()) {
    if (family.model_type == type) return family.read(text);
  }
  text.fail("model_type", fmt::format("unknown text model \"{}\"", type));
}

Stack tower(const std::string& prefix, std::int64_t hidden, std::int64_t layers, std::int64_t heads,
            std::int64_t width, const TowerNames& names) {
  Attention attention;
  attention.name = names.attention;
  attention.o = names.out;
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = hidden / heads;
  attention.bidirectional = true;
  set_biases(attention, names.bias, names.bias);
  if (!names.qkv.empty()) {
    attention.form = QkvForm::fused;
    attention.qkv = names.qkv;
  }
  Mlp mlp;
  mlp.width = width;
  mlp.name = names.mlp;
  mlp.form = names.form;
  mlp.activation = "gelu";
  mlp.bias = names.bias;
  mlp.up = names.up;
  mlp.down = names.down;
  const bool norm_bias = names.bias && names.norm == NormKind::layer;
  LayerKind layer{.name = "images",
                  .branches = {{.before = {names.norm, names.norm1, norm_bias}, .body = attention},
                               {.before = {names.norm, names.norm2, norm_bias}, .body = mlp}}};
  Stack stack;
  stack.prefix = prefix;
  stack.hidden = hidden;
  stack.input = NoInput{};
  Layers all = Layers::of(layers, [&](std::int64_t) { return layer; });
  stack.kinds = std::move(all.kinds);
  stack.order = std::move(all.order);
  return stack;
}

std::int64_t add_siglip_tower(ModelSpec& spec, const Config& images, const std::string& at,
                              const SiglipDefaults& usual) {
  const std::int64_t hidden = images.size("hidden_size", usual.hidden);
  const std::int64_t patch = images.size("patch_size", usual.patch);
  const std::int64_t channels = images.size("num_channels", 3);
  const std::string patches = at + "embeddings.patch_embedding";
  std::int64_t places = 0;
  if (usual.flat) {
    places = images.size("num_patches", 256);
    add_linear(spec, patches, hidden, channels * patch * patch, true);
  } else {
    const std::int64_t side = images.size("image_size", usual.image) / patch;
    places = side * side;
    spec.apart.push_back({patches + ".weight", {hidden, channels, patch, patch}});
    spec.apart.push_back({patches + ".bias", {hidden}});
  }
  if (usual.places) add_table(spec, at + "embeddings.position_embedding", places, hidden);
  add_norm(spec, at + "post_layernorm", hidden, true);
  const std::int64_t width = images.size("intermediate_size", usual.width);
  if (usual.head && images.flag("vision_use_head", true)) {
    add_siglip_head(spec, at + "head.", hidden, width);
  }
  add_silent(spec,
             tower(at + "encoder.layers", hidden, images.size("num_hidden_layers", usual.layers),
                   images.size("num_attention_heads", usual.heads), width, {}));
  return hidden;
}

std::int64_t add_pixtral_tower(ModelSpec& spec, const Config& images, const std::string& at) {
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t patch = images.size("patch_size", 16);
  spec.apart.push_back(
      {at + "patch_conv.weight", {hidden, images.size("num_channels", 3), patch, patch}});
  add_norm(spec, at + "ln_pre", hidden, false);
  Stack stack =
      tower(at + "transformer.layers", hidden, images.size("num_hidden_layers", 24),
            images.size("num_attention_heads", 16), images.size("intermediate_size", 4096),
            {.norm1 = "attention_norm",
             .norm2 = "ffn_norm",
             .attention = "attention",
             .out = "o_proj",
             .up = "up_proj",
             .down = "down_proj",
             .norm = NormKind::rms,
             .bias = false,
             .form = MlpForm::gated,
             .mlp = "feed_forward"});
  add_silent(spec, std::move(stack));
  return hidden;
}

std::int64_t add_tower(ModelSpec& spec, const Config& images, const std::string& at,
                       std::string_view otherwise) {
  const std::string type = images.text("model_type", otherwise);
  if (type == "siglip_vision_model") return add_siglip_tower(spec, images, at);
  if (type == "pixtral") return add_pixtral_tower(spec, images, at);
  if (type != "clip_vision_model") {
    images.fail("model_type", fmt::format("\"{}\" is not supported; supported are "
                                          "clip_vision_model, siglip_vision_model and pixtral",
                                          type));
  }
  Stack stack = clip_vision(images, at);
  const std::int64_t hidden = stack.hidden;
  add_silent(spec, std::move(stack));
  return hidden;
}

void add_pixtral_projector(ModelSpec& spec, const Config& c, std::int64_t hidden) {
  const std::int64_t merge = c.size("spatial_merge_size", 2);
  const std::int64_t out = spec.stacks.back().hidden;
  const bool bias = c.flag("multimodal_projector_bias", false);
  const std::string projector = "model.multi_modal_projector.";
  add_norm(spec, projector + "norm", hidden, false);
  add_linear(spec, projector + "patch_merger.merging_layer", hidden, hidden * merge * merge, false);
  add_linear(spec, projector + "linear_1", out, hidden, bias);
  add_linear(spec, projector + "linear_2", out, out, bias);
}

void add_two_linears(ModelSpec& spec, const Config& c, std::int64_t in) {
  const std::int64_t out = spec.stacks.back().hidden;
  const bool bias = c.flag("multimodal_projector_bias", true);
  add_linear(spec, "model.multi_modal_projector.linear_1", out, in, bias);
  add_linear(spec, "model.multi_modal_projector.linear_2", out, out, bias);
}

void add_qwen2_5_images(ModelSpec& spec, const Config& images, const std::string& at,
                        std::int64_t usual_kv_heads, bool fused) {
  const std::int64_t hidden = images.size("hidden_size", 3584);
  const std::int64_t heads = images.size("num_heads", 16);
  const std::int64_t kv_heads =
      usual_kv_heads > 0 ? images.size("num_key_value_heads", usual_kv_heads) : heads;
  const std::int64_t merged = add_qwen_patches(spec, images, at, hidden, 14);
  add_norm(spec, at + "merger.ln_q", hidden, false);
  add_linear(spec, at + "merger.mlp.0", merged, merged, true);
  add_linear(spec, at + "merger.mlp.2", images.size("out_hidden_size", 3584), merged, true);
  Stack stack = tower(at + "blocks", hidden, images.size("depth", 32), heads,
                      images.size("intermediate_size", 3420),
                      {.norm1 = "norm1",
                       .norm2 = "norm2",
                       .attention = "attn",
                       .out = "proj",
                       .up = "up_proj",
                       .down = "down_proj",
                       .qkv = fused ? "qkv" : "",
                       .norm = NormKind::rms,
                       .form = MlpForm::gated});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    attention.kv_heads = kv_heads;
    if (fused) continue;
    attention.q = "q";
    attention.k = "k";
    attention.v = "v";
  }
  add_silent(spec, std::move(stack));
}

void add_qwen3_images(ModelSpec& spec, const Config& images, const QwenMergers& names,
                      std::size_t usual_deep) {
  const std::int64_t hidden = images.size("hidden_size", 1152);
  const std::int64_t out = images.size("out_hidden_size", 3584);
  const std::string at = "model.visual.";
  const std::int64_t merged = add_qwen_patches(spec, images, at, hidden, 16);
  spec.apart.push_back({at + "patch_embed.proj.bias", {hidden}});
  spec.apart.push_back(
      {at + "pos_embed.weight", {images.size("num_position_embeddings", 2304), hidden}, true});
  const auto merger = [&](const std::string& name, std::int64_t norm) {
    add_norm(spec, fmt::format("{}.{}", name, names.norm), norm, true);
    add_linear(spec, fmt::format("{}.{}", name, names.first), merged, merged, true);
    add_linear(spec, fmt::format("{}.{}", name, names.second), out, merged, true);
  };
  merger(at + "merger", hidden);
  const std::size_t deep = images.given("deepstack_visual_indexes")
                               ? images.integers("deepstack_visual_indexes").size()
                               : usual_deep;
  for (std::size_t i = 0; i < deep; ++i) {
    merger(fmt::format("{}{}.{}", at, names.deep, i), merged);
  }
  add_silent(spec, tower(at + "blocks", hidden, images.size("depth", 27),
                         images.size("num_heads", 16), images.size("intermediate_size", 4304),
                         {.norm1 = "norm1",
                          .norm2 = "norm2",
                          .attention = "attn",
                          .out = "proj",
                          .up = "linear_fc1",
                          .down = "linear_fc2",
                          .qkv = "qkv"}));
}

ModelSpec qwen3_vl_like(const Config& c, const std::function<ModelSpec(const Config&)>& read,
                        std::size_t usual_deep) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(read(text), "model.language_model.", "lm_head", is_tied(c, text, false));
  set_tables_by_example(spec);
  add_qwen3_images(spec, images,
                   {.norm = "norm",
                    .first = "linear_fc1",
                    .second = "linear_fc2",
                    .deep = "deepstack_merger_list"},
                   usual_deep);
  return spec;
}

}  // namespace shardsim::models
