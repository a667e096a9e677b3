#include "workloads/layers/layout_attention.hpp"

namespace shardsim::models {

Node draw(Sketch& s, const LayoutAttention& a, Node x) {
  const Axis hidden = s.axes_of(x).back();
  const Axis heads = heads_axis(a.heads), dim{"head_dim", hidden.size / a.heads};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const Axes pairs{s.batch(), heads, s.sequence(), s.keys()};
  const auto project = [&](const char* name) {
    return s.linear({name, /*bias=*/true}, x, {heads, dim});
  };
  const Node q = s.lies_by_example(s.scaled(project("self.query")));
  const Node k = s.seen(s.lies_by_example(project("self.key")));
  const Node v = s.seen(s.lies_by_example(project("self.value")));
  Node scores = s.product("scores", q, k, pairs);
  if (a.distances) {
    scores = s.add(scores, s.constant(DType::bf16, pairs, "distances"));
  }
  scores = s.scaled(scores);
  s.keeps(scores);  // amax keeps what it reads, and its result
  s.keeps_numbers(DType::bf16, {s.batch(), heads, s.sequence()});
  const Node left = s.dropout(a.dropout, s.softmax(s.scaled(scores), s.keys(), /*fp32=*/false));
  const Node context = s.lies(s.product("context", left, v, rows));
  return s.linear({"output.dense", /*bias=*/true, 2}, context, {hidden});
}

}  // namespace shardsim::models
