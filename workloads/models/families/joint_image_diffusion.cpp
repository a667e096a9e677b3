// Transformers that take noise off latents of images, in which an image's and a text's rows attend
// to each other, under diffusers' names: Stable Diffusion 3 and 3.5 (MMDiT, arXiv:2403.03206),
// FLUX.1, AuraFlow.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

Ref text_input(Draft& d, std::int64_t width) {
  return d.enter(RowsInput{.name = "encoder_hidden_states", .width = width, .is_text_long = true});
}

// A block of both rows, each with its own norms and MLP: SD3's and FLUX.1's.
struct JointBlock {
  Draft& d;
  std::int64_t hidden = 0;
  JointAttention attention{};

  [[nodiscard]] Ref mix(const std::string& suffix, Ref x, const Parts& by) const {
    const Ref rows = modulated(d, d.norm(plain_norm("norm2" + suffix), x), by, 3, 4);
    const Ref out =
        feed_forward(d, {.name = "ff" + suffix, .hidden = hidden, .width = 4 * hidden}, rows);
    return gated(d, x, out, by, 5);
  }

  // `dual`: the image's rows attend among themselves once more. The last block drops the text.
  [[nodiscard]] JointRows run(JointRows x, Ref condition, bool dual, bool last) const {
    const std::int64_t parts = dual ? 9 : 6;
    const Parts image{modulation(d, "norm1", parts, hidden, condition), parts};
    const Ref plain = d.norm(plain_norm("norm1.norm"), x.image);
    JointRows normed;
    normed.image = modulated(d, plain, image, 0, 1);
    const Ref again = dual ? modulated(d, plain, image, 6, 7) : 0;
    const std::int64_t text_parts = last ? 2 : 6;
    const Parts text{modulation(d, "norm1_context", text_parts, hidden, condition), text_parts};
    normed.text = modulated(d, d.norm(plain_norm("norm1_context.norm"), x.text), text, last ? 1 : 0,
                            last ? 0 : 1);
    JointAttention joint = attention;
    joint.keeps_text = !last;
    const JointRows out = attend_jointly(d, joint, normed);
    x.image = gated(d, x.image, out.image, image, 2);
    if (dual) {
      RowAttention among = attention.rows;
      among.name = "attn2";
      among.by_heads = false;
      x.image = gated(d, x.image, attend_rows(d, among, again, again), image, 8);
    }
    x.image = mix("", x.image, image);
    if (last) return x;
    x.text = mix("_context", gated(d, x.text, out.text, text, 2), text);
    return x;
  }
};

ModelSpec sd3(const Config& c) {
  Draft d;
  const std::int64_t side = c.size("sample_size", 128);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 18);
  const std::int64_t head_dim = c.size("attention_head_dim", 64);
  const std::int64_t hidden = heads * head_dim;
  if (c.given("qk_norm") && c.text("qk_norm", "rms_norm") != "rms_norm") {
    c.fail("qk_norm", "only \"rms_norm\" is supported");
  }
  if (c.size("caption_projection_dim", 1152) != hidden) {
    c.fail("caption_projection_dim", "is not num_attention_heads * attention_head_dim");
  }
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  const std::int64_t positions = c.size("pos_embed_max_size", 96);
  JointRows x;
  const Ref latents = d.image(c.size("in_channels", 16));
  x.image =
      d.stream(d.table_of("pos_embed.pos_embed", positions * positions, /*buffered=*/true,
                          d.rows(d.convolve(patches("pos_embed.proj", hidden, patch), latents))));
  const Ref condition =
      time_and_text(d, "time_text_embed", hidden, /*guidance=*/false,
                    {.name = "pooled_projections", .width = c.size("pooled_projection_dim", 2048)});
  x.text = d.stream(d.linear({.name = "context_embedder", .out = hidden},
                             text_input(d, c.size("joint_attention_dim", 4096))));
  const JointBlock block{
      .d = d,
      .hidden = hidden,
      .attention = {.rows = {.name = "attn",
                             .heads = heads,
                             .head_dim = head_dim,
                             .norm = c.given("qk_norm") ? NormKind::rms_t5 : NormKind::none,
                             .by_heads = true},
                    .order = JointOrder::image_first,
                    .copies_parts = false}};
  const std::vector<std::int64_t> dual = c.integers("dual_attention_layers");
  const std::int64_t layers = layers_of(c, "num_layers", 18);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    const bool twice = std::find(dual.begin(), dual.end(), i) != dual.end();
    x = block.run(x, condition, twice, i + 1 == layers);
  }
  d.outside("head");
  const Ref rows = modulated_end(d, "norm_out", end_norm(hidden), x.image, condition);
  d.sum_loss(
      d.linear({.name = "proj_out", .out = patch * patch * c.size("out_channels", 16)}, rows));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}{}; MLPs of {}; all "
                  "modulated; {} attend twice",
                  layers, heads, head_dim, c.given("qk_norm") ? ", queries and keys normed" : "",
                  4 * hidden, dual.size()));
  return drafted(d, {.side = side, .coarsest = patch, .text = 333});  // CLIP's 77 and T5's 256
}

