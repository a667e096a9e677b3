#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/index.hpp"
#include "reports/machine/picture_parts.hpp"

namespace shardsim {
namespace {

using Part = MachinePicture::Part;
constexpr double edge = 28;   // around the picture
constexpr double apart = 44;  // middles of neighbours

struct Point {
  double x = 0;
  double y = 0;
};
Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator*(Point a, double factor) { return {a.x * factor, a.y * factor}; }

Point on_circle(Point middle, double radius, double turns) {
  const double angle = 2 * std::numbers::pi * turns - std::numbers::pi / 2;  // 0 is above
  return {middle.x + radius * std::cos(angle), middle.y + radius * std::sin(angle)};
}

// Boxes of a side that leaves room between neighbours, numbered where a number fits.
MachinePicture::Box node_box(std::int64_t number, Point at, double side, bool is_device) {
  constexpr double readable = 20;
  return {at.x,
          at.y,
          side,
          side,
          is_device ? Part::device : Part::fabric,
          side >= readable ? fmt::format("{}", number) : std::string(),
          fmt::format("{} {}", is_device ? "device" : "switch", number)};
}

// Sets the size, and shifts everything so that it begins at the edge.
void frame(MachinePicture& picture) {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  bool is_first = true;
  const auto include = [&](double x, double y, double half) {
    left = is_first ? x - half : std::min(left, x - half);
    top = is_first ? y - half : std::min(top, y - half);
    right = is_first ? x + half : std::max(right, x + half);
    bottom = is_first ? y + half : std::max(bottom, y + half);
    is_first = false;
  };
  for (const auto& box : picture.boxes) include(box.x, box.y, std::max(box.width, box.height) / 2);
  for (const auto& line : picture.lines) {
    include(line.x1, line.y1, 0);
    include(line.x2, line.y2, 0);
  }
  const double dx = edge - left;
  const double dy = edge - top;
  for (auto& box : picture.boxes) {
    box.x += dx;
    box.y += dy;
  }
  for (auto& line : picture.lines) {
    line.x1 += dx;
    line.x2 += dx;
    line.y1 += dy;
    line.y2 += dy;
  }
  picture.width = right - left + 2 * edge;
  picture.height = bottom - top + 2 * edge;
}

// Where the nodes of a network stand, devices first, then switches.
using Layout = std::vector<Point>;

Layout on_a_circle(std::int64_t devices) {
  Layout layout;
  const double radius = circle_radius(devices, apart);
  for (std::int64_t i = 0; i < devices; ++i) {
    layout.push_back(on_circle({}, radius, static_cast<double>(i) / static_cast<double>(devices)));
  }
  return layout;
}

// Tiers one above the other, each spread over the width of the devices.
Layout in_tiers(const NetworkDescription& network, const NetworkGraph& graph) {
  constexpr double rise = 110;
  const std::int64_t devices = graph.devices();
  constexpr double widest = 1100;
  constexpr double narrowest = 160;
  const double width = std::clamp(apart * static_cast<double>(devices), narrowest, widest);
  Layout layout;
  const auto add_row = [&](std::int64_t count, double y) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      layout.push_back({share * width, y});
    }
  };
  add_row(devices, 0);
  const std::vector<std::int64_t> one_tier{devices};
  const auto& sizes = network.kind == NetworkKind::switched ? one_tier : network.shape;
  std::int64_t copies = 1;
  std::int64_t above = devices;
  for (std::size_t tier = 0; tier < sizes.size(); ++tier) {
    if (tier > 0) copies *= sizes[tier - 1] / network.oversubscription[tier - 1];
    above /= sizes[tier];
    add_row(above * copies, -rise * static_cast<double>(tier + 1));
  }
  return layout;
}

