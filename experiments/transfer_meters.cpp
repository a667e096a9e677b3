#include "experiments/transfer_meters.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/index.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "sim/collectives/torus_routes.hpp"

namespace shardsim {
namespace {

class ClusterMeter final : public TransferMeter {
 public:
  ClusterMeter(const Profile& profile, std::int64_t devices)
      : profile_(profile),
        cluster_(std::get<ClusterProfile>(profile.network)),
        devices_(at(devices)),
        ways_(cluster_.scale_out ? at(way_of(devices - 1, cluster_)) + 1 : 0) {}

  void add(const Message& message) override {
    if (message.source == message.target) return;
    moves_ = true;
    const std::int64_t per_node = cluster_.devices_per_node.value;
    const bool leaves = message.source / per_node != message.target / per_node;
    const std::size_t level = leaves ? 2 : 0;
    count(devices_[at(message.source)][level], message);
    count(devices_[at(message.target)][level + 1], message);
    if (!leaves) return;
    count(ways_[at(way_of(message.source, cluster_))][0], message);
    count(ways_[at(way_of(message.target, cluster_))][1], message);
  }

  [[nodiscard]] Seconds time() const override {
    if (!moves_) return Seconds{0};
    Seconds latency{0};
    Seconds transfer{0};
    for (const Ports& ports : devices_) {
      for (const std::size_t direction : {0U, 1U}) {
        const Port& inside = ports[direction];
        const Port& across = ports[direction + 2];
        Seconds steps = cluster_.scale_up.latency.value * static_cast<double>(inside.messages);
        if (across.messages > 0) {
          steps += cluster_.scale_out->latency.value * static_cast<double>(across.messages);
        }
        latency = std::max(latency, steps);
        transfer = std::max(transfer, transfer_time(Bytes(inside.bytes), cluster_.scale_up));
      }
    }
    for (const auto& directions : ways_) {
      for (const Port& way : directions) {
        transfer = std::max(transfer, Bytes(way.bytes) / way_rate());
      }
    }
    return profile_.collective_launch.value + latency + transfer;
  }

 private:
  struct Port {
    std::int64_t bytes = 0;
    std::int64_t messages = 0;
  };
  using Ports = std::array<Port, 4>;  // into the node: out, in; NIC: out, in

  [[nodiscard]] Bandwidth way_rate() const {
    return ways_out(cluster_).bandwidth * cluster_.scale_out->efficiency.value;
  }

  static void count(Port& port, const Message& message) {
    port.bytes += message.bytes.count();
    ++port.messages;
  }

  const Profile& profile_;
  const ClusterProfile& cluster_;
  std::vector<Ports> devices_;
  std::vector<std::array<Port, 2>> ways_;  // out of a node: out, in
  bool moves_ = false;
};

class TorusMeter final : public TransferMeter {
 public:
  explicit TorusMeter(const SlicePlacements& slices)
      : profile_(slices[0].second->machine().profile),
        torus_(std::get<TorusProfile>(profile_.network)),
        per_chip_(devices_per_chip(torus_)) {
    for (const auto& [first, placement] : slices)
      slices_.push_back({first, TorusRoutes(*placement)});
  }

  void add(const Message& message) override {
    if (message.source == message.target) return;
    Slice& from = slice_of(message.source);
    if (&from == &slice_of(message.target)) {
      from.routes.add(message.source - from.first, message.target - from.first,
                      message.bytes.count());
      return;
    }
    sent_[message.source / per_chip_] += message.bytes.count();
    received_[message.target / per_chip_] += message.bytes.count();
  }

  [[nodiscard]] Seconds time() const override {
    Seconds latency{0};
    Seconds transfer{0};
    for (const Slice& slice : slices_) {
      const auto hops = static_cast<double>(slice.routes.longest());
      latency = std::max(latency, torus_.link.latency.value * hops);
      transfer = std::max(transfer, slice.routes.transfer_time(/*bytes=*/1));
    }
    for (const auto* chips : {&sent_, &received_}) {
      for (const auto& [chip, bytes] : *chips) {
        latency = std::max(latency, torus_.dcn->latency.value);
        transfer = std::max(transfer, transfer_time(Bytes(bytes), *torus_.dcn));
      }
    }
    const bool moves = latency > Seconds{0} || transfer > Seconds{0};
    return moves ? profile_.collective_launch.value + latency + transfer : Seconds{0};
  }

 private:
  struct Slice {
    std::int64_t first;
    TorusRoutes routes;
  };

