#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/index.hpp"
#include "reports/picture_parts.hpp"

namespace shardsim {
namespace {

using Part = MachinePicture::Part;
constexpr double edge = 28;  // around the picture

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
  constexpr double apart = 44;
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
  const double width = std::max(std::min(44.0 * static_cast<double>(devices), 1100.0), 160.0);
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

// Groups on a circle, their switches on a smaller one, the devices of each outside of it.
Layout in_groups(const NetworkDescription& network, const NetworkGraph& graph) {
  const std::int64_t routers = network.shape[0];
  const std::int64_t per_router = network.shape[1];
  const std::int64_t groups = (graph.nodes() - graph.devices()) / routers;
  constexpr double apart = 44;
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
    default:
      return on_a_circle(graph.devices());
  }
}

// What neighbours on a row of tiers leave for a box.
double side_of(const NetworkDescription& network, const Layout& layout) {
  constexpr double largest = 28;
  constexpr double smallest = 4;
  const bool in_rows =
      network.kind == NetworkKind::switched || network.kind == NetworkKind::fat_tree;
  if (!in_rows || layout.size() < 2) return largest;
  double closest_two = largest / 0.7;
  for (std::size_t i = 1; i < layout.size(); ++i) {
    if (layout[i].y == layout[i - 1].y) {
      closest_two = std::min(closest_two, layout[i].x - layout[i - 1].x);
    }
  }
  return std::max(smallest, 0.7 * closest_two);
}

}  // namespace

double circle_radius(std::int64_t count, double distance) {
  return std::max(distance, distance * static_cast<double>(count) / (2 * std::numbers::pi));
}

std::optional<MachinePicture> torus_picture(const TorusShape& torus) {
  const std::size_t dimensions = torus.sizes.size();
  if (dimensions > 3) return std::nullopt;
  constexpr double side = 14;
  constexpr double stub = 24;
  // Of a step along x, y and z: depth goes up to the right, by less than a step to the right.
  const bool is_deep = dimensions == 3 && torus.sizes[2] > 1;
  const double pitch = is_deep ? 24.0 * static_cast<double>(torus.sizes[2]) : 40;
  const Point steps[3] = {{pitch, 0}, {0, is_deep ? 0.75 * pitch : pitch}, {19, -13}};
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
        const Point out = middle + steps[i] * (sign * stub / length);
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
  const Layout layout = layout_of(network, graph);
  const double side = side_of(network, layout);
  MachinePicture picture;
  for (const NetworkLink& link : graph.links()) {
    if (link.from > link.to) continue;  // both directions are one line
    const Point from = layout[at(link.from)];
    const Point to = layout[at(link.to)];
    picture.lines.push_back({from.x, from.y, to.x, to.y, Part::link});
  }
  for (NodeId node = 0; node < graph.nodes(); ++node) {
    const bool is_device = graph.is_device(node);
    picture.boxes.push_back(
        node_box(is_device ? node : node - graph.devices(), layout[at(node)], side, is_device));
  }
  frame(picture);
  return picture;
}

}  // namespace shardsim
