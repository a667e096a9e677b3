#include "workloads/layers/bottleneck_layer.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

class BottleneckSketch {
 public:
  BottleneckSketch(Sketch& s, const BottleneckLayer& l, Node x)
      : s_(s),
        l_(l),
        x_(x),
        hidden_(s.axes_of(x).back()),
        narrow_{"narrow", l.narrow},
        heads_(heads_axis(l.heads)),
        dim_{"head_dim", l.narrow / l.heads} {}

  Node build() {
    const Node input = narrowed("bottleneck.input", x_);
    Node queries = x_, values = x_;
    if (l_.narrow_attention) {
      queries = values = input;
      if (l_.shares_keys) stored();
    } else if (l_.shares_keys) {
      queries = narrowed("bottleneck.attention", x_);
    }
    Node y = normed("attention.output.LayerNorm", s_.add(attended(queries, values), input));
    for (std::int64_t i = 0; i + 1 < l_.mlps; ++i) {
      const Sketch::In in(s_, fmt::format("ffn.{}", i));
      y = normed("output.LayerNorm", s_.add(fed(y), y));
    }
    y = normed("output.LayerNorm", s_.add(fed(y), y));
    const Node wide =
        s_.dropout(l_.dropout, s_.linear({"output.bottleneck.dense", true}, y, {hidden_}));
    return s_.norm({l_.norm, "output.bottleneck.LayerNorm", true}, s_.add(wide, x_), {hidden_});
  }

 private:
  // The stream of queries and keys, where the class has it and does not run it.
  void stored() {
    const Sketch::In in(s_, "bottleneck.attention");
    s_.stored({"dense", /*bias=*/true}, x_, {narrow_});
    for (const char* name : {"LayerNorm.weight", "LayerNorm.bias"}) {
      s_.idle_parameter(name, {narrow_});
    }
  }

  Node normed(const std::string& name, Node x) {
    return s_.norm({l_.norm, name, /*bias=*/true}, x, {narrow_});
  }

  Node narrowed(const std::string& module, Node x) {
    const Sketch::In in(s_, module);
    return normed("LayerNorm", s_.linear({"dense", /*bias=*/true}, x, {narrow_}));
  }

  Node attended(Node queries, Node values) {
    const Axis tokens = s_.sequence();
    const auto project = [&](const char* name, Node x) {
      return s_.linear({std::string("attention.self.") + name, true}, x, {heads_, dim_});
    };
    const Node q = project("query", queries);
    const Node k = project("key", queries);
    const Node v = project("value", values);
    const Node seen = s_.attend("attention.self.attention", q, k, v,
                                {.queries = tokens,
                                 .keys = tokens,
                                 .dropout = l_.attention_dropout,
                                 .fp32_softmax = false});
    return s_.linear({"attention.output.dense", true, 2}, seen, {narrow_});
  }

  Node fed(Node x) {
    const Node up = s_.linear({"intermediate.dense", true}, x, {width_axis(l_.width)});
    return s_.linear({"output.dense", true}, s_.activate(l_.activation, up), {narrow_});
  }

  Sketch& s_;
  const BottleneckLayer& l_;
  Node x_;
  Axis hidden_, narrow_, heads_, dim_;
};

}  // namespace

Node draw(Sketch& s, const BottleneckLayer& l, Node x) { return BottleneckSketch(s, l, x).build(); }

std::string to_text(const BottleneckLayer& l) {
  return fmt::format("bottleneck of {}, {} heads, {} MLPs of {}", l.narrow, l.heads, l.mlps,
                     l.width);
}

}  // namespace shardsim::models
