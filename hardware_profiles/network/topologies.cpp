#include "hardware_profiles/network/topologies.hpp"

#include <fmt/format.h>

#include <cassert>

#include "base/index.hpp"

namespace shardsim {
namespace {

using Sizes = std::vector<std::int64_t>;

NodeId checked_devices(std::int64_t devices, const Place& place) {
  return static_cast<NodeId>(checked_nodes({devices}, place));
}

void check_links(std::int64_t links, const Place& place) {
  if (links > most_links) {
    throw InputError(place, fmt::format("{} links are more than the {} that are simulated one by "
                                        "one",
                                        links, most_links));
  }
}

// The wires of one device in one dimension.
struct Neighbours {
  bool up = false;
  bool down = false;
};

Neighbours neighbours(std::int64_t coordinate, std::int64_t size, bool wraps) {
  const bool closed = wraps && size > 2;
  return {coordinate + 1 < size || closed, coordinate > 0 || closed};
}

}  // namespace

std::int64_t checked_nodes(const Sizes& sizes, const Place& place) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) throw InputError(place, fmt::format("a size of {}: at least 1 is needed", size));
    if (size > most_nodes / product) {
      throw InputError(place, fmt::format("{} nodes are more than the {} that are simulated one by "
                                          "one",
                                          fmt::join(sizes, " x "), most_nodes));
    }
    product *= size;
  }
  return product;
}

NetworkGraph ring(std::int64_t devices, const Wire& wire, const Place& place) {
  return torus({devices}, {true}, wire, place);
}

NetworkGraph torus(const Sizes& sizes, const std::vector<bool>& wraps, const Wire& wire,
                   const Place& place) {
  assert(sizes.size() == wraps.size());
  const std::int64_t devices = checked_nodes(sizes, place);
  NetworkBuilder builder(static_cast<NodeId>(devices));
  for (std::int64_t device = 0; device < devices; ++device) {
    std::int64_t stride = devices;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      stride /= sizes[i];
      const std::int64_t size = sizes[i];
      const std::int64_t coordinate = device / stride % size;
      const auto link_to = [&](std::int64_t other) {
        builder.connect_one_way(static_cast<NodeId>(device),
                                static_cast<NodeId>(device + (other - coordinate) * stride), wire);
      };
      const Neighbours has = neighbours(coordinate, size, wraps[i]);
      const bool is_odd = coordinate % 2 == 1;
      if (is_odd && has.down) link_to((coordinate + size - 1) % size);
      if (has.up) link_to((coordinate + 1) % size);
      if (!is_odd && has.down) link_to((coordinate + size - 1) % size);
    }
  }
  return std::move(builder).freeze(place);
}

NetworkGraph full(std::int64_t devices, const Wire& wire, const Place& place) {
  const NodeId count = checked_devices(devices, place);
  check_links(devices * (devices - 1), place);
  NetworkBuilder builder(count);
  for (NodeId from = 0; from < count; ++from) {
    for (NodeId to = 0; to < count; ++to) {
      if (from != to) builder.connect_one_way(from, to, wire);
    }
  }
  return std::move(builder).freeze(place);
}

NetworkGraph switched(std::int64_t devices, const Wire& wire, const Place& place) {
  return fat_tree({devices}, {}, wire, place);
}

// A switch of tier l is named by what is above it, as in a tree, and by which of the wires up led
// there: its number in the tier is above * (product of wires up) + wires.
NetworkGraph fat_tree(const Sizes& sizes, const Sizes& oversubscription, const Wire& wire,
                      const Place& place) {
  assert(!sizes.empty() && oversubscription.size() + 1 == sizes.size());
  const std::int64_t devices = checked_nodes(sizes, place);
  NetworkBuilder builder(checked_devices(devices, place));
  std::int64_t below = devices;   // nodes of the tier below
  NodeId first_below = 0;         // and their first number
  std::int64_t copies_below = 1;  // by wires
  for (std::size_t tier = 0; tier < sizes.size(); ++tier) {
    std::int64_t up = 1;
    if (tier > 0) {
      const std::int64_t ratio = oversubscription[tier - 1];
      if (ratio < 1 || sizes[tier - 1] % ratio != 0) {
        throw InputError(place, fmt::format("an oversubscription of {} does not divide {} wires",
                                            ratio, sizes[tier - 1]));
      }
      up = sizes[tier - 1] / ratio;
    }
    const std::int64_t copies = copies_below * up;
    const std::int64_t above = below / copies_below / sizes[tier];
    const std::int64_t switches = checked_nodes({above, copies}, place);
    const NodeId first = builder.add_switches(switches);
    check_links(2 * below * up, place);
    for (std::int64_t node = 0; node < below; ++node) {
      const std::int64_t parent = node / copies_below / sizes[tier];
      const std::int64_t copy = node % copies_below;
      for (std::int64_t k = 0; k < up; ++k) {
        builder.connect(static_cast<NodeId>(first_below + node),
                        static_cast<NodeId>(first + parent * copies + copy * up + k), wire);
      }
    }
    below = switches;
    first_below = first;
    copies_below = copies;
  }
  return std::move(builder).freeze(place);
}

// Port q of group i leads to group i + q + 1, where port groups - 2 - q leads back.
NetworkGraph dragonfly(const DragonflyShape& shape, const Wire& wire, const Place& place) {
  const std::int64_t ports = checked_nodes({shape.routers, shape.global}, place);
  const std::int64_t groups = ports + 1;
  const std::int64_t devices = checked_nodes({groups, shape.routers, shape.devices}, place);
  check_links(groups * shape.routers * shape.routers + groups * ports + 2 * devices, place);
  NetworkBuilder builder(static_cast<NodeId>(devices));
  const NodeId first = builder.add_switches(groups * shape.routers);
  const auto router = [&](std::int64_t group, std::int64_t index) {
    return static_cast<NodeId>(first + group * shape.routers + index);
  };
  for (NodeId device = 0; device < devices; ++device) {
    builder.connect(device, router(0, device / shape.devices), wire);
  }
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t a = 0; a < shape.routers; ++a) {
      for (std::int64_t b = 0; b < shape.routers; ++b) {
        if (a != b) builder.connect_one_way(router(group, a), router(group, b), wire);
      }
    }
    for (std::int64_t port = 0; port < ports; ++port) {
      const std::int64_t other = (group + port + 1) % groups;
      const std::int64_t back = groups - 2 - port;
      builder.connect_one_way(router(group, port / shape.global),
                              router(other, back / shape.global), wire);
    }
  }
  return std::move(builder).freeze(place);
}

}  // namespace shardsim
