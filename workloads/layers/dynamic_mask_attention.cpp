#include "workloads/layers/dynamic_mask_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

Norm named(Norm norm, const char* name) {
  norm.name = name;
  return norm;
}

// [batch, heads, group, queries, keys] of values (DogeAttention.prepare_dynamic_mask).
Node mask_of(Sketch& s, const DynamicMaskAttention& a, Node v, const Axis& heads,
             const Axis& group) {
  const Node steps = s.apply(PointFunction::softplus, s.linear({"dt_proj", a.bias, 2}, v, {heads}));
  // An exponential keeps its result, and is one pass, as a sigmoid is.
  const Node weights =
      s.apply(PointFunction::sigmoid, s.multiply(steps, s.parameter("A", {heads})));
  const Axes one{s.batch(), heads, s.sequence(), s.keys()};
  s.keeps_numbers(DType::boolean, {s.batch(), s.sequence(), s.keys()});
  Node mask = s.copy(s.expand(s.seen(weights), one), one);
  if (s.tokens() > a.kept) {
    s.keeps_numbers(DType::i64, {s.batch(), heads, s.sequence(), {"kept_keys", a.kept}});
    s.keeps_numbers(DType::boolean, one);
    mask = s.scaled(mask);
  }
  const Axes each{s.batch(), heads, group, s.sequence(), s.keys()};
  return group.size > 1 ? s.copy(s.expand(mask, each), each) : s.view(mask, each);
}

}  // namespace

Node draw(Sketch& s, const DynamicMaskAttention& a, Node x) {
  s.note("the mask that values make is a bias of attention's kernel, which has a gradient");
  const Sketch::In in(s, "self_attn");
  const Axis heads = {"kv_heads", a.kv_heads, AxisRole::heads};
  const Axis group{"group", a.heads / a.kv_heads, AxisRole::group};
  const Axis dim{"head_dim", a.head_dim};
  Node q =
      s.norm(named(a.norm, "q_norm"), s.linear({"q_proj", a.bias}, x, {heads, group, dim}), {dim});
  Node k = s.norm(named(a.norm, "k_norm"), s.linear({"k_proj", a.bias}, x, {heads, dim}), {dim});
  const Node v = s.linear({"v_proj", a.bias}, x, {heads, dim});
  s.turn(a.rotary, q, k);
  const Node mask = mask_of(s, a, v, heads, group);
  const Node out =
      s.attend("attention", q, s.seen(k), s.seen(v),
               {.queries = s.sequence(), .keys = s.keys(), .dropout = a.dropout, .bias = mask});
  return s.linear({"o_proj", a.bias, 3}, out, {s.axes_of(x).back()});
}

std::string to_text(const DynamicMaskAttention& a) {
  return fmt::format("attention, {} heads of {}, {} of keys, with a mask made of values", a.heads,
                     a.head_dim, a.kv_heads);
}

}  // namespace shardsim::models
