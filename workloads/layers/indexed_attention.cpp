#include "workloads/layers/indexed_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {
namespace {

Norm named(Norm norm, const char* name) {
  norm.name = name;
  return norm;
}

void pick_blocks(Sketch& s, const IndexedAttention& a, Node x) {
  s.note(
      "attention computes the keys that the index picks, as kernels for sparse attention do; the "
      "index has no gradient");
  const Sketch::In in(s, "indexer");
  s.forward_alone(true);
  const Axis heads{"index_heads", a.index_heads}, dim{"index_dim", a.index_dim};
  const Axis tokens = s.sequence();
  const Axis one{"index_key_heads", 1};
  const auto normed = [&](const char* from, const Axis& of, const char* norm) {
    return s.norm(named(a.norm, norm), s.linear({from}, x, {of, dim}), {dim});
  };
  Node q = normed("q_proj", heads, "q_norm");
  Node turned = normed("k_proj", one, "k_norm");
  Rotary rotary = a.rotary;
  rotary.dims = std::min(rotary.dims, a.index_dim);
  s.turn(rotary, q, turned);
  const Node k = s.keep("index_keys", s.view(turned, {s.batch(), tokens, dim}), 0);
  const Axis all = s.is_decoding() ? s.kept(0) : s.keys();
  const Axes of_heads{s.batch(), all, heads, dim};
  const Node keys = s.copy(s.expand(s.cast(s.seen(k), DType::f32), of_heads), of_heads);
  const Node scores =
      s.product("scores", s.cast(q, DType::f32), keys, {s.batch(), tokens, heads, all});
  const Axis blocks{"key_blocks", (all.size + a.block - 1) / a.block};
  s.keeps(scores);
  s.keeps_numbers(DType::boolean, {s.batch(), tokens, all});
  s.keeps_numbers(DType::f32, {s.batch(), tokens, heads, blocks});
  s.keeps_numbers(DType::i64, {s.batch(), tokens, {"near_blocks", a.near}});
  s.choose(s.view(scores, {s.batch(), tokens, heads, blocks}), blocks,
           std::min(blocks.size, a.blocks));
  s.forward_alone(false);
}

}  // namespace

Node draw(Sketch& s, const IndexedAttention& a, Node x) {
  const Sketch::In in(s, "self_attn");
  const Axis heads{"kv_heads", a.kv_heads, AxisRole::heads};
  const Axis group{"group", a.heads / a.kv_heads, AxisRole::group};
  const Axis dim{"head_dim", a.head_dim};
  const Axis tokens = s.sequence();
  Node q = s.norm(named(a.norm, "q_norm"), s.linear({"q_proj"}, x, {heads, group, dim}), {dim});
  Node k = s.norm(named(a.norm, "k_norm"), s.linear({"k_proj"}, x, {heads, dim}), {dim});
  Node v = s.linear({"v_proj"}, x, {heads, dim});
  s.turn(a.rotary, q, k);
  k = s.keep("keys", k, 0);
  v = s.keep("values", v, 0);
  Axis seen = s.kept(0);
  pick_blocks(s, a, x);
  const std::int64_t most = std::min(seen.size, a.chosen());
  double fraction = 1;
  if (s.is_decoding()) {
    seen = {"chosen_keys", most};
    k = s.view(k, {s.batch(), seen, heads, dim});
    v = s.view(v, {s.batch(), seen, heads, dim});
  } else {
    const double share = static_cast<double>(most) / static_cast<double>(tokens.size);
    fraction = share * (1 - share / 2);
  }
  const Node out =
      s.attend("attention", q, k, v,
               {.queries = tokens, .keys = seen, .fraction = fraction, .dropout = a.dropout});
  return s.linear({.name = "o_proj", .in = 3}, s.lies(out), {s.axes_of(x).back()});
}

std::string to_text(const IndexedAttention& a) {
  return fmt::format("attention, {} heads of {}, {} of keys, to {} blocks of {} keys", a.heads,
                     a.head_dim, a.kv_heads, a.blocks, a.block);
}

}  // namespace shardsim::models
