// How devices are wired: the usual topologies as graphs (network_graph.hpp). Every link is there in
// both directions.
//
//   ring(8, wire)                         each device with the next, the last with the first
//   torus({4, 4, 4}, {true, ...}, wire)   neighbours in every dimension, closed where it wraps
//   full(8, wire)                         every device with every other
//   switched(8, wire)                     every device with one switch
//   fat_tree({16, 8}, {2}, wire)          16 devices a leaf switch, 8 leaves; half as many wires up
//                                         as down
//   dragonfly(...)                        groups of switches, all with all within and across
//
// Devices are numbered row-major: those of a leaf, of a torus' last dimension, follow each other.
// All throw InputError for what is too small or has more than `most_nodes` devices and switches.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"

namespace shardsim {

inline constexpr std::int64_t most_nodes = std::int64_t{1} << 22;
inline constexpr std::int64_t most_links = std::int64_t{1} << 25;

// The product of sizes. Throws InputError where one is below 1 or the product above most_nodes.
[[nodiscard]] std::int64_t checked_nodes(const std::vector<std::int64_t>& sizes,
                                         const Place& place);

[[nodiscard]] NetworkGraph ring(std::int64_t devices, const Wire& wire, const Place& place);

// A dimension of two devices has one wire, whether it wraps or not. Out of a device links lead up,
// then down in the first dimension, then in the second, ...; from odd coordinates down, then up.
[[nodiscard]] NetworkGraph torus(const std::vector<std::int64_t>& sizes,
                                 const std::vector<bool>& wraps, const Wire& wire,
                                 const Place& place);

[[nodiscard]] NetworkGraph full(std::int64_t devices, const Wire& wire, const Place& place);
[[nodiscard]] NetworkGraph switched(std::int64_t devices, const Wire& wire, const Place& place);

// A generalized fat tree (Öhring, Ibel, Das and Kumar, "On generalized fat trees", IPPS 1995):
// `sizes` says, from the devices up, how many nodes of one tier are under a switch of the next;
// `oversubscription`, for every tier of switches but the last, how many wires lead down for each
// one up. It divides the number of wires down. With one tier it is switched().
//
// Example: sizes 4, 2, oversubscription 2: two leaves with four devices and two wires up each, to
// two spines. 8 devices, 4 switches.
[[nodiscard]] NetworkGraph fat_tree(const std::vector<std::int64_t>& sizes,
                                    const std::vector<std::int64_t>& oversubscription,
                                    const Wire& wire, const Place& place);

// `routers` in a group, all wired with each other; `devices` at each; `global` wires of each that
// lead to other groups, of which there are routers * global + 1, so that every group has one wire
// to every other (Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly
// topology", ISCA 2008).
struct DragonflyShape {
  std::int64_t routers = 1;
  std::int64_t devices = 1;
  std::int64_t global = 1;
};
[[nodiscard]] NetworkGraph dragonfly(const DragonflyShape& shape, const Wire& wire,
                                     const Place& place);

}  // namespace shardsim