// Both rows as one: attention and an MLP read the same, and one product puts both onto the rows.
template <class Modulate>
JointRows flux_single(const JointBlock& block, const JointRows& x, const Modulate& modulate,
                      bool last) {
  Draft& d = block.d;
  constexpr std::int64_t ratio = 4;
  const RowAttention& a = block.attention.rows;
  const Ref stream = d.stream(d.behind({x.text, x.image}));
  const Parts by = modulate();
  const Ref rows = modulated(d, d.norm(plain_norm("norm.norm"), stream), by, 0, 1);
  const LinearStep wide{
      .name = "proj_mlp", .out = ratio * block.hidden, .heads = a.heads, .parts = ratio};
  const Ref inner = d.activate("gelu_pytorch_tanh", d.linear(wide, rows), "act_mlp");
  const Ref q = d.turn(*a.turned, heads_of(d, a, "to_q", "norm_q", rows));
  const Ref k = d.turn(*a.turned, heads_of(d, a, "to_k", "norm_k", rows));
  const Ref seen = d.attend_heads({}, q, k, heads_of(d, a, "to_v", "", rows));
  const Ref out = d.linear({.name = "proj_out", .out = block.hidden}, d.beside({seen, inner}));
  const Ref sum = gated(d, stream, out, by, 2);
  JointRows parts;
  parts.image = d.part_like(x.image, {}, sum);
  if (!last) parts.text = d.part_like(x.text, {}, sum);
  return parts;
}

// What FLUX.1 and what is made of it have in common.
struct FluxSizes {
  std::int64_t in = 0, out = 0, heads = 0, head_dim = 0, hidden = 0, layers = 0, single = 0;
};

FluxSizes flux_sizes(const Config& c) {
  FluxSizes n;
  n.in = c.size("in_channels", 64);
  n.out = c.optional_size("out_channels", n.in).value_or(n.in);
  n.heads = c.size("num_attention_heads", 24);
  n.head_dim = c.size("attention_head_dim", 128);
  n.hidden = n.heads * n.head_dim;
  n.layers = layers_of(c, "num_layers", 19);
  n.single = c.size("num_single_layers", 38);
  if (c.size("patch_size", 1) != 1) c.fail("patch_size", "only 1 is supported: rows come packed");
  std::int64_t turned = 0;
  for (const std::int64_t dims : c.sizes("axes_dims_rope", {16, 56, 56})) turned += dims;
  if (turned != n.head_dim) c.fail("axes_dims_rope", "does not add up to attention_head_dim");
  return n;
}

