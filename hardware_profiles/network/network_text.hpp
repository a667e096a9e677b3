// Networks written in place, for what-ifs:
//
//   ring(bandwidth=50GiB/s,latency=500ns)          as many devices as are asked for
//   full(...)  switch(...)                         the same; a count may come first: full(8,...)
//   torus(4x4x4,bandwidth=90GB/s,latency=1us)      all dimensions wrap, but for wrap=no
//   fat-tree(16x8,oversubscription=2,...)          16 devices at a leaf, 8 leaves, and so on up
//   dragonfly(4x2x2,...)                           routers x devices at each x global wires of each
//
// `bandwidth` and `latency` are those of every link in one direction; `device=h100` gives the
// devices the compute and memory of a shipped profile's. What the networks are as graphs is in
// topologies.hpp. A network can also be a graph of one's own, read from a profile
// (given_graph.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/network/given_graph.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "hardware_profiles/network/topologies.hpp"

namespace shardsim {

enum class NetworkKind : std::uint8_t { ring, torus, full, switched, fat_tree, dragonfly, graph };

struct NetworkDescription {
  std::string text;  // as it was written; of a graph its JSON
  NetworkKind kind = NetworkKind::ring;
  std::vector<std::int64_t> shape;  // empty: as many devices as are asked for
  bool wraps = true;
  std::vector<std::int64_t> oversubscription;  // of a fat tree, by tier but the last
  Wire wire;
  std::string device;               // "h100"; empty: nothing is known of compute and memory
  std::optional<GivenGraph> graph;  // set iff the kind is graph; then shape and wire are empty
};

// Whether `text` is such a network and not the name of a profile.
[[nodiscard]] bool is_network_text(const std::string& text);
// Throws InputError for an unknown kind or key, for what is missing, twice or has no meaning for
// the kind, and for numbers without a unit.
[[nodiscard]] NetworkDescription parse_network(const std::string& text, const Place& place);

// The devices that its shape gives; nothing where it has none.
[[nodiscard]] std::optional<std::int64_t> devices_of(const NetworkDescription& description,
                                                     const Place& place);
// Throws InputError where the shape gives another number of devices.
void check_devices(const NetworkDescription& description, std::int64_t devices, const Place& place);
// Throws InputError as check_devices and topologies.hpp say.
[[nodiscard]] NetworkGraph build(const NetworkDescription& description, std::int64_t devices,
                                 const Place& place);
[[nodiscard]] RouteChoice route_choice(NetworkKind kind);

}  // namespace shardsim
