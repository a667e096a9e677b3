#include "workloads/layers/differential_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

// exp(sum(q k)) of two vectors as long as a head: one number.
Node factor(Sketch& s, const Axis& dim, const std::string& number) {
  const Node product =
      s.multiply(s.parameter("lambda_q" + number, {dim}), s.parameter("lambda_k" + number, {dim}));
  const Node sum = s.cast(s.mean(product, dim), DType::f32);
  return s.cast(s.apply(PointFunction::sigmoid, sum), DType::bf16);
}

}  // namespace

Node draw(Sketch& s, const DifferentialAttention& a, Node x) {
  const Sketch::In in(s, "self_attn");
  const Axis two{"half_of_heads", 2};
  const Axis heads{"kv_heads", a.kv_heads / 2, AxisRole::heads};
  const Axis group{"group", a.heads / a.kv_heads, AxisRole::group};
  const Axis dim{"head_dim", a.head_dim};
  const Axis wide{"two_heads_dim", 2 * a.head_dim};
  const Axis tokens = s.sequence();
  Node q = s.linear({"q_proj", a.bias}, x, {two, heads, group, dim});
  Node k = s.linear({"k_proj", a.bias}, x, {two, heads, dim});
  Node v = s.linear({"v_proj", a.bias}, x, {two, heads, dim});
  s.turn(a.rotary, q, k);
  k = s.keep("keys", k, 0);
  v = s.keep("values", v, 0);
  const Axis seen_tokens = s.kept(0);
  std::vector<Node> seen;
  for (const Node half :
       s.parts(v, {{s.batch(), seen_tokens, heads, dim}, {s.batch(), seen_tokens, heads, dim}})) {
    const Axes both{s.batch(), seen_tokens, two, heads, dim};
    seen.push_back(s.attend("attention", q, k, s.copy(s.expand(half, both), both),
                            {.queries = tokens, .keys = seen_tokens, .fraction = 0.5}));
  }
  const Node side = s.join(seen, {s.batch(), tokens, two, heads, group, wide});
  const Axes rows{s.batch(), tokens, heads, group, wide};
  const std::vector<Node> halves = s.parts(side, {rows, rows});
  const Node first = factor(s, dim, "1");
  const Node number = s.scaled(s.add(first, factor(s, dim, "2")));
  const Node out = s.add(halves[0], s.multiply(halves[1], number));
  const Node normed = s.scaled(s.norm({NormKind::rms_fixed, "groupnorm"}, out, {wide}));
  return s.linear({"o_proj", a.bias, 3}, normed, {s.axes_of(x).back()});
}

std::string to_text(const DifferentialAttention& a) {
  return fmt::format("differential attention, {} heads of {}, {} of keys", a.heads, a.head_dim,
                     a.kv_heads);
}

}  // namespace shardsim::models
