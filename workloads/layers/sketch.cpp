#include "workloads/layers/sketch.hpp"

#include <algorithm>
#include <utility>

namespace shardsim::models {

std::int64_t elements_of(const Axes& axes) {
  std::int64_t size = 1;
  for (const Axis& axis : axes) size *= axis.size;
  return size;
}

Sketch::In::In(Sketch& sketch, const std::string& module)
    : sketch_(sketch), opened_(!module.empty()) {
  if (opened_) sketch_.open(module);
}

Sketch::In::~In() {
  if (opened_) sketch_.close();
}

Node Sketch::next_node(Axes axes) {
  axes_.push_back(std::move(axes));
  return static_cast<Node>(axes_.size() - 1);
}

const Axes& Sketch::axes_of(Node node) const { return axes_[static_cast<std::size_t>(node)]; }

Node Sketch::seen(Node x) {
  Axes axes = axes_of(x);
  std::replace(axes.begin(), axes.end(), sequence(), keys());
  return view(x, axes);
}

}  // namespace shardsim::models
