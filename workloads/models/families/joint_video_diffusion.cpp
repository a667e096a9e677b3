// Transformers that take noise off latents of videos, in which rows of a video and of a text attend
// to each other: HunyuanVideo (arXiv:2412.03603) and CogVideoX (arXiv:2408.06072).
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/diffusion_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

// HunyuanVideo's blocks: image and text apart, then both as one stream in which attention and an
// MLP read the same.
struct HunyuanVideo {
  Draft& d;
  std::int64_t hidden = 0, ratio = 4;
  RowAttention attention{};

  [[nodiscard]] Ref refine(Ref x, Ref time) const {
    RowAttention plain = attention;
    plain.norm = NormKind::none;
    plain.turned.reset();
    const Ref rows = d.branch(d.norm(row_norm("norm1"), x));
    const Ref gates = d.linear({.name = "norm_out.linear", .out = 2 * hidden, .parts = 2},
                               d.activate("silu", time, "norm_out.nonlinearity"));
    x = gated(d, x, attend_rows(d, plain, rows, rows), {gates, 2}, 0);
    const Ref out = feed_forward(d, {.hidden = hidden, .width = 4 * hidden, .activation = "silu"},
                                 d.branch(d.norm(row_norm("norm2"), x)));
    return gated(d, x, out, {gates, 2}, 1);
  }

  [[nodiscard]] Ref mix(const std::string& suffix, Ref x, const Parts& by) const {
    const Ref rows = modulated(d, d.norm(plain_norm("norm2" + suffix), x), by, 3, 4);
    const Ref out =
        feed_forward(d, {.name = "ff" + suffix, .hidden = hidden, .width = ratio * hidden}, rows);
    return gated(d, x, out, by, 5);
  }

  [[nodiscard]] JointRows block(const JointRows& x, Ref time) const {
    const Parts image{modulation(d, "norm1", 6, hidden, time)};
    const Parts text{modulation(d, "norm1_context", 6, hidden, time)};
    const JointRows normed{
        modulated(d, d.norm(plain_norm("norm1.norm"), x.image), image, 0, 1),
        modulated(d, d.norm(plain_norm("norm1_context.norm"), x.text), text, 0, 1)};
    const JointRows out = attend_jointly(d,
                                         {.rows = attention,
                                          .order = JointOrder::image_first,
                                          .turn = JointTurn::image_only,
                                          .copies_parts = false},
                                         normed);
    return {mix("", gated(d, x.image, out.image, image, 2), image),
            mix("_context", gated(d, x.text, out.text, text, 2), text)};
  }

  [[nodiscard]] JointRows single(const JointRows& x, Ref time) const {
    const Ref stream = d.stream(d.behind({x.image, x.text}));
    const Parts by{modulation(d, "norm", 3, hidden, time), 3};
    const Ref normed = modulated(d, d.norm(plain_norm("norm.norm"), stream), by, 0, 1);
    // As many times as wide as all heads, which lie beside it in the next product.
    const Ref inner = d.activate(
        "gelu_pytorch_tanh",
        d.linear(
            {.name = "proj_mlp", .out = ratio * hidden, .heads = attention.heads, .parts = ratio},
            normed),
        "act_mlp");
    const Ref rows = d.behind({d.part_like(x.image, {}, normed), d.part_like(x.text, {}, normed)});
    const auto turned = [&](const char* module, const char* norm) {
      const Ref all = heads_of(d, attention, module, norm, rows);
      return d.behind({d.turn({.table = "rope.image"}, d.part_like(x.image, {}, all)),
                       d.part_like(x.text, {}, all)});
    };
    const Ref q = turned("to_q", "norm_q");
    const Ref k = turned("to_k", "norm_k");
    const Ref seen = d.attend_heads({}, q, k, heads_of(d, attention, "to_v", "", rows));
    const Ref both = d.behind({d.part_like(x.image, {}, seen), d.part_like(x.text, {}, seen)});
    const Ref out = d.linear({.name = "proj_out", .out = hidden}, d.beside({both, inner}));
    const Ref sum = gated(d, stream, out, by, 2);
    return {d.part_like(x.image, {}, sum), d.part_like(x.text, {}, sum)};
  }
};

