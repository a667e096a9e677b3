// A machine drawn: where its devices, switches and NICs stand and what joins them.
//
//   cluster   one of its nodes: a bar for switches, or a circle of devices where links are direct;
//             NICs between the devices and the network. Devices of an NVLink domain of several
//             hosts stand by host.
//   torus     the grid of the slice, three dimensions in parallel projection; a dimension that
//             closes to a ring ends in dashed stubs
//   network   written in place: rings and full meshes as circles, trees by tiers, dragonflies by
//             groups, tori as above; a graph in rows, by how far nodes are from devices
//
//   Machine m = make_machine(load_profile("dgx-h100", place), 8, std::nullopt, place);
//   machine_text(m)      "              [         NVSwitch         ]" ...
//   to_svg(picture_of(m))
//
// Machines of more than `most_drawn` devices are described, not drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"

namespace shardsim {

inline constexpr std::int64_t most_drawn = 512;

struct MachinePicture {
  enum class Part : std::uint8_t { device, fabric, nic, network, link, link_out, wrap };
  struct Box {
    double x = 0;  // of its middle, as y
    double y = 0;
    double width = 0;
    double height = 0;
    Part part = Part::device;
    std::string label;  // in it; empty where there is no room
    std::string title;  // what a pointer over it reads
  };
  struct Line {
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
    Part part = Part::link;
  };
  double width = 0;
  double height = 0;
  std::vector<Line> lines;  // under the boxes
  std::vector<Box> boxes;
};

// Nothing for more than most_drawn devices, and for tori of more than three dimensions.
[[nodiscard]] std::optional<MachinePicture> picture_of(const Machine& machine, const Place& place);
// An <svg> that takes its colours from report.css.
[[nodiscard]] std::string to_svg(const MachinePicture& picture, const std::string& label);

// What the picture shows, in words and numbers: "inside a node: NVSwitch, 450.0 GB/s ...".
[[nodiscard]] std::vector<std::string> machine_legend(const Machine& machine, const Place& place);

// The picture in characters with its legend below it. Long rows are cut short: 0 1 2 ... 71.
[[nodiscard]] std::string machine_text(const Machine& machine, const Place& place);

}  // namespace shardsim