  Slice& slice_of(std::int64_t device) {
    return device < slices_.back().first ? slices_.front() : slices_.back();
  }

  const Profile& profile_;
  const TorusProfile& torus_;
  std::int64_t per_chip_;
  std::vector<Slice> slices_;
  std::map<std::int64_t, std::int64_t> sent_;  // over DCN, by chip
  std::map<std::int64_t, std::int64_t> received_;
};

class NetworkMeter final : public TransferMeter {
 public:
  NetworkMeter(const Profile& profile, const MachineGraph& graph)
      : profile_(profile),
        links_(graph.graph.links()),
        choice_(graph.choice),
        router_(graph.graph, graph.choice),
        bytes_(links_.size(), 0),
        waiting_(at(graph.graph.nodes()), 0),
        latencies_(waiting_.size()) {}

  void add(const Message& message) override {
    if (message.source == message.target) return;
    const auto target = static_cast<NodeId>(message.target);
    if (target != target_) route_messages();
    target_ = target;
    messages_.push_back(message);
  }

  [[nodiscard]] Seconds time() const override {
    route_messages();
    if (!moves_) return Seconds{0};
    Seconds transfer{0};
    for (std::size_t link = 0; link < bytes_.size(); ++link) {
      transfer = std::max(transfer, Bytes(bytes_[link]) / links_[link].wire.bandwidth);
    }
    return profile_.collective_launch.value + latency_ + transfer;
  }

 private:
  static constexpr std::size_t few = 16;

  // Those to the last target: one by one, or many at once along the tree of ways to it.
  void route_messages() const {
    moves_ = moves_ || !messages_.empty();
    if (messages_.size() <= few || choice_ != RouteChoice::first) {
      for (const Message& message : messages_) route(message);
    } else {
      route_together();
    }
    messages_.clear();
  }

  void route(const Message& message) const {
    Seconds latency{0};
    for (const LinkId link :
         router_.route(static_cast<NodeId>(message.source), static_cast<NodeId>(message.target))) {
      latency += links_[at(link)].wire.latency;
      bytes_[at(link)] += message.bytes.count();
    }
    latency_ = std::max(latency_, latency);
  }

  void route_together() const {
    for (const Message& message : messages_) waiting_[at(message.source)] += message.bytes.count();
    const WaysTo ways = router_.ways_to(target_);
    latencies_[at(target_)] = Seconds{0};
    for (std::size_t i = 1; i < ways.nodes.size(); ++i) {
      const NetworkLink& link = links_[at(ways.next[i])];
      latencies_[at(ways.nodes[i])] = link.wire.latency + latencies_[at(link.to)];
    }
    for (const Message& message : messages_) {
      latency_ = std::max(latency_, latencies_[at(message.source)]);
    }
    // What is farther away has come by when a node's turn is.
    for (std::size_t i = ways.nodes.size(); i-- > 1;) {
      std::int64_t& waiting = waiting_[at(ways.nodes[i])];
      bytes_[at(ways.next[i])] += waiting;
      waiting_[at(links_[at(ways.next[i])].to)] += waiting;
      waiting = 0;
    }
    waiting_[at(target_)] = 0;
  }

  const Profile& profile_;
  const std::vector<NetworkLink>& links_;
  RouteChoice choice_;
  NodeId target_ = -1;
  // Messages to the last target are routed when the next one comes, or the time is asked for.
  mutable std::vector<Message> messages_;
  mutable Router router_;
  mutable std::vector<std::int64_t> bytes_;    // by link
  mutable std::vector<std::int64_t> waiting_;  // by node, while messages are routed together
  mutable std::vector<Seconds> latencies_;     // from a node to the target
  mutable Seconds latency_{0};
  mutable bool moves_ = false;
};

}  // namespace

Seconds transfer_time(Bytes bytes, const LinkProfile& link) {
  return bytes / Bandwidth(link.bandwidth.value.count() * link.efficiency.value);
}

std::unique_ptr<TransferMeter> cluster_meter(const Profile& profile, std::int64_t devices) {
  return std::make_unique<ClusterMeter>(profile, devices);
}

std::unique_ptr<TransferMeter> torus_meter(const SlicePlacements& slices) {
  return std::make_unique<TorusMeter>(slices);
}

std::unique_ptr<TransferMeter> network_meter(const Profile& profile, const MachineGraph& graph) {
  return std::make_unique<NetworkMeter>(profile, graph);
}

}  // namespace shardsim