Ref flux_image(Draft& d, const FluxSizes& n) {
  const Ref rows = d.enter(RowsInput{.name = "hidden_states", .width = n.in, .patch = 2});
  return d.stream(d.linear({.name = "x_embedder", .out = n.hidden}, rows));
}
Ref flux_text(const Config& c, Draft& d, const FluxSizes& n) {
  return d.stream(d.linear({.name = "context_embedder", .out = n.hidden},
                           text_input(d, c.size("joint_attention_dim", 4096))));
}

JointBlock flux_block(Draft& d, const FluxSizes& n) {
  return {.d = d,
          .hidden = n.hidden,
          .attention = {.rows = {.name = "attn",
                                 .heads = n.heads,
                                 .head_dim = n.head_dim,
                                 .norm = NormKind::rms_fused,
                                 .turned = Turned{.table = "rope"}},
                        .turn = JointTurn::both_joined}};
}

ModelSpec flux(const Config& c) {
  Draft d;
  const FluxSizes n = flux_sizes(c);
  JointRows x;
  x.image = flux_image(d, n);
  const Ref condition =
      time_and_text(d, "time_text_embed", n.hidden, c.flag("guidance_embeds", false),
                    {.name = "pooled_projections", .width = c.size("pooled_projection_dim", 768)});
  x.text = flux_text(c, d, n);
  const JointBlock block = flux_block(d, n);
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = block.run(x, condition, /*dual=*/false, /*last=*/false);
  }
  for (std::int64_t i = 0; i < n.single; ++i) {
    d.layer("single_transformer_blocks", i, "single");
    const auto by = [&] { return Parts{modulation(d, "norm", 3, n.hidden, condition), 3}; };
    x = flux_single(block, x, by, i + 1 == n.single);
  }
  d.outside("head");
  const Ref rows = modulated_end(d, "norm_out", end_norm(n.hidden), x.image, condition);
  d.sum_loss(d.linear({.name = "proj_out", .out = n.out}, rows));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}, queries and keys "
                  "normed; MLPs of {}; all modulated",
                  n.layers, n.heads, n.head_dim, 4 * n.hidden));
  d.note(fmt::format("{} blocks of one stream: attention and an MLP of the same rows", n.single));
  return drafted(d, {.side = 128, .coarsest = 2, .text = 512});  // the pipeline's
}

// FLUX.1 without its modulations' products: one small network makes all numbers at once, a row for
// each vector, of which blocks read some (Chroma).
struct Chroma {
  Draft& d;
  const JointBlock& block;
  Ref rows = 0;

  [[nodiscard]] Ref some(std::int64_t first, std::int64_t count) const {
    return d.part({.first = first, .count = count}, rows);
  }

  [[nodiscard]] JointRows both(JointRows x, std::int64_t of_image, std::int64_t of_text) const {
    constexpr std::int64_t parts = 6;
    const Ref read = d.behind({some(of_image, parts), some(of_text, parts)});
    const Parts image{d.flattened(d.part({.first = 0, .count = parts}, read)), parts};
    const Parts text{d.flattened(d.part({.first = parts, .count = parts}, read)), parts};
    const JointRows normed{
        modulated(d, d.norm(plain_norm("norm1.norm"), x.image), image, 0, 1),
        modulated(d, d.norm(plain_norm("norm1_context.norm"), x.text), text, 0, 1)};
    const JointRows out = attend_jointly(d, block.attention, normed);
    x.image = block.mix("", gated(d, x.image, out.image, image, 2), image);
    x.text = block.mix("_context", gated(d, x.text, out.text, text, 2), text);
    return x;
  }
};

