#include "workloads/networks/drawn.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

struct Draw {
  Sketch& s;
  const std::vector<Node>& reads;

  Node operator()(const GatedDistanceAttention& what) const {
    return draw(s, what, reads[0], reads[1]);
  }
  Node operator()(const GroundedClasses& what) const { return draw(s, what, reads[0], reads[1]); }
  Node operator()(const DeformableAttention& what) const {
    return draw(s, what, reads[0], reads[1], reads[2]);
  }
  template <class Other>
  Node operator()(const Other& what) const {
    return draw(s, what, reads[0]);
  }
};

}  // namespace

Node draw(Sketch& s, const Drawn& drawn, const std::vector<Node>& reads) {
  return std::visit(Draw{s, reads}, drawn.what);
}

Axes axes_of_read(const std::vector<std::int64_t>& shape, bool is_picture, std::size_t n) {
  Axes axes{{"batch", shape[0], AxisRole::batch}};
  if (is_picture) {
    axes.insert(axes.end(), {{"channels", shape[1]}, {"rows", shape[2]}, {"columns", shape[3]}});
    return axes;
  }
  if (shape.size() > 3) axes.push_back({"windows", shape[1]});
  if (shape.size() > 2 && n == 0) {
    axes.push_back({"sequence", shape[shape.size() - 2], AxisRole::sequence});
  }
  if (shape.size() > 2 && n > 0) {
    axes.push_back({fmt::format("beside_{}", n), shape[shape.size() - 2]});
  }
  axes.push_back({"hidden", shape.back(), AxisRole::hidden});
  return axes;
}

bool are_pictures(const Axes& axes) {
  return axes.size() == 4 && axes[1].name == "channels" && axes[2].name == "rows" &&
         axes[3].name == "columns";
}

bool are_windows(const Axes& axes) {
  return axes.size() == 4 && axes[1].name == "windows" && axes.back().role == AxisRole::hidden;
}

bool are_rows(const Axes& axes) {
  return axes.size() <= 3 && axes.front().role == AxisRole::batch &&
         axes.back().role == AxisRole::hidden;
}

}  // namespace shardsim::models