// The text, refined by its mean and the time.
Ref hunyuan_text(const Config& c, Draft& d, const HunyuanVideo& net) {
  const std::int64_t text = c.size("text_embed_dim", 4096);
  Ref of_text = 0;
  Ref states = 0;
  {
    const Draft::In at(d, "context_embedder");
    const Ref rows =
        d.enter(RowsInput{.name = "encoder_hidden_states", .width = text, .is_text_long = true});
    of_text = time_and_text(d, "time_text_embed", net.hidden, false,
                            {.name = "mean_of_text", .width = text, .constant = true});
    states = d.stream(d.linear({.name = "proj_in", .out = net.hidden}, rows));
  }
  const std::int64_t refiners = layers_of(c, "num_refiner_layers", 2);
  for (std::int64_t i = 0; i < refiners; ++i) {
    d.layer("context_embedder.token_refiner.refiner_blocks", i, "refiner");
    states = net.refine(states, of_text);
  }
  return states;
}

ModelSpec hunyuan_video(const Config& c) {
  Draft d;
  const Canvas canvas = read_canvas(c, {33, 90, 160});  // of 129 frames of 720 x 1280
  const std::int64_t deep = c.size("patch_size_t", 1);
  const std::int64_t patch = c.size("patch_size", 2);
  const std::int64_t heads = c.size("num_attention_heads", 24);
  const std::int64_t head_dim = c.size("attention_head_dim", 128);
  const std::int64_t in = c.size("in_channels", 16);
  const std::int64_t out = c.optional_size("out_channels", 16).value_or(in);
  if (c.text("image_condition_type", "latent_concat") == "token_replace") {
    c.fail("image_condition_type", "\"token_replace\" is not supported");
  }
  const bool null_norm = c.json().json().contains("qk_norm") && !c.given("qk_norm");
  if (null_norm || c.text("qk_norm", "rms_norm") != "rms_norm")
    c.fail("qk_norm", "only \"rms_norm\" is supported");
  c.pass_over({"rope_theta", "rope_axes_dim"});
  if (canvas.frames % deep != 0) c.fail("patch_size_t", "does not divide the frames");
  const double ratio = c.ratio("mlp_ratio", 4);
  const HunyuanVideo net{.d = d,
                         .hidden = heads * head_dim,
                         .ratio = static_cast<std::int64_t>(ratio),
                         .attention = {.name = "attn",
                                       .heads = heads,
                                       .head_dim = head_dim,
                                       .norm = NormKind::rms_t5,
                                       .turned = Turned{.table = "rope"}}};
  if (static_cast<double>(net.ratio) != ratio)
    c.fail("mlp_ratio", "only whole numbers are supported");
  const std::int64_t pooled = c.size("pooled_projection_dim", 768);
  const Ref time = time_and_text(d, "time_text_embed", net.hidden, c.flag("guidance_embeds", true),
                                 {.name = "pooled_projections", .width = pooled});
  JointRows x;
  x.image = d.stream(
      video_rows(d, "x_embedder.proj", in, net.hidden, {deep, patch, patch}, canvas, false));
  x.text = hunyuan_text(c, d, net);
  const std::int64_t layers = layers_of(c, "num_layers", 20);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.block(x, time);
  }
  const std::int64_t single = layers_of(c, "num_single_layers", 40);
  for (std::int64_t i = 0; i < single; ++i) {
    d.layer("single_transformer_blocks", i, "single");
    x = net.single(x, time);
  }
  d.outside("head");
  const Ref rows = modulated_end(d, "norm_out", end_norm(net.hidden), x.image, time);
  d.sum_loss(d.linear({.name = "proj_out", .out = deep * patch * patch * out}, rows));
  d.note(
      fmt::format("{} blocks: joint attention of video and text, {} heads of {}; MLPs of {}; "
                  "all modulated; {} frames of latents",
                  layers, heads, head_dim, net.ratio * net.hidden, canvas.frames));
  d.note(fmt::format("{} blocks of one stream: attention and an MLP of the same rows", single));
  return drafted(d, {.side = canvas.rows, .coarsest = patch, .text = 256});
}

// A video's and a text's rows, modulated apart, attend and pass an MLP as one.
struct CogVideo {
  Draft& d;
  std::int64_t hidden = 0;
  RowAttention attention{};
  FeedForwardRows mlp{};
  Norm norm{};