Ref chroma_numbers(const Config& c, Draft& d, std::int64_t hidden, std::int64_t rows) {
  const Draft::In in(d, "distilled_guidance_layer");
  const std::int64_t width = c.size("approximator_hidden_dim", 5120);
  // Its four halves: the time, the guidance, and twice as many numbers of the row.
  const std::int64_t numbers = c.size("approximator_num_channels", 64);
  Ref x = d.linear(
      {.name = "in_proj", .out = width},
      d.enter(RowsInput{.name = "numbers", .rows = rows, .width = numbers, .constant = true}));
  const std::int64_t layers = c.size("approximator_layers", 5);
  for (std::int64_t i = 0; i < layers; ++i) {
    const Ref normed = d.norm({NormKind::rms_fused, fmt::format("norms.{}", i)}, x);
    x = d.sum(x, two_products(d, fmt::format("layers.{}", i), width, normed));
  }
  return d.linear({.name = "out_proj", .out = hidden}, x);
}

ModelSpec chroma(const Config& c) {
  Draft d;
  const FluxSizes n = flux_sizes(c);
  constexpr std::int64_t each = 6, of_single = 3, of_end = 2;
  const std::int64_t of_text = of_single * n.single + each * n.layers;
  const std::int64_t all = of_text + each * n.layers + of_end;
  JointRows x;
  x.image = flux_image(d, n);
  const Ref rows = chroma_numbers(c, d, n.hidden, all);
  x.text = flux_text(c, d, n);
  const JointBlock block = flux_block(d, n);
  const Chroma net{.d = d, .block = block, .rows = rows};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.both(x, of_single * n.single + each * i, of_text + each * i);
  }
  for (std::int64_t i = 0; i < n.single; ++i) {
    d.layer("single_transformer_blocks", i, "single");
    const std::int64_t first = of_single * i;
    const auto by = [&] { return Parts{d.flattened(net.some(first, of_single)), of_single}; };
    x = flux_single(block, x, by, i + 1 == n.single);
  }
  d.outside("head");
  const Parts by{d.flattened(net.some(all - of_end, of_end)), of_end};
  const Ref end = modulated(d, d.norm(plain_norm("norm_out.norm"), x.image), by, 0, 1);
  d.sum_loss(d.linear({.name = "proj_out", .out = n.out}, end));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}; {} blocks of one "
                  "stream; {} vectors that modulate, of one network",
                  n.layers, n.heads, n.head_dim, n.single, all));
  return drafted(d, {.side = 128, .coarsest = 2, .text = 512});  // the pipeline's
}

// Norms in fp32, no biases; learned rows before the text.
struct AuraFlow {
  Draft& d;
  std::int64_t hidden = 0, mlp = 0;
  RowAttention attention{};

  [[nodiscard]] Ref normed(const std::string& name, Ref x) const {
    return d.norm({NormKind::layer_plain, name}, x);
  }

  [[nodiscard]] Ref onto(const std::string& suffix, Ref x, Ref out, const Parts& by) const {
    const Ref rows = modulated(d, normed("norm2" + suffix, gated(d, x, out, by, 2)), by, 3, 4);
    const Draft::In in(d, "ff" + suffix);
    const Ref gate = d.activate(
        "silu", d.linear({.name = "linear_1", .out = mlp, .bias = false, .inner = true}, rows));
    const Ref up = d.linear({.name = "linear_2", .out = mlp, .bias = false, .inner = true}, rows);
    const Ref mixed =
        d.linear({.name = "out_projection", .out = hidden, .bias = false}, d.product(gate, up));
    return gated(d, x, mixed, by, 5);
  }

  [[nodiscard]] JointRows block(const JointRows& x, Ref time) const {
    const Parts image{modulation(d, "norm1", 6, hidden, time, /*bias=*/false)};
    const Parts text{modulation(d, "norm1_context", 6, hidden, time, /*bias=*/false)};
    const JointRows rows{modulated(d, normed("norm1.norm", x.image), image, 0, 1),
                         modulated(d, normed("norm1_context.norm", x.text), text, 0, 1)};
    const JointRows out = attend_jointly(d, {.rows = attention, .copies_parts = false}, rows);
    return {onto("", x.image, out.image, image), onto("_context", x.text, out.text, text)};
  }

