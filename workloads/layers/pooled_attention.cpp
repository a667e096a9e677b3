#include "workloads/layers/pooled_attention.hpp"

namespace shardsim::models {
namespace {

// What autograd is handed of the scores among a place's heads: scaled queries, and the softmax.
void keeps_unread(Sketch& s, const Axes& places, const Axis& heads, const Axis& dim) {
  Axes kept = places;
  kept.push_back(heads);
  kept.push_back(dim);
  s.keeps_numbers(DType::bf16, kept);
  kept.back() = {"other_heads", heads.size};
  s.keeps_numbers(DType::f32, kept);
}

}  // namespace

Node draw(Sketch& s, const PooledAttention& a, Node x) {
  const Axis three{"qkv", 3}, heads = heads_axis(a.heads), dim{"head_dim", a.width / a.heads};
  const Node all = s.linear({"qkv", /*bias=*/true}, x, {three, heads, dim});
  Axes places = s.axes_of(x);
  places.pop_back();
  s.unread_operations(2 * elements_of(places) * a.heads * a.width);
  keeps_unread(s, places, heads, dim);
  const auto by_heads = [&](const Axis& rows) {
    Axes axes = places;
    axes.back() = rows;
    axes.push_back(heads);
    axes.push_back(dim);
    return axes;
  };
  const Axis every = places.back();
  const std::vector<Node> parts = s.parts(all, {by_heads(every), by_heads(every), by_heads(every)});
  Axis queries = every;
  Node q = parts[0];
  if (a.stride > 1) {
    queries = {"pooled_places", every.size / (a.stride * a.stride)};
    q = s.largest("pool", q, every, queries, by_heads(queries));
  }
  const Node seen =
      s.attend("attention", q, parts[1], parts[2], {.queries = queries, .keys = every});
  return s.linear({"proj", /*bias=*/true, 2}, seen, {{"hidden", a.width, AxisRole::hidden}});
}

Node draw(Sketch& s, const WindowPositions& p, Node x) {
  const Axis one{"one", 1}, hidden = s.axes_of(x).back();
  const Axes places{s.sequence(), hidden};
  const auto table = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    const std::string own = name;
    const Node parameter =
        s.parameter(name, {one, hidden, {own + "_rows", rows}, {own + "_columns", columns}});
    return s.copy(parameter, places);
  };
  const Node background = table("pos_embed", p.rows, p.columns);
  return s.add(x, s.add(background, table("pos_embed_window", p.window, p.window)));
}

}  // namespace shardsim::models
