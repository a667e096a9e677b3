#include "workloads/layers/local_attention.hpp"

#include <fmt/format.h>

#include <vector>

namespace shardsim::models {
namespace {

struct LocalAxes {
  LocalAxes(const Sketch& s, const LocalAttention& a)
      : heads(heads_axis(a.heads)),
        dim{"head_dim", a.head_dim},
        blocks{"blocks", (s.tokens() + a.radius) / (a.radius + 1)},
        rows{"block", a.radius + 1},
        sums{"sums", a.global_block > 0 ? s.tokens() / a.global_block : 0},
        near{"three_blocks", 3 * (a.radius + 1)},
        keys{"block_keys", near.size + sums.size} {}

  [[nodiscard]] bool has_sums() const { return sums.size > 0; }

  Axis heads, dim, blocks, rows, sums, near, keys;
};

class LocalSketch {
 public:
  LocalSketch(Sketch& s, const LocalAttention& a) : s_(s), a_(a), n_(s, a) {}

  // Of itself and both neighbours, and of the sums of all blocks.
  Node keys_of(const std::string& name, Node x, Node sums) {
    const Node rows = s_.linear({name}, x, {n_.heads, n_.dim});
    if (sums == no_node) {
      return s_.copy(rows, {s_.batch(), n_.blocks, n_.heads, n_.keys, n_.dim});
    }
    const Axes near{s_.batch(), n_.blocks, n_.heads, n_.near, n_.dim};
    const Node of_sums = s_.linear({name}, sums, {n_.heads, n_.dim});
    const Axes for_all{s_.batch(), n_.blocks, n_.heads, n_.sums, n_.dim};
    return s_.join({s_.view(rows, near), s_.expand(of_sums, for_all)},
                   {s_.batch(), n_.blocks, n_.heads, n_.keys, n_.dim});
  }

  Node sums_of(Node x) {
    const Node which = s_.constant(DType::bf16, {s_.batch(), s_.sequence(), n_.sums});
    const Axis hidden = s_.axes_of(x).back();
    return s_.norm({NormKind::rms_t5, "global_input_layer_norm"},
                   s_.product("sums", x, which, {s_.batch(), n_.sums, hidden}), {hidden});
  }

  Node attend(Node q, Node k, Node v, Node bias) {
    const Node rows = s_.copy(q, {s_.batch(), n_.blocks, n_.heads, n_.rows, n_.dim});
    const Axes scores{s_.batch(), n_.blocks, n_.heads, n_.rows, n_.keys};
    const Node all = s_.add(s_.product("scores", rows, k, scores), bias);
    const Node p = s_.dropout(a_.dropout, s_.softmax(all, n_.keys, /*fp32=*/true));
    return s_.product("context", p, v, {s_.batch(), n_.blocks, n_.rows, n_.heads, n_.dim});
  }

 private:
  Sketch& s_;
  const LocalAttention& a_;
  LocalAxes n_;
};

}  // namespace

Node draw_bias(Sketch& s, const LocalAttention& a) {
  const Sketch::In in(s, a.name);
  const LocalAxes n(s, a);
  const Axis buckets{"distances", a.buckets};
  const Axis seen = n.has_sums() ? n.near : n.keys;
  const Node near = s.look_up("relative_attention_bias", {buckets, n.heads}, {n.rows, seen},
                              {n.rows, seen, n.heads});
  const Axes all{s.batch(), n.blocks, n.heads, n.rows, n.keys};
  if (!n.has_sums()) return near;
  const Node far =
      s.look_up("global_relative_attention_bias", {buckets, n.heads},
                {s.batch(), s.sequence(), n.sums}, {s.batch(), s.sequence(), n.sums, n.heads});
  return s.join({s.expand(near, {s.batch(), n.blocks, n.heads, n.rows, n.near}),
                 s.view(far, {s.batch(), n.blocks, n.heads, n.rows, n.sums})},
                all);
}

Node draw(Sketch& s, const LocalAttention& a, Node x) {
  const LocalAxes n(s, a);
  const Axes of_bias = n.has_sums() ? Axes{s.batch(), n.blocks, n.heads, n.rows, n.keys}
                                    : Axes{n.heads, n.rows, n.keys};
  const Node bias = s.handed(local_bias, of_bias, a.buckets > 0,
                             [&](Sketch& sketch) { return draw_bias(sketch, a); });
  const Sketch::In in(s, a.name);
  LocalSketch local(s, a);
  const bool sums = a.global_block > 0;
  const Node of_sums = n.has_sums() ? local.sums_of(x) : no_node;
  if (sums && !n.has_sums())
    s.idle_parameter("global_input_layer_norm.weight", {s.axes_of(x).back()});
  const Node q = s.linear({"q"}, x, {n.heads, n.dim});
  const Node k = local.keys_of("k", x, of_sums);
  const Node v = local.keys_of("v", x, of_sums);
  const Node context = s.lies(local.attend(q, k, v, bias));
  const Node rows = s.view(context, {s.batch(), s.sequence(), n.heads, n.dim});
  const bool padded = n.blocks.size * n.rows.size > s.tokens();
  return s.linear({"o", false, 2}, padded ? s.lies_by_example(rows) : rows, {s.axes_of(x).back()});
}

std::string to_text(const LocalAttention& a) {
  std::string text = fmt::format("attention of neighbours, {} heads of {}, blocks of {}", a.heads,
                                 a.head_dim, a.radius + 1);
  if (a.global_block > 0) text += fmt::format(", sums of {}", a.global_block);
  return text;
}

}  // namespace shardsim::models