  [[nodiscard]] Ref single(Ref x, Ref time) const {
    const Parts by{modulation(d, "norm1", 6, hidden, time, /*bias=*/false)};
    const Ref rows = modulated(d, normed("norm1.norm", x), by, 0, 1);
    return onto("", x, attend_rows(d, attention, rows, rows), by);
  }
};

Ref aura_patches(const Config& c, Draft& d, std::int64_t hidden, std::int64_t patch) {
  const Ref cut = d.enter(RowsInput{.name = "patches",
                                    .width = patch * patch * c.size("in_channels", 4),
                                    .constant = true,
                                    .patch = patch});
  return d.stream(d.table_of("pos_embed.pos_embed", c.size("pos_embed_max_size", 1024),
                             /*buffered=*/false,
                             d.linear({.name = "pos_embed.proj", .out = hidden}, cut)));
}

ModelSpec aura_flow(const Config& c) {
  Draft d;
  constexpr std::int64_t learned_rows = 8;
  constexpr std::int64_t multiple = 256;
  const std::int64_t side = c.size("sample_size", 64);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 12);
  const std::int64_t head_dim = c.size("attention_head_dim", 256);
  const std::int64_t hidden = heads * head_dim;
  static_cast<void>(c.divided("sample_size", side, "patch_size", patch));
  if (c.size("caption_projection_dim", 3072) != hidden) {
    c.fail("caption_projection_dim", "is not num_attention_heads * attention_head_dim");
  }
  const AuraFlow net{.d = d,
                     .hidden = hidden,
                     .mlp = (8 * hidden / 3 + multiple - 1) / multiple * multiple,
                     .attention = {.name = "attn",
                                   .heads = heads,
                                   .head_dim = head_dim,
                                   .bias = false,
                                   .o_bias = false,
                                   .norm = NormKind::layer_plain}};
  JointRows x;
  x.image = aura_patches(c, d, hidden, patch);
  const Ref time = time_embedding(d, "time_step_proj", 256, hidden);
  x.text = d.linear({.name = "context_embedder", .out = hidden, .bias = false},
                    text_input(d, c.size("joint_attention_dim", 2048)));
  x.text = d.stream(d.before("register_tokens", x.text, learned_rows));
  const JointRows entered = x;
  const std::int64_t layers = layers_of(c, "num_mmdit_layers", 4);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("joint_transformer_blocks", i, "block");
    x = net.block(x, time);
  }
  const std::int64_t single = c.count("num_single_dit_layers", 32);
  if (single > 0) {
    d.outside("joined");
    Ref rows = d.stream(d.behind({x.text, x.image}));
    for (std::int64_t i = 0; i < single; ++i) {
      d.layer("single_transformer_blocks", i, "single");
      rows = net.single(rows, time);
    }
    d.outside("head");
    x.image = d.part_like(entered.image, {}, rows);
  } else {
    d.outside("head");
  }
  const Ref by = d.linear({.name = "norm_out.linear", .out = 2 * hidden, .bias = false, .parts = 2},
                          d.activate("silu", time, "norm_out.silu"));
  const std::int64_t out = patch * patch * c.size("out_channels", 4);
  d.sum_loss(d.linear({.name = "proj_out", .out = out, .bias = false},
                      modulated(d, x.image, {by, 2}, 1, 0)));
  d.note(
      fmt::format("{} blocks: joint attention of image and text, {} heads of {}, queries and "
                  "keys normed; gated MLPs of {}; all modulated",
                  layers, heads, head_dim, net.mlp));
  d.note(fmt::format("{} blocks of one stream", single));
  return drafted(d, {.side = side, .coarsest = patch, .text = 256});
}

}  // namespace

std::vector<Family> joint_image_diffusion_families() {
  return {{"SD3Transformer2DModel", "sd3", sd3},
          {"FluxTransformer2DModel", "flux", flux},
          {"ChromaTransformer2DModel", "chroma", chroma},
          {"AuraFlowTransformer2DModel", "auraflow", aura_flow}};
}

}  // namespace shardsim::models
