#include "workloads/layers/divided_attention.hpp"

namespace shardsim::models {
namespace {

const Axis one_row{"one_row", 1};

// The whole's row and those of all places in all frames.
Node all_rows(Sketch& s, Node first, Node rest, const Axis& all) {
  const Axis hidden = s.axes_of(first).back();
  const Axis further{"further_rows", all.size - 1};
  return s.join({first, s.view(rest, {s.batch(), further, hidden})}, {s.batch(), all, hidden});
}

// x [batch, outer, rows, hidden]: rows attend to each other.
Node attended(Sketch& s, const DividedAttention& a, const std::string& module, Node x) {
  const Sketch::In in(s, module);
  const Axes axes = s.axes_of(x);
  const Axis &outer = axes[1], &rows = axes[2], &hidden = axes[3];
  const Axis keys{"key_" + rows.name, rows.size};
  const Axis three{"qkv", 3}, heads = heads_axis(a.heads), dim{"head_dim", hidden.size / a.heads};
  const Node all = s.linear({"attention.qkv", a.qkv_bias}, x, {three, heads, dim});
  const Axes by_heads{s.batch(), outer, rows, heads, dim};
  const std::vector<Node> parts = s.parts(all, {by_heads, by_heads, by_heads});
  const auto as_keys = [&](Node part) {
    return s.view(s.lies(part), {s.batch(), outer, keys, heads, dim});
  };
  const Node q = s.lies(parts[0]);
  const Node k = as_keys(parts[1]);
  const Node v = as_keys(parts[2]);
  const Node scores = s.scaled(s.product("scores", q, k, {s.batch(), outer, heads, rows, keys}));
  const Node left = s.dropout(a.dropout, s.softmax(scores, keys, /*fp32=*/false));
  const Node context = s.lies(s.product("context", left, v, by_heads));
  return s.dropout(a.out_dropout, s.linear({"output.dense", /*bias=*/true, 2}, context, {hidden}));
}

Norm divided_norm(const char* name) { return {NormKind::layer, name, /*bias=*/true}; }

}  // namespace

Node draw(Sketch& s, const FramePositions& p, Node x) {
  const Axis hidden = s.axes_of(x).back();
  const Axis frames{"frames", p.frames}, places{"places", s.tokens() / p.frames};
  const Axis with_first{"frame_rows", places.size + 1}, one{"one", 1};
  const Axis all{"place_sequence", s.tokens() + 1};
  const Node first =
      s.expand(s.view(s.parameter("cls_token", {one, one_row, hidden}), {one_row, hidden}),
               {s.batch(), frames, one_row, hidden});
  Node rows = s.join({first, s.view(x, {s.batch(), frames, places, hidden})},
                     {s.batch(), frames, with_first, hidden});
  rows = s.add(rows, s.view(s.parameter("position_embeddings", {one, with_first, hidden}),
                            {with_first, hidden}));
  rows = s.dropout(p.dropout, rows);
  const std::vector<Node> parts =
      s.parts(rows, {{s.batch(), one_row, hidden}, {s.batch(), frames, places, hidden}});
  Node rest = s.copy(parts[1], {s.batch(), places, frames, hidden});
  rest =
      s.add(rest, s.view(s.parameter("time_embeddings", {one, frames, hidden}), {frames, hidden}));
  return all_rows(s, parts[0], s.dropout(p.dropout, rest), all);
}

Node draw(Sketch& s, const DividedAttention& a, Node x) {
  const Axis hidden = s.axes_of(x).back(), all = s.axes_of(x)[1];
  const Axis frames{"frames", a.frames}, places{"places", (all.size - 1) / a.frames};
  const Axis with_first{"frame_rows", places.size + 1};
  const std::vector<Node> parts =
      s.parts(x, {{s.batch(), one_row, hidden}, {s.batch(), places, frames, hidden}});
  Node over_frames =
      s.norm(divided_norm("temporal_layernorm"), s.lies_by_example(parts[1]), {hidden});
  over_frames = attended(s, a, "temporal_attention", over_frames);
  over_frames = s.linear({"temporal_dense", /*bias=*/true}, over_frames, {hidden});
  const Node temporal = s.add(parts[1], over_frames);
  const Axes of_frames{s.batch(), frames, places, hidden};
  const Node first = s.copy(s.expand(parts[0], {s.batch(), frames, one_row, hidden}),
                            {s.batch(), frames, one_row, hidden});
  Node over_places =
      s.join({first, s.copy(temporal, of_frames)}, {s.batch(), frames, with_first, hidden});
  over_places = s.norm(divided_norm("layernorm_before"), over_places, {hidden});
  over_places = attended(s, a, "attention", over_places);
  const std::vector<Node> seen =
      s.parts(over_places, {{s.batch(), frames, one_row, hidden}, of_frames});
  const Node spatial = s.copy(seen[1], {s.batch(), places, frames, hidden});
  return s.add(all_rows(s, parts[0], temporal, all),
               all_rows(s, s.mean(seen[0], frames), spatial, all));
}

}  // namespace shardsim::models
