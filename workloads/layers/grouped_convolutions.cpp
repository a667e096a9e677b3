#include "workloads/layers/grouped_convolutions.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

// [batch, sequence, out] of x [batch, sequence, in].
Node convolve(Sketch& s, const std::string& name, Node x, std::int64_t groups, const Axis& out) {
  const std::int64_t in = s.axes_of(x).back().size;
  const Axis group{"groups", groups};
  const Axes rows{s.batch(), s.sequence(), group, {"group_channels", in / groups}};
  const Node y = s.linear({name, /*bias=*/true, 2, /*conv1d=*/false, /*grouped=*/true},
                          s.view(x, rows), {group, {"group_results", out.size / groups}});
  return s.view(y, {s.batch(), s.sequence(), out});
}

}  // namespace

Node draw(Sketch& s, const GroupedAttention& a, Node x) {
  const Axis hidden = s.axes_of(x).back();
  const Axis heads = heads_axis(a.heads), dim{"head_dim", hidden.size / a.heads};
  const Axis channels{"channels", hidden.size};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const auto project = [&](const char* name, std::int64_t groups) {
    return s.view(convolve(s, std::string("attention.") + name, x, groups, channels), rows);
  };
  const Node q = project("query", a.q_groups);
  const Node k = s.seen(project("key", a.k_groups));
  const Node v = s.seen(project("value", a.v_groups));
  const Axes scores{s.batch(), heads, s.sequence(), s.keys()};
  const Node all = s.scaled(s.product("attention.scores", q, k, scores));
  const Node left = s.dropout(a.dropout, s.softmax(all, s.keys(), /*fp32=*/false));
  const Node seen = s.lies(s.product("attention.context", left, v, rows));
  return convolve(s, "post_attention.conv1d", s.view(seen, {s.batch(), s.sequence(), channels}),
                  a.out_groups, hidden);
}

Node draw(Sketch& s, const GroupedMlp& m, Node x) {
  const Axis wide{"mlp_channels", m.width};
  const Node up = convolve(s, "intermediate.conv1d", x, m.up_groups, wide);
  return convolve(s, "output.conv1d", s.activate(m.activation, up), m.down_groups,
                  s.axes_of(x).back());
}

std::string to_text(const GroupedAttention& a) {
  return fmt::format("attention by grouped convolutions, {} heads", a.heads);
}

std::string to_text(const GroupedMlp& m) {
  return fmt::format("MLP of {} by grouped convolutions, {}", m.width, m.activation);
}

}  // namespace shardsim::models