// How many hops each node is from the nearest device.
std::vector<std::size_t> distances_from_devices(const NetworkGraph& graph) {
  constexpr std::size_t unreached = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> hops(at(graph.nodes()), unreached);
  std::vector<NodeId> next(at(graph.devices()));
  std::iota(next.begin(), next.end(), 0);
  for (std::size_t distance = 0; !next.empty(); ++distance) {
    std::vector<NodeId> after;
    for (const NodeId node : next) {
      if (hops[at(node)] != unreached) continue;
      hops[at(node)] = distance;
      for (LinkId link = graph.first_out(node); link < graph.first_out(node + 1); ++link) {
        after.push_back(graph.links()[at(link)].to);
      }
    }
    next = std::move(after);
  }
  return hops;
}

// Rows one above the other, by how far nodes are from devices; what nothing leads to is left at the
// bottom.
Layout in_levels(const NetworkGraph& graph) {
  constexpr double rise = 110;
  constexpr double widest = 1100;
  constexpr double narrowest = 160;
  const std::vector<std::size_t> hops = distances_from_devices(graph);
  std::vector<std::vector<NodeId>> rows(1);
  for (NodeId node = 0; node < graph.nodes(); ++node) {
    const std::size_t row = hops[at(node)] < hops.size() ? hops[at(node)] : 0;
    if (row >= rows.size()) rows.resize(row + 1);
    rows[row].push_back(node);
  }
  std::size_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const double width = std::clamp(apart * static_cast<double>(longest), narrowest, widest);
  Layout layout(at(graph.nodes()));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(rows[row].size());
      layout[at(rows[row][i])] = {share * width, -rise * static_cast<double>(row)};
    }
  }
  return layout;
}

// Groups on a circle, their switches on a smaller one, the devices of each outside of it.
Layout in_groups(const NetworkDescription& network, const NetworkGraph& graph) {
  const std::int64_t routers = network.shape[0];
  const std::int64_t per_router = network.shape[1];
  const std::int64_t groups = (graph.nodes() - graph.devices()) / routers;
  const double router_circle = circle_radius(routers, apart);
  const double device_circle =
      std::max(circle_radius(routers * per_router, apart), router_circle + apart);
  const double radius = circle_radius(groups, 2 * device_circle + 2 * apart);
  Layout layout(at(graph.nodes()));
  for (std::int64_t group = 0; group < groups; ++group) {
    const Point middle =
        on_circle({}, radius, static_cast<double>(group) / static_cast<double>(groups));
    for (std::int64_t i = 0; i < routers; ++i) {
      const std::int64_t router = group * routers + i;
      const double turn = (static_cast<double>(i) + 0.5) / static_cast<double>(routers);
      layout[at(graph.devices() + router)] = on_circle(middle, router_circle, turn);
      for (std::int64_t k = 0; k < per_router; ++k) {
        const double spread =
            (static_cast<double>(k) + 0.5) / static_cast<double>(per_router) - 0.5;
        layout[at(router * per_router + k)] =
            on_circle(middle, device_circle, turn + spread / static_cast<double>(routers));
      }
    }
  }
  return layout;
}

Layout layout_of(const NetworkDescription& network, const NetworkGraph& graph) {
  switch (network.kind) {
    case NetworkKind::switched:
    case NetworkKind::fat_tree:
      return in_tiers(network, graph);
    case NetworkKind::dragonfly:
      return in_groups(network, graph);
    case NetworkKind::graph:
      return graph.nodes() > graph.devices() ? in_levels(graph) : on_a_circle(graph.devices());
    default:
      return on_a_circle(graph.devices());
  }
}

// What neighbours on a row of tiers leave for a box.
double side_of(const NetworkDescription& network, const Layout& layout) {
  constexpr double largest = 28;
  constexpr double smallest = 4;
  const bool in_rows = network.kind == NetworkKind::switched ||
                       network.kind == NetworkKind::fat_tree || network.kind == NetworkKind::graph;
  if (!in_rows || layout.size() < 2) return largest;
  double closest_two = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < layout.size(); ++i) {
    const double distance = layout[i].x - layout[i - 1].x;
    if (layout[i].y == layout[i - 1].y && distance > 0) {
      closest_two = std::min(closest_two, distance);
    }
  }
  return std::clamp(0.7 * closest_two, smallest, largest);
}

}  // namespace

double circle_radius(std::int64_t count, double distance) {
  return std::max(distance, distance * static_cast<double>(count) / (2 * std::numbers::pi));
}

