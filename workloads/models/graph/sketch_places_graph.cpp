// What stands of a sketch's places in the place of several: the largest, or what lies between them.
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

}  // namespace shardsim::models
