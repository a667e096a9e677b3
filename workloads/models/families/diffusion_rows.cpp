#include "workloads/models/families/diffusion_rows.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "workloads/networks/rows.hpp"

namespace shardsim::models {

Ref two_products(Draft& d, const std::string& name, std::int64_t width, Ref x, bool bias,
                 const std::string& activation) {
  const Draft::In in(d, name);
  x = d.linear({.name = "linear_1", .out = width, .bias = bias}, x);
  return d.linear({.name = "linear_2", .out = width, .bias = bias}, d.activate(activation, x));
}

Ref time_embedding(Draft& d, const std::string& name, std::int64_t numbers, std::int64_t width,
                   bool bias) {
  const Ref time =
      d.enter(RowsInput{.name = name + ".numbers", .width = numbers, .constant = true});
  return two_products(d, name, width, time, bias);
}

Ref time_and_text(Draft& d, const std::string& name, std::int64_t hidden, bool guidance,
                  const RowsInput& pooled) {
  constexpr std::int64_t numbers = 256;
  const Draft::In in(d, name);
  const Ref time = time_embedding(d, "timestep_embedder", numbers, hidden);
  const Ref text = two_products(d, "text_embedder", hidden, d.enter(pooled));
  if (!guidance) return d.sum(time, text);
  return d.sum(d.sum(time, time_embedding(d, "guidance_embedder", numbers, hidden)), text);
}

Ref modulation(Draft& d, const std::string& name, std::int64_t parts, std::int64_t hidden,
               Ref condition, bool bias) {
  const Draft::In in(d, name);
  return d.linear({.name = "linear", .out = parts * hidden, .bias = bias, .parts = parts},
                  d.activate("silu", condition, "silu"));
}

Ref modulated(Draft& d, Ref x, const Parts& by, std::int64_t shift, std::int64_t scale) {
  const Ref factor = d.scaled(d.width_part(scale, by.of, by.all));
  const Ref product = d.product(x, factor);
  return d.branch(d.sum(product, d.width_part(shift, by.of, by.all)));
}

Ref gated(Draft& d, Ref x, Ref out, const Parts& by, std::int64_t gate) {
  return d.stream(d.sum(x, d.product(out, d.width_part(gate, by.of, by.all))));
}

Ref gated_first(Draft& d, Ref x, Ref out, const Parts& by, std::int64_t gate) {
  return d.stream(d.sum(d.product(out, d.width_part(gate, by.of, by.all)), x));
}

Norm end_norm(std::int64_t hidden) {
  Norm norm = plain_norm("norm");
  norm.weight_shape = {hidden};
  return norm;
}

Ref modulated_end(Draft& d, const std::string& name, const Norm& norm, Ref x, Ref condition,
                  bool bias, bool shift_first) {
  constexpr std::int64_t parts = 2;
  const Draft::In in(d, name);
  // Parts are as wide as the rows: the caller's norm says how wide.
  const Ref by = d.linear(
      {.name = "linear", .out = parts * norm.weight_shape.at(0), .bias = bias, .parts = parts},
      d.activate("silu", condition, "silu"));
  Norm plain = norm;
  plain.weight_shape.clear();
  return modulated(d, d.norm(plain, x), {by, parts}, shift_first ? 0 : 1, shift_first ? 1 : 0);
}

Ref heads_of(Draft& d, const RowAttention& a, const std::string& module, const std::string& norm,
             Ref x) {
  const Draft::In in(d, a.name);
  const std::int64_t kv_heads = a.kv_heads > 0 ? a.kv_heads : a.heads;
  const std::int64_t heads = module == a.q ? a.heads : kv_heads;
  x = d.linear({.name = module,
                .out = heads * a.head_dim,
                .bias = a.bias,
                .heads = heads,
                .kv_heads = kv_heads},
               x);
  if (a.norm == NormKind::none || norm.empty()) return x;
  return d.norm({a.norm, norm, a.norm_bias}, x, a.norm_whole);
}

namespace {

Ref turned_if(Draft& d, bool turns, const RowAttention& a, const std::string& table, Ref x) {
  if (!turns || !a.turned) return x;
  Turned how = *a.turned;
  how.table += table;
  if (table != ".text") how.of = 0;
  return d.turn(how, x);
}

Ref projected(Draft& d, const RowAttention& a, const std::string& module, Ref x) {
  const Draft::In in(d, a.name);
  x = d.linear({.name = module, .out = a.out > 0 ? a.out : a.width(), .bias = a.o_bias}, x);
  return d.drop(a.dropout, x);
}

}  // namespace

Ref attend_rows(Draft& d, const RowAttention& a, Ref x, Ref states) {
  Ref q = heads_of(d, a, a.q, "norm_q", x);
  Ref k = heads_of(d, a, a.k, "norm_k", states);
  const Ref v = heads_of(d, a, a.v, "", states);
  q = turned_if(d, true, a, "", q);
  k = turned_if(d, true, a, "", k);
  const AttendHeads how{.by_heads = a.by_heads, .repeats = a.kv_heads > 0};
  return projected(d, a, a.o, d.attend_heads(how, q, k, v));
}

Ref attend_linearly(Draft& d, const RowAttention& a, Ref x) {
  const Ref q = heads_of(d, a, a.q, "norm_q", x);
  const Ref k = heads_of(d, a, a.k, "norm_k", x);
  return projected(d, a, a.o, d.attend_linearly(q, k, heads_of(d, a, a.v, "", x)));
}

JointRows attend_jointly(Draft& d, const JointAttention& a, const JointRows& x) {
  const RowAttention& r = a.rows;
  const bool of_image = a.turn == JointTurn::both_before || a.turn == JointTurn::image_only;
  const bool of_text = a.turn == JointTurn::both_before;
  const auto both = [&](const std::string& image, const std::string& image_norm,
                        const std::string& text, const std::string& text_norm, bool turns) {
    Ref first = heads_of(d, r, image, image_norm, x.image);
    Ref second = heads_of(d, r, text, text_norm, x.text);
    first = turned_if(d, turns && of_image, r, ".image", first);
    second = turned_if(d, turns && of_text, r, ".text", second);
    if (a.order == JointOrder::text_first) std::swap(first, second);
    return turned_if(d, turns && a.turn == JointTurn::both_joined, r, "",
                     d.behind({first, second}));
  };
  const Ref q = both(r.q, "norm_q", a.text_q, a.text_q_norm, true);
  const Ref k = both(r.k, "norm_k", a.text_k, a.text_k_norm, true);
  const Ref v = both(r.v, "", a.text_v, "", false);
  const Ref out = d.attend_heads({.by_heads = r.by_heads}, q, k, v);
  JointRows made;
  const RowsPart part{.copied = a.copies_parts};
  if (a.keeps_text) made.text = projected(d, r, a.text_o, d.part_like(x.text, part, out));
  made.image = projected(d, r, r.o, d.part_like(x.image, part, out));
  return made;
}

Ref feed_forward(Draft& d, const FeedForwardRows& f, Ref x) {
  const Draft::In in(d, f.name);
  if (!f.gate) {
    x = d.linear({.name = "net.0.proj", .out = f.width, .bias = f.bias, .inner = true}, x);
    x = d.activate(f.activation, x, "net.0");
  } else {
    const Ref all = d.linear(
        {.name = "net.0.proj", .out = 2 * f.width, .bias = f.bias, .inner = true, .parts = 2}, x);
    const Ref gate = d.activate(f.activation, d.width_part(1, 2, all), "net.0");
    x = d.product(d.width_part(0, 2, all), gate);
  }
  x = d.linear({.name = "net.2", .out = f.hidden, .bias = f.bias}, d.drop(f.dropout, x));
  return d.drop(f.last_dropout, x);
}

Ref silu_gated(Draft& d, const std::string& up, const std::string& down, std::int64_t width,
               std::int64_t hidden, bool bias, Ref x) {
  const Ref all =
      d.linear({.name = up, .out = 2 * width, .bias = bias, .inner = true, .parts = 2}, x);
  const Ref gate = d.activate("silu", d.width_part(0, 2, all));
  return d.linear({.name = down, .out = hidden, .bias = bias},
                  d.product(gate, d.width_part(1, 2, all)));
}

std::string activation_of(const Config& c, std::string_view key, std::string_view otherwise) {
  static const std::map<std::string, std::string, std::less<>> known = {
      {"gelu-approximate", "gelu_pytorch_tanh"}, {"gelu", "gelu"}, {"silu", "silu"}};
  const std::string named = c.text(key, otherwise);
  const auto found = known.find(named);
  if (found == known.end()) {
    c.fail(key,
           fmt::format("\"{}\" is not supported; supported are gelu, gelu-approximate and silu",
                       named));
  }
  return found->second;
}

std::int64_t layers_of(const Config& c, std::string_view key, std::int64_t otherwise) {
  return c.given(key) ? c.layers(key, otherwise) : otherwise;
}

// Patches of a few frames each as rows; a convolution whose step is its size.
Ref video_rows(Draft& d, const std::string& name, std::int64_t channels, std::int64_t hidden,
               const std::vector<std::int64_t>& patch, const Canvas& canvas, bool copied) {
  const Ref video = d.enter(PictureInput{.name = "latents",
                                         .channels = channels,
                                         .frames = canvas.frames,
                                         .aspect = {canvas.rows, canvas.columns}});
  Convolve cut = patches(name, hidden, patch[1]);
  cut.tubelet = patch[0];
  const Ref places = d.convolve(cut, video);
  return copied ? d.copied_rows(places) : d.rows(places);
}

ModelSpec drafted(Draft& d, Blueprint about) {
  ModelSpec spec;
  about.sequences = true;
  spec.network = d.finish(std::move(about));
  spec.head.kind = HeadKind::none;
  return spec;
}

Canvas read_canvas(const Config& c, Canvas usual) {
  usual.frames = c.size("sample_frames", usual.frames);
  usual.rows = c.size("sample_height", usual.rows);
  usual.columns = c.size("sample_width", usual.columns);
  return usual;
}

}  // namespace shardsim::models