std::optional<MachinePicture> torus_picture(const TorusShape& torus) {
  const std::size_t dimensions = torus.sizes.size();
  if (dimensions > 3) return std::nullopt;
  constexpr double side = 14;
  constexpr double wrap_length = 24;  // of a closing link, of which both ends are drawn
  // Depth goes up to the right, by less than a step to the right.
  constexpr Point depth{19, -13};
  constexpr double flat_pitch = 40;
  constexpr double pitch_of_a_layer = 24;
  constexpr double squeezed = 0.75;  // rows, where depth makes them overlap
  const bool is_deep = dimensions == 3 && torus.sizes[2] > 1;
  const double pitch =
      is_deep ? pitch_of_a_layer * static_cast<double>(torus.sizes[2]) : flat_pitch;
  const Point steps[3] = {{pitch, 0}, {0, is_deep ? squeezed * pitch : pitch}, depth};
  std::vector<std::int64_t> sizes = torus.sizes;
  sizes.resize(3, 1);
  std::int64_t devices = 1;
  for (const std::int64_t size : sizes) devices *= size;
  MachinePicture picture;
  for (std::int64_t device = 0; device < devices; ++device) {
    const std::int64_t at_each[3] = {device % sizes[0], device / sizes[0] % sizes[1],
                                     device / sizes[0] / sizes[1]};
    Point middle;
    for (int i = 0; i < 3; ++i) middle = middle + steps[i] * static_cast<double>(at_each[i]);
    for (std::size_t i = 0; i < dimensions; ++i) {
      const Point next = middle + steps[i];
      if (at_each[i] + 1 < sizes[i]) {
        picture.lines.push_back({middle.x, middle.y, next.x, next.y, Part::link});
      }
      if (!torus.wraps[i] || sizes[i] < 3) continue;
      const double length = std::hypot(steps[i].x, steps[i].y);
      for (const double sign : {-1.0, 1.0}) {
        if (at_each[i] != (sign < 0 ? 0 : sizes[i] - 1)) continue;
        const Point out = middle + steps[i] * (sign * wrap_length / length);
        picture.lines.push_back({middle.x, middle.y, out.x, out.y, Part::wrap});
      }
    }
    MachinePicture::Box box = node_box(device, middle, side, /*is_device=*/true);
    box.title = fmt::format("{} {} at {}, {}, {}", torus.devices_per_chip > 1 ? "chip" : "device",
                            device, at_each[0], at_each[1], at_each[2]);
    picture.boxes.push_back(std::move(box));
  }
  frame(picture);
  return picture;
}

std::optional<MachinePicture> network_picture(const NetworkDescription& network,
                                              std::int64_t devices, const Place& place) {
  if (network.kind == NetworkKind::torus) {
    // Numbered row-major, the last dimension first.
    TorusShape torus{network.shape, std::vector<bool>(network.shape.size(), network.wraps)};
    std::reverse(torus.sizes.begin(), torus.sizes.end());
    return torus_picture(torus);
  }
  const NetworkGraph graph = build(network, devices, place);
  if (graph.nodes() > most_drawn) return std::nullopt;
  const std::vector<std::string>* names = network.graph ? &network.graph->names : nullptr;
  const Layout layout = layout_of(network, graph);
  const double side = side_of(network, layout);
  MachinePicture picture;
  for (const NetworkLink& link : graph.links()) {
    if (link.from > link.to && !network.graph) continue;  // both directions are one line
    const Point from = layout[at(link.from)];
    const Point to = layout[at(link.to)];
    picture.lines.push_back({from.x, from.y, to.x, to.y, Part::link});
  }
  for (NodeId node = 0; node < graph.nodes(); ++node) {
    const bool is_device = graph.is_device(node);
    picture.boxes.push_back(
        node_box(is_device ? node : node - graph.devices(), layout[at(node)], side, is_device));
    if (names != nullptr) picture.boxes.back().title = (*names)[at(node)];
  }
  frame(picture);
  return picture;
}

}  // namespace shardsim
