#include "workloads/layers/padded_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {

Node draw(Sketch& s, const PaddedAttention& a, Node x) {
  const Sketch::In in(s, a.name);
  const Axis heads = heads_axis(a.heads), dim{"head_dim", a.head_dim};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const auto project = [&](const char* name) {
    return s.linear({name, /*bias=*/true}, x, {heads, dim});
  };
  const Node q = s.lies_by_example(s.scaled(project("q_lin")));
  const Node k = s.lies_by_example(s.seen(project("k_lin")));
  const Node v = s.lies_by_example(s.seen(project("v_lin")));
  const Node scores = s.product("scores", q, k, {s.batch(), heads, s.sequence(), s.keys()});
  Axes masked{s.batch(), s.keys()};
  if (a.causal) masked.push_back(s.sequence());
  s.keeps_numbers(DType::boolean, masked);
  const Node blanked = s.scaled(scores);
  const Node left = s.dropout(a.dropout, s.softmax(blanked, s.keys(), /*fp32=*/true));
  const Node context = s.lies(s.product("context", left, v, rows));
  return s.linear({"out_lin", /*bias=*/true, 2}, context, {s.axes_of(x).back()});
}

std::string to_text(const PaddedAttention& a) {
  return fmt::format("attention, {} heads of {}{}", a.heads, a.head_dim,
                     a.causal ? "" : ", both ways");
}

}  // namespace shardsim::models
