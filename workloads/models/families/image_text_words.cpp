// Models that have images as words of a vocabulary, by an autoencoder whose latents are the nearest
// rows of a table: Janus, Emu 3, Chameleon. A step here is one of text alone, as image_text.cpp has
// it.
//
// Source: transformers 5.23.0, modeling_janus.py, modeling_emu3.py, modeling_chameleon.py.
#include <fmt/format.h>

#include <utility>

#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t taps = 3;

// Levels of residual blocks on the way down and on the way back, and the middle (arXiv:2012.09841).
struct WordAutoencoder {
  std::string middle = "mid", down = "down", up = "up";
  bool projects = false;       // attention by products, its norm beside it; else by convolutions
  std::int64_t normed_by = 0;  // channels of latents that scale and move norms on the way back
  bool largest_first = false;  // levels on the way back are numbered as those on the way down
  std::int64_t base = 0, blocks = 0, in = 0, out = 0, latents = 0, code = 0, inner = 0;
  bool double_latent = false;
  std::vector<std::int64_t> multipliers{};
  std::vector<bool> attends{};  // of each level

  [[nodiscard]] std::int64_t width(std::size_t level) const { return base * multipliers[level]; }
  [[nodiscard]] std::int64_t deepest() const { return base * multipliers.back(); }
};

void add_word_norm(ModelSpec& spec, const std::string& name, std::int64_t width,
                   std::int64_t normed_by) {
  if (normed_by == 0) return add_norm(spec, name, width, true);
  add_norm(spec, name + ".norm_layer", width, true);
  add_convolution(spec, name + ".conv_y", {width, normed_by, 1, 1}, true);
  add_convolution(spec, name + ".conv_b", {width, normed_by, 1, 1}, true);
}

void add_word_block(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t out,
                    std::int64_t normed_by) {
  add_word_norm(spec, at + ".norm1", in, normed_by);
  add_convolution(spec, at + ".conv1", {out, in, taps, taps}, true);
  add_word_norm(spec, at + ".norm2", out, normed_by);
  add_convolution(spec, at + ".conv2", {out, out, taps, taps}, true);
  if (in != out) add_convolution(spec, at + ".nin_shortcut", {out, in, 1, 1}, true);
}

void add_word_attention(ModelSpec& spec, const WordAutoencoder& n, const std::string& at,
                        const std::string& norm, std::int64_t width, std::int64_t normed_by) {
  if (n.projects) {
    for (const char* name : {".q_proj", ".k_proj", ".v_proj", ".out_proj"}) {
      add_linear(spec, at + name, n.inner, n.inner, true);
    }
    return add_word_norm(spec, norm, width, normed_by);
  }
  add_norm(spec, at + ".norm", width, true);
  for (const char* name : {".q", ".k", ".v", ".proj_out"}) {
    add_convolution(spec, at + name, {width, width, 1, 1}, true);
  }
}

void add_word_level(ModelSpec& spec, const WordAutoencoder& n, const std::string& at,
                    std::int64_t in, std::size_t level, std::int64_t blocks,
                    std::int64_t normed_by) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    add_word_block(spec, fmt::format("{}.block.{}", at, i), i == 0 ? in : n.width(level),
                   n.width(level), normed_by);
    if (!n.attends[level]) continue;
    add_word_attention(spec, n, fmt::format("{}.attn.{}", at, i),
                       fmt::format("{}.attn_norms.{}", at, i), n.width(level), normed_by);
  }
}

void add_word_middle(ModelSpec& spec, const WordAutoencoder& n, const std::string& at,
                     std::int64_t normed_by) {
  add_word_block(spec, at + ".block_1", n.deepest(), n.deepest(), normed_by);
  add_word_attention(spec, n, at + ".attn_1", at + ".attn_norm", n.deepest(), normed_by);
  add_word_block(spec, at + ".block_2", n.deepest(), n.deepest(), normed_by);
}