  struct Modulated {
    JointRows rows{};
    Parts by{};
  };

  [[nodiscard]] Modulated modulate_both(const std::string& name, const JointRows& x,
                                        Ref time) const {
    const Parts by{modulation(d, name, 6, hidden, time)};
    const Draft::In in(d, name);
    const Ref image = modulated(d, d.norm(norm, x.image), by, 0, 1);
    const Ref text = modulated(d, d.norm(norm, x.text), by, 3, 4);
    return {{image, text}, by};
  }

  [[nodiscard]] JointRows onto(const JointRows& x, const Parts& by, Ref both) const {
    return {gated(d, x.image, d.part_like(x.image, {}, both), by, 2),
            gated(d, x.text, d.part_like(x.text, {}, both), by, 5)};
  }

  [[nodiscard]] JointRows block(JointRows x, Ref time) const {
    const Modulated first = modulate_both("norm1", x, time);
    const Ref rows = d.behind({first.rows.text, first.rows.image});
    const auto turned = [&](const char* module, const char* name) {
      const Ref all = heads_of(d, attention, module, name, rows);
      if (!attention.turned) return all;
      return d.behind(
          {d.part_like(x.text, {}, all), d.turn(*attention.turned, d.part_like(x.image, {}, all))});
    };
    const Ref q = turned("to_q", "norm_q");
    const Ref k = turned("to_k", "norm_k");
    const Ref seen =
        d.attend_heads({.by_heads = true}, q, k, heads_of(d, attention, "to_v", "", rows));
    Ref out = 0;
    {
      const Draft::In in(d, attention.name);
      out = d.linear({.name = attention.o, .out = hidden}, seen);
    }
    x = onto(x, first.by, out);
    const Modulated second = modulate_both("norm2", x, time);
    return onto(x, second.by,
                feed_forward(d, mlp, d.behind({second.rows.text, second.rows.image})));
  }
};

struct CogPatches {
  std::int64_t in = 0, hidden = 0, patch = 0, deep = 0;  // deep: frames of one; 0: a picture's
};

Ref cog_patches(const Config& c, Draft& d, const CogPatches& n, const Canvas& canvas) {
  if (n.deep == 0) {
    Convolve cut = patches("patch_embed.proj", n.hidden, n.patch);
    cut.bias = c.flag("patch_bias", true);
    return d.rows(d.convolve(cut, d.enter(PictureInput{.name = "latents",
                                                       .channels = n.in,
                                                       .frames = canvas.frames,
                                                       .aspect = {canvas.rows, canvas.columns}})));
  }
  c.pass_over({"patch_bias"});  // its linear one has a bias in any case
  const Ref rows = d.enter(RowsInput{.name = "latents",
                                     .width = n.in * n.patch * n.patch * n.deep,
                                     .constant = true,
                                     .patch = n.patch,
                                     .frames = canvas.frames / n.deep,
                                     .aspect = {canvas.rows, canvas.columns}});
  return d.linear({.name = "patch_embed.proj", .out = n.hidden}, rows);
}

Ref cog_positions(const Config& c, Draft& d, const Canvas& canvas, std::int64_t patch, Ref both) {
  const std::int64_t text = c.size("max_text_seq_length", 226);
  const bool learned = c.flag("use_learned_positional_embeddings", false);
  if (learned) {
    const std::int64_t rows = canvas.frames * (canvas.rows / patch) * (canvas.columns / patch);
    return d.table_of("patch_embed.pos_embedding", text + rows, /*buffered=*/true, both);
  }
  if (!c.flag("use_rotary_positional_embeddings", false)) {
    return d.constant_table("patch_embed.pos_embedding", both);
  }
  return both;
}

