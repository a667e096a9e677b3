// The wires of a machine: devices and switches, and directed links between them.
//
//   NetworkBuilder builder(/*devices=*/2);
//   const NodeId hub = builder.add_switches(1);
//   for (NodeId device = 0; device < 2; ++device) builder.connect(device, hub, wire);
//   const NetworkGraph graph = std::move(builder).freeze(place);    // 3 nodes, 4 links
//
// Built once, then frozen: nodes and links are numbers, what they are is in flat arrays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim {

using NodeId = std::int32_t;  // devices come first, in the order of their numbers; then switches
using LinkId = std::int32_t;

// A link in one direction.
struct Wire {
  Bandwidth bandwidth;
  Seconds latency;  // from the first bit sent to the first one received
};

struct NetworkLink {
  NodeId from = 0;
  NodeId to = 0;
  Wire wire;
};

class NetworkGraph {
 public:
  [[nodiscard]] NodeId devices() const { return devices_; }
  [[nodiscard]] NodeId nodes() const { return static_cast<NodeId>(first_out_.size()) - 1; }
  [[nodiscard]] bool is_device(NodeId node) const { return node < devices_; }
  // Whether messages for others pass through it: through switches, and through devices where there
  // are no switches or the builder was told so.
  [[nodiscard]] bool forwards(NodeId node) const { return devices_forward_ || !is_device(node); }
  // Ordered by where they come from; those of one node in the order in which they were connected.
  [[nodiscard]] const std::vector<NetworkLink>& links() const { return links_; }
  [[nodiscard]] LinkId first_out(
      NodeId node) const {  // links from it: [first_out(n), first_out(n + 1))
    return first_out_[static_cast<std::size_t>(node)];
  }

 private:
  friend class NetworkBuilder;
  NodeId devices_ = 0;
  bool devices_forward_ = false;
  std::vector<NetworkLink> links_;
  std::vector<LinkId> first_out_;
};

// What errors call a node: "device 3" and "node 9" where nobody has better names.
using NodeNames = std::function<std::string(NodeId)>;

class NetworkBuilder {
 public:
  explicit NetworkBuilder(NodeId devices) : devices_(devices), nodes_(devices) {}

  // The number of the first.
  NodeId add_switches(std::int64_t count) {
    const NodeId first = nodes_;
    nodes_ += static_cast<NodeId>(count);
    return first;
  }
  void connect_one_way(NodeId from, NodeId to, const Wire& wire) {
    links_.push_back({from, to, wire});
  }
  void connect(NodeId a, NodeId b, const Wire& wire) {
    connect_one_way(a, b, wire);
    connect_one_way(b, a, wire);
  }

  // Also where there are switches.
  void let_devices_forward() { devices_forward_ = true; }

  // Throws InputError where a link has no bandwidth or a latency below zero, and where a device
  // cannot be reached from another one (reachability.hpp).
  [[nodiscard]] NetworkGraph freeze(const Place& place, const NodeNames& names = {}) &&;

 private:
  NodeId devices_ = 0;
  bool devices_forward_ = false;
  NodeId nodes_ = 0;
  std::vector<NetworkLink> links_;
};

}  // namespace shardsim