void add_word_encoder(ModelSpec& spec, const WordAutoencoder& n, const std::string& at) {
  add_convolution(spec, at + "conv_in", {n.base, n.in, taps, taps}, true);
  for (std::size_t level = 0; level < n.multipliers.size(); ++level) {
    const std::string name = fmt::format("{}{}.{}", at, n.down, level);
    add_word_level(spec, n, name, level == 0 ? n.base : n.width(level - 1), level, n.blocks, 0);
    if (level + 1 == n.multipliers.size()) break;
    add_convolution(spec, name + ".downsample.conv", {n.width(level), n.width(level), taps, taps},
                    true);
  }
  add_word_middle(spec, n, at + n.middle, 0);
  add_norm(spec, at + "norm_out", n.deepest(), true);
  add_convolution(spec, at + "conv_out",
                  {n.double_latent ? 2 * n.latents : n.latents, n.deepest(), taps, taps}, true);
}

void add_word_decoder(ModelSpec& spec, const WordAutoencoder& n, const std::string& at) {
  add_convolution(spec, at + "conv_in", {n.deepest(), n.latents, taps, taps}, true);
  add_word_middle(spec, n, at + n.middle, n.normed_by);
  const std::size_t levels = n.multipliers.size();
  std::int64_t in = n.deepest();
  for (std::size_t i = 0; i < levels; ++i) {
    const std::size_t level = levels - 1 - i;
    const std::string name = fmt::format("{}{}.{}", at, n.up, n.largest_first ? level : i);
    add_word_level(spec, n, name, in, level, n.blocks + 1, n.normed_by);
    in = n.width(level);
    if (level > 0) add_convolution(spec, name + ".upsample.conv", {in, in, taps, taps}, true);
  }
  add_word_norm(spec, at + "norm_out", in, n.normed_by);
  add_convolution(spec, at + "conv_out", {n.out, in, taps, taps}, true);
}

WordAutoencoder read_word_autoencoder(const Config& words, std::int64_t base,
                                      const std::vector<std::int64_t>& multipliers) {
  WordAutoencoder n;
  n.base = words.size("base_channels", base);
  n.blocks = words.size("num_res_blocks", 2);
  n.in = words.size("in_channels", 3);
  n.out = words.size("out_channels", 3);
  n.double_latent = words.flag("double_latent", false);
  n.multipliers = words.sizes("channel_multiplier", multipliers);
  n.attends.assign(n.multipliers.size(), false);
  constexpr std::int64_t groups = 32;
  for (std::size_t level = 0; level < n.multipliers.size(); ++level) {
    if (n.width(level) % groups != 0) {
      words.fail("base_channels",
                 "times a channel_multiplier is no multiple of 32, a norm's groups");
    }
  }
  words.pass_over({"dropout", "attention_dropout", "hidden_act", "num_patches"});
  return n;
}

// From one width to another by several products.
void add_aligner(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t out,
                 std::int64_t depth) {
  add_linear(spec, at + ".fc1", out, in, true);
  for (std::int64_t i = 0; i + 1 < depth; ++i) {
    add_linear(spec, fmt::format("{}.hidden_layers.{}", at, i), out, out, true);
  }
}