CogVideo cog_net(const Config& c, Draft& d, std::int64_t heads, std::int64_t head_dim) {
  const std::int64_t hidden = heads * head_dim;
  const double dropout = c.rate("dropout", 0);
  const bool affine = c.flag("norm_elementwise_affine", true);
  return {.d = d,
          .hidden = hidden,
          .attention = {.name = "attn1",
                        .heads = heads,
                        .head_dim = head_dim,
                        .bias = c.flag("attention_bias", true),
                        .norm = NormKind::layer,
                        .norm_bias = true,
                        .turned = c.flag("use_rotary_positional_embeddings", false)
                                      ? std::optional(Turned{.table = "rope", .given = true})
                                      : std::nullopt},
          .mlp = {.hidden = hidden,
                  .width = 4 * hidden,
                  .activation = activation_of(c, "activation_fn", "gelu-approximate"),
                  .dropout = dropout,
                  .last_dropout = dropout},
          .norm = affine ? row_norm("norm") : plain_norm("norm")};
}

ModelSpec cog_video(const Config& c) {
  Draft d;
  const std::int64_t ratio = c.size("temporal_compression_ratio", 4);
  const std::int64_t deep = c.optional_size("patch_size_t", std::nullopt).value_or(0);
  const std::int64_t patch = c.size("patch_size", 2);
  Canvas canvas{0, c.size("sample_height", 60), c.size("sample_width", 90)};
  canvas.frames = (c.size("sample_frames", 49) - 1) / ratio + 1;
  if (deep > 0) canvas.frames = (canvas.frames + deep - 1) / deep * deep;  // the pipeline adds them
  const std::int64_t heads = c.size("num_attention_heads", 30);
  const std::int64_t head_dim = c.size("attention_head_dim", 64);
  const std::int64_t hidden = heads * head_dim;
  const std::int64_t in = c.size("in_channels", 16);
  const std::int64_t out = c.optional_size("out_channels", 16).value_or(in);
  c.pass_over({"flip_sin_to_cos", "freq_shift", "norm_eps", "spatial_interpolation_scale",
               "temporal_interpolation_scale", "max_text_seq_length", "ofs_embed_dim"});
  if (c.given("ofs_embed_dim")) c.fail("ofs_embed_dim", "is not supported");

  const bool affine = c.flag("norm_elementwise_affine", true);
  const double dropout = c.rate("dropout", 0);
  const std::int64_t width = c.size("time_embed_dim", 512);
  const std::string activation = c.activation("timestep_activation_fn", "silu");
  const Ref time =
      two_products(d, "time_embedding", width,
                   d.enter(RowsInput{.name = "time_numbers", .width = hidden, .constant = true}),
                   true, activation);
  JointRows x;
  x.text = d.linear({.name = "patch_embed.text_proj", .out = hidden},
                    d.enter(RowsInput{.name = "encoder_hidden_states",
                                      .width = c.size("text_embed_dim", 4096),
                                      .is_text_long = true}));
  x.image = cog_patches(c, d, {in, hidden, patch, deep}, canvas);
  Ref both = d.behind({x.text, x.image});

  both = cog_positions(c, d, canvas, patch, both);
  both = d.drop(dropout, both);
  x = {d.part_like(x.image, {}, both), d.part_like(x.text, {}, both)};
  const CogVideo net = cog_net(c, d, heads, head_dim);
  const std::int64_t layers = layers_of(c, "num_layers", 30);
  for (std::int64_t i = 0; i < layers; ++i) {
    d.layer("transformer_blocks", i, "block");
    x = net.block(x, time);
  }
  d.outside("head");
  Norm last = affine ? row_norm("norm") : plain_norm("norm");
  last.weight_shape = {hidden};
  Norm final_norm = net.norm;
  final_norm.name = "norm_final";
  const Ref rows = modulated_end(d, "norm_out", last, d.norm(final_norm, x.image), time, true,
                                 /*shift_first=*/true);
  d.sum_loss(
      d.linear({.name = "proj_out", .out = patch * patch * (deep > 0 ? deep : 1) * out}, rows));
  d.note(
      fmt::format("{} blocks: attention of video and text as one, {} heads of {}; an MLP of "
                  "{}; modulated apart; {} frames of latents",
                  layers, heads, head_dim, 4 * hidden, canvas.frames));
  return drafted(
      d, {.side = canvas.rows, .coarsest = patch, .text = c.size("max_text_seq_length", 226)});
}

}  // namespace

std::vector<Family> joint_video_diffusion_families() {
  return {{"HunyuanVideoTransformer3DModel", "hunyuan_video", hunyuan_video},
          {"CogVideoXTransformer3DModel", "cogvideox", cog_video}};
}

}  // namespace shardsim::models
