// What stands of a sketch's places in the place of several: the largest, what lies between them,
// sums of neighbours.
#include <utility>

#include "workloads/models/graph/sketch_graph.hpp"

namespace shardsim::models {

Node SketchGraph::largest(const std::string& name, Node x, const Axis& from, const Axis& to,
                          const Axes& axes) {
  const LabelId window = c_.label("pool_window", from.size / to.size);
  GraphBuilder::Seen seen{tensor(x), dims(axes)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == to) seen.dims[i].push_back(window);
  }
  return made(c_.g.largest(unique(name), seen, dims(axes), {window}), axes);
}

Node SketchGraph::sample(const std::string& name, Node value, Node grid, const Axis& coordinates,
                         const Axes& axes) {
  c_.note("what is sampled between places is a copy, times a weight of each point");
  const TensorId copied =
      c_.g.rearranged(unique(name), tensor(value), dims(axes), changed(axes_of(value), {axes}));
  return multiply(made(copied, axes), mean(grid, coordinates));
}

Node SketchGraph::convolve_each(const std::string& name, Node x, std::int64_t taps) {
  const Dim channels{label(axes_of(x).back())};
  return made(c_.convolution(GraphContext::inside(scopes_.back(), name), tensor(x), channels, taps,
                             /*bias=*/false, /*silu=*/false),
              axes_of(x));
}

Node SketchGraph::convolve_heads(const std::string& name, Node x, std::int64_t taps) {
  const std::string full = GraphContext::inside(scopes_.back(), name);
  const Dims dims{{label(axes_of(x)[2])},
                  {c_.label("one", 1)},
                  {c_.label("taps", taps)},
                  {c_.label("one_column", 1)}};
  const TensorId weight = c_.g.parameter(full + ".weight", dims);
  return made(c_.g.convolution(full, tensor(x), weight, no_tensor, c_.sequence, /*silu=*/false, {}),
              axes_of(x));
}

Node SketchGraph::convolve_causal(const std::string& name, Node x, std::int64_t taps, bool bias) {
  const Dim channels{label(axes_of(x).back())};
  return made(c_.convolution(GraphContext::inside(scopes_.back(), name), tensor(x), channels, taps,
                             bias, /*silu=*/false),
              axes_of(x));
}

}  // namespace shardsim::models