// What Janus sees is SigLIP's, what it draws are words.
void add_janus_images(ModelSpec& spec, const Config& images) {
  const std::int64_t hidden = images.size("hidden_size", 1024);
  const std::int64_t heads = images.size("num_attention_heads", 16);
  const std::int64_t patch = images.size("patch_size", 16);
  const std::int64_t image = images.size("image_size", 384);
  const std::int64_t side = image / patch;
  static_cast<void>(images.divided("hidden_size", hidden, "num_attention_heads", heads));
  images.pass_over({"hidden_dropout_rate", "projection_dropout", "attention_dropout",
                    "num_image_tokens", "hidden_act"});
  const auto width =
      static_cast<std::int64_t>(images.ratio("mlp_ratio", 4) * static_cast<double>(hidden));
  const std::string at = "model.vision_model.";
  add_convolution(spec, at + "embeddings.patch_embedding",
                  {hidden, images.size("num_channels", 3), patch, patch}, true);
  add_table(spec, at + "embeddings.position_embedding", side * side, hidden);
  add_norm(spec, at + "post_layernorm", hidden, true);
  Stack stack = tower(at + "encoder.layers", hidden, images.size("num_hidden_layers", 24), heads,
                      width, {.out = "projection_layer"});
  const bool bias = images.flag("attention_bias", true);
  const bool norms = images.flag("use_qk_norm", false);
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    set_biases(attention, bias, true);
    if (!norms) continue;
    attention.norm_whole = true;
    attention.q_norm = layer_norm("q_norm");
    attention.k_norm = layer_norm("k_norm");
  }
  add_silent(spec, std::move(stack));
  add_aligner(spec, "model.aligner", hidden, images.size("projection_dim", 2048),
              images.size("depth", 2));
}

ModelSpec janus(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "llama"), "model.language_model.", "lm_head", is_tied(c, text, true));
  add_janus_images(spec, nested(c, "vision_config"));
  const Config words = nested(c, "vq_config");
  WordAutoencoder n = read_word_autoencoder(words, 128, {1, 1, 2, 2, 4});
  n.latents = words.size("latent_channels", 256);
  n.code = words.size("embed_dim", 8);
  n.attends.back() = true;
  const std::int64_t rows = words.size("num_embeddings", 16384);
  const std::int64_t width = words.size("projection_dim", 2048);
  const std::int64_t read = words.size("image_token_embed_dim", 2048);
  const std::string at = "model.vqmodel.";
  add_word_encoder(spec, n, at + "encoder.");
  add_table(spec, at + "quantize.embedding", rows, n.code);
  add_convolution(spec, at + "quant_conv", {n.code, n.latents, 1, 1}, true);
  add_convolution(spec, at + "post_quant_conv", {n.latents, n.code, 1, 1}, true);
  add_word_decoder(spec, n, at + "decoder.");
  add_table(spec, "model.generation_embeddings", rows, n.code);
  add_aligner(spec, "model.generation_aligner", n.code, width, words.size("num_hidden_layers", 2));
  add_linear(spec, "model.generation_head.proj_out", width, read, true);
  add_linear(spec, "model.generation_head.vision_head", rows, width, true);
  return spec;
}

// Two norms over batches and two convolutions over frames, rows and columns.
void add_frame_blocks(ModelSpec& spec, const std::string& at, std::int64_t count,
                      std::int64_t width) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (const char* half : {"1", "2"}) {
      const std::string block = fmt::format("{}time_res_stack.{}.", at, i);
      add_norm(spec, block + "norm" + half, width, true);
      for (const char* mean : {".running_mean", ".running_var"}) {
        spec.buffers.push_back({block + "norm" + half + mean, {width}});
      }
      spec.buffers.push_back({block + "norm" + half + ".num_batches_tracked", {}});
      add_convolution(spec, block + "conv" + half + ".conv", {width, width, taps, taps, taps},
                      true);
    }
  }
}

