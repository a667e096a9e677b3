#include "reports/machine/machine_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/index.hpp"
#include "reports/format/html.hpp"
#include "reports/machine/picture_parts.hpp"

namespace shardsim {
namespace {

using Part = MachinePicture::Part;
using Box = MachinePicture::Box;

constexpr double margin = 16;

// Devices are drawn large with their number where there are few, small without where there are
// many.
struct Sizes {
  double width;
  double height;
  double gap;
  bool numbered;
};

Sizes sizes_for(std::int64_t devices) {
  constexpr std::int64_t few = 16;
  if (devices <= few) return {56, 36, 24, true};
  return {12, 24, 4, false};
}

Box device_box(std::int64_t device, const Sizes& size, double x, double y) {
  return {x,
          y,
          size.width,
          size.height,
          Part::device,
          size.numbered ? fmt::format("{}", device) : std::string(),
          fmt::format("device {}", device)};
}

// The NICs of one way out as one box.
Box nic_box(const ClusterProfile& cluster, double x, double y, bool labelled) {
  const std::int64_t each = cluster.scale_out->nics_per_node.value / ways_out(cluster).per_node;
  const std::string text = each == 1 ? "NIC" : fmt::format("{} NICs", each);
  return {x,
          y,
          labelled ? 52.0 : 12.0,
          labelled ? 24.0 : 14.0,
          Part::nic,
          labelled ? text : std::string(),
          text};
}

// Devices in a row, hosts apart, under a bar that joins them; NICs and the network below.
MachinePicture row_picture(const ClusterProfile& cluster) {
  const std::int64_t devices = cluster.devices_per_node.value;
  const std::int64_t per_host = devices_per_host(cluster);
  const Sizes size = sizes_for(devices);
  constexpr double bar_height = 32;
  constexpr double step = 72;  // from row to row
  const double host_gap = per_host < devices ? 3 * size.gap : size.gap;
  const double bar_y = margin + bar_height / 2;
  const double device_y = bar_y + step;
  const double nic_y = device_y + step;
  MachinePicture picture;
  std::vector<double> middles;
  double x = margin + size.width / 2 + size.gap;
  for (std::int64_t device = 0; device < devices; ++device) {
    if (device > 0) x += size.width + (device % per_host == 0 ? host_gap : size.gap);
    middles.push_back(x);
    picture.boxes.push_back(device_box(device, size, x, device_y));
    picture.lines.push_back({x, bar_y, x, device_y, Part::link});
  }
  picture.width = x + size.width / 2 + size.gap + margin;
  const double bar_width = picture.width - 2 * margin;
  const std::string fabric = cluster.scale_up.fabric.value == Fabric::pcie ? "PCIe" : "NVSwitch";
  picture.boxes.push_back(
      {picture.width / 2, bar_y, bar_width, bar_height, Part::fabric, fabric, fabric});
  picture.height = device_y + size.height / 2 + margin;
  if (!cluster.scale_out) return picture;
  const std::int64_t ways = ways_out(cluster).per_node;
  const std::int64_t shared_by = devices / ways;
  const double network_y = nic_y + step - margin;
  for (std::int64_t way = 0; way < ways; ++way) {
    const double first = middles[at(way * shared_by)];
    const double last = middles[at((way + 1) * shared_by - 1)];
    const double middle = (first + last) / 2;
    for (std::int64_t i = 0; i < shared_by; ++i) {
      picture.lines.push_back(
          {middles[at(way * shared_by + i)], device_y, middle, nic_y, Part::link_out});
    }
    picture.lines.push_back({middle, nic_y, middle, network_y, Part::link_out});
    picture.boxes.push_back(nic_box(cluster, middle, nic_y, size.numbered));
  }
  picture.boxes.push_back({picture.width / 2, network_y, bar_width, bar_height, Part::network,
                           "network between nodes", "network between nodes"});
  picture.height = network_y + bar_height / 2 + margin;
  return picture;
}

bool are_joined(const ClusterProfile& cluster, std::int64_t a, std::int64_t b) {
  return cluster.scale_up.fabric.value != Fabric::cube_mesh || cube_mesh_links[at(a)][at(b)] > 0;
}

// Devices in a circle with their links; NICs outside, the network below them named only.
MachinePicture circle_picture(const ClusterProfile& cluster) {
  const std::int64_t devices = cluster.devices_per_node.value;
  const Sizes size = sizes_for(devices);
  const double radius = circle_radius(devices, size.width + size.gap);
  constexpr double nic_distance = 84;
  const double outer = radius + (cluster.scale_out ? nic_distance : 0);
  const double middle = margin + outer + size.width / 2;
  MachinePicture picture;
  picture.width = picture.height = 2 * middle;
  // The first at the upper left, so that four stand in a square.
  const auto place_at = [&](double position, double distance) {
    const double angle =
        2 * std::numbers::pi * (position + 0.5) / static_cast<double>(devices) - std::numbers::pi;
    return std::pair(middle + distance * std::cos(angle), middle + distance * std::sin(angle));
  };
  for (std::int64_t a = 0; a < devices; ++a) {
    const auto [x, y] = place_at(static_cast<double>(a), radius);
    picture.boxes.push_back(device_box(a, size, x, y));
    for (std::int64_t b = a + 1; b < devices; ++b) {
      if (!are_joined(cluster, a, b)) continue;
      const auto [other_x, other_y] = place_at(static_cast<double>(b), radius);
      picture.lines.push_back({x, y, other_x, other_y, Part::link});
    }
  }
  if (!cluster.scale_out) return picture;
  const std::int64_t ways = ways_out(cluster).per_node;
  const std::int64_t shared_by = devices / ways;
  for (std::int64_t way = 0; way < ways; ++way) {
    const double position =
        static_cast<double>(way * shared_by) + static_cast<double>(shared_by - 1) / 2;
    const auto [x, y] = place_at(position, outer);
    for (std::int64_t i = 0; i < shared_by; ++i) {
      const auto [from_x, from_y] = place_at(static_cast<double>(way * shared_by + i), radius);
      picture.lines.push_back({from_x, from_y, x, y, Part::link_out});
    }
    picture.boxes.push_back(nic_box(cluster, x, y, size.numbered));
  }
  return picture;
}

MachinePicture cluster_picture(const ClusterProfile& cluster) {
  return is_direct(cluster.scale_up.fabric.value) ? circle_picture(cluster) : row_picture(cluster);
}

// One class of report.css for every part.
std::string_view class_of(Part part) {
  switch (part) {
    case Part::device:
      return "device";
    case Part::fabric:
      return "fabric";
    case Part::nic:
      return "nic";
    case Part::network:
      return "network";
    case Part::link:
      return "link";
    case Part::link_out:
      return "link-out";
    case Part::wrap:
      return "wrap";
  }
  return {};
}

}  // namespace

std::optional<MachinePicture> picture_of(const Machine& machine, const Place& place) {
  if (const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network)) {
    if (cluster->devices_per_node.value > most_drawn) return std::nullopt;
    return cluster_picture(*cluster);
  }
  if (machine.devices > most_drawn) return std::nullopt;
  if (machine.torus) return torus_picture(*machine.torus);
  return network_picture(std::get<NetworkDescription>(machine.profile.network), machine.devices,
                         place);
}

std::string to_svg(const MachinePicture& picture, const std::string& label) {
  std::string svg = fmt::format(
      "<svg class=\"machine\" viewBox=\"0 0 {:.0f} {:.0f}\" style=\"max-width: {:.0f}px\" "
      "role=\"img\" aria-label=\"{}\">\n",
      picture.width, picture.height, picture.width, html_escape(label));
  for (const MachinePicture::Line& line : picture.lines) {
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        class_of(line.part), line.x1, line.y1, line.x2, line.y2);
  }
  for (const Box& box : picture.boxes) {
    svg += fmt::format(
        "<g class=\"{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"{:.1f}\"/>",
        class_of(box.part), html_escape(box.title), box.x - box.width / 2, box.y - box.height / 2,
        box.width, box.height, std::min(box.width, box.height) / 5);
    if (!box.label.empty()) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", box.x, box.y,
                         html_escape(box.label));
    }
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace shardsim
