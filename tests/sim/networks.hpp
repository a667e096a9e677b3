// Networks and groups for tests of collectives on them.
#pragma once

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "hardware_profiles/network/topologies.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::testing {

using Groups = std::vector<std::vector<NodeId>>;

inline const Wire wire{Bandwidth(50.0 * GiB), Seconds(500e-9)};

inline void holds(bool passed) { CHECK(passed); }

inline std::vector<NodeId> all_devices(const NetworkGraph& graph) {
  std::vector<NodeId> devices(static_cast<std::size_t>(graph.devices()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// For schedules whose ranks are the nodes of the graph.
inline Groups all_nodes(const NetworkGraph& graph) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(graph.nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  return {nodes};
}

inline network::Traffic traffic_on(const NetworkGraph& graph, const Groups& groups,
                                   const network::Schedule& schedule,
                                   RouteChoice choice = RouteChoice::first) {
  Router router(graph, choice);
  return network::traffic_of(graph, router, groups, schedule);
}

// Of the rings of a full mesh: one, some or all.
inline network::Strides some_strides(std::int64_t ranks) {
  network::Strides all = network::all_strides(ranks);
  all.resize(static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(1, std::ssize(all) + 1)));
  return all;
}

// Of at most 64 devices.
inline NetworkGraph arbitrary_network() {
  const auto sizes = [](int dims) {
    return *rc::gen::container<std::vector<std::int64_t>>(dims,
                                                          rc::gen::inRange<std::int64_t>(2, 5));
  };
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return ring(*rc::gen::inRange(2, 17), wire, {});
    case 1: {
      const int dims = *rc::gen::inRange(1, 4);
      return torus(sizes(dims),
                   *rc::gen::container<std::vector<bool>>(dims, rc::gen::arbitrary<bool>()), wire,
                   {});
    }
    case 2:
      return switched(*rc::gen::inRange(2, 17), wire, {});
    case 3:
      return dragonfly({*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 3), 1}, wire, {});
    default:
      return fat_tree({4, *rc::gen::inRange(2, 5), *rc::gen::inRange(1, 4)},
                      {*rc::gen::element(1, 2, 4), 1}, wire, {});
  }
}

// Groups of one size: devices that follow each other, or that are as far apart as possible.
inline Groups arbitrary_groups(NodeId devices) {
  std::vector<NodeId> sizes;
  for (NodeId size = 2; size <= devices; ++size) {
    if (devices % size == 0) sizes.push_back(size);
  }
  const NodeId size = *rc::gen::elementOf(sizes);
  const bool strided = *rc::gen::arbitrary<bool>();
  Groups groups(static_cast<std::size_t>(devices / size));
  for (NodeId device = 0; device < devices; ++device) {
    const NodeId group = strided ? device % (devices / size) : device / size;
    groups[static_cast<std::size_t>(group)].push_back(device);
  }
  return groups;
}

}  // namespace shardsim::testing