ModelSpec emu3(const Config& c) {
  const Config text = nested(c, "text_config");
  c.pass_over({"vocabulary_map"});
  ModelSpec spec = inside(read_as(text, "Emu3ForCausalLM"), "model.text_model.", "lm_head",
                          is_tied(c, text, false));
  const Config words = nested(c, "vq_config");
  WordAutoencoder n = read_word_autoencoder(words, 256, {1, 2, 2, 4});
  n.middle = "middle_block";
  n.down = "down_block.down";
  n.up = "up_block.up";
  n.projects = n.largest_first = true;
  n.latents = words.size("latent_channels", 4);
  n.code = words.size("embed_dim", 4);
  n.inner = words.size("hidden_size", 1024);
  n.normed_by = n.code;
  static_cast<void>(words.divided("hidden_size", n.inner, "num_attention_heads",
                                  words.size("num_attention_heads", 1)));
  for (const std::int64_t level : words.sizes("attn_resolutions", {3})) {
    if (level < static_cast<std::int64_t>(n.attends.size())) {
      n.attends[static_cast<std::size_t>(level)] = true;
    }
  }
  const std::int64_t frames = words.size("temporal_downsample_factor", 4);
  const std::string at = "model.vqmodel.";
  const std::int64_t out = n.double_latent ? 2 * n.latents : n.latents;
  add_word_encoder(spec, n, at + "encoder.");
  add_frame_blocks(spec, at + "encoder.", n.blocks, out);
  add_frame_blocks(spec, at + "decoder.", n.blocks, n.latents);
  std::int64_t halvings = 0;
  for (std::int64_t left = frames; left > 1; left /= 2, ++halvings) {
    const auto of = [&](const char* side) {
      return fmt::format("{}{}.time_conv.{}.conv.conv", at, side, halvings);
    };
    add_convolution(spec, of("encoder"), {out, out, taps + 1, taps, taps}, true);
    add_convolution(spec, of("decoder"), {n.latents, n.latents, taps, taps, taps}, true);
  }
  add_table(spec, at + "quantize.embedding", words.size("codebook_size", 32768), n.code);
  add_convolution(spec, at + "quant_conv.conv", {n.code, n.latents, taps, 1, 1}, true);
  add_convolution(spec, at + "post_quant_conv.conv", {n.latents, n.code, taps, 1, 1}, true);
  add_word_decoder(spec, n, at + "decoder.");
  return spec;
}

// Queries and keys are normed head by head, each head with weights of its own (arXiv:2405.09818).
ModelSpec chameleon(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32});
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  c.pass_over({"vocabulary_map", "model_parallel_size"});
  Attention attention = llama_attention(c, n);
  const bool bias = c.flag("attention_bias", false);
  set_biases(attention, bias, bias);
  attention.q_norm = {NormKind::layer_apart, "q_norm", true, {n.heads, n.head_dim}};
  attention.k_norm = {NormKind::layer_apart, "k_norm", true, {n.kv_heads, n.head_dim}};
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  if (c.flag("swin_norm", false)) {
    for (Branch& branch : layer.branches) std::swap(branch.before, branch.after);
  }
  ModelSpec spec = decoder(n, layer);
  const Config words = nested(c, "vq_config");
  WordAutoencoder a = read_word_autoencoder(words, 128, {1, 1, 2, 2, 4});
  if (words.text("attn_type", "vanilla") != "vanilla") {
    words.fail("attn_type", "only \"vanilla\" is supported");
  }
  a.latents = words.size("latent_channels", 256);
  a.code = words.size("embed_dim", 256);
  const std::int64_t side = words.size("resolution", 512);
  for (const std::int64_t attended : words.sizes("attn_resolutions", {})) {
    for (std::size_t level = 0; level < a.attends.size(); ++level) {
      if (side >> level == attended) a.attends[level] = true;
    }
  }
  const std::string at = "model.vqmodel.";
  add_word_encoder(spec, a, at + "encoder.");
  add_table(spec, at + "quantize.embedding", words.size("num_embeddings", 8192), a.code);
  add_convolution(spec, at + "quant_conv", {a.code, a.latents, 1, 1}, true);
  add_convolution(spec, at + "post_quant_conv", {a.latents, a.code, 1, 1}, true);
  return spec;
}

}  // namespace

std::vector<Family> image_word_families() {
  return {{"ChameleonForConditionalGeneration", "chameleon", chameleon},
          {"JanusForConditionalGeneration", "janus", janus},
          {"Emu3ForConditionalGeneration", "emu3", emu3}};
}

}  // namespace shardsim::models
