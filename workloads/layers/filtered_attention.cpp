#include "workloads/layers/filtered_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {

Node draw(Sketch& s, const FilteredAttention& a, Node x) {
  const Axis heads = heads_axis(a.heads), dim{"head_dim", a.head_dim};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const Axes pairs{s.batch(), heads, s.sequence(), s.keys()};
  Node context = no_node;
  {
    const Sketch::In in(s, "attention.self");
    const auto project = [&](const char* name) {
      return s.linear({name, /*bias=*/true}, x, {heads, dim});
    };
    const Node q = s.lies_by_example(s.scaled(project("query")));
    const Node k = s.seen(s.lies_by_example(s.scaled(project("key"))));
    const Node v = project("value");
    const Node weights = s.softmax(s.product("scores", q, k, pairs), s.keys(), /*fp32=*/false);
    context = s.product("context", weights, s.seen(s.lies_by_example(v)), rows);
    if (a.taps > 0) context = s.add(context, s.convolve_heads("conv", v, a.taps));
    context = s.lies(context);
  }
  return s.linear({"attention.output.dense", /*bias=*/true, 2}, context, {s.axes_of(x).back()});
}

std::string to_text(const FilteredAttention& a) {
  return fmt::format("attention, {} heads of {}, {} taps of values", a.heads, a.head_dim, a.taps);
}

}  // namespace shardsim::models
