#include "experiments/machine_reshard_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "sim/torus_routes.hpp"

namespace shardsim {
namespace {

bool is_torus(const Profile& profile) {
  return std::holds_alternative<TorusProfile>(profile.network);
}

// As many devices of a cluster as there are, whether or not they could be bought alone.
Machine part_of_cluster(const Profile& profile, std::int64_t devices, const Place& place) {
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  check_network_between_nodes(profile, devices, place);
  return {profile, devices, ceil_div(devices, cluster.devices_per_node.value), std::nullopt};
}

Machine machine_for(const Profile& profile, const Mesh& mesh, const ReshardMeshes& meshes,
                    const std::optional<std::string>& topology, const Place& place) {
  if (std::holds_alternative<NetworkDescription>(profile.network)) {
    throw InputError(place,
                     "resharding is priced on clusters and slices only, not on networks written in "
                     "place or given as a graph");
  }
  if (!is_torus(profile)) {
    if (topology) throw InputError(place, fmt::format("{} is no torus: no topology", profile.name));
    return part_of_cluster(profile, mesh.devices(), place);
  }
  if (!meshes.shared) {
    throw InputError(place, fmt::format("{} is a torus: from one slice to another is not priced, "
                                        "so the devices must be shared",
                                        profile.name));
  }
  if (meshes.source.devices() != meshes.target.devices()) {
    throw InputError(place,
                     fmt::format("{} is a torus: meshes of {} and {} devices do not lie on "
                                 "the same slice",
                                 profile.name, meshes.source.devices(), meshes.target.devices()));
  }
  return make_machine(profile, mesh.devices(), topology, place);
}

// Positions are ids: on a torus the device's number, in which x varies fastest.
Placement placement_of_all(const Machine& source, const ReshardMeshes& meshes, const Place& place) {
  if (!source.torus) {
    const std::int64_t devices = meshes.shared
                                     ? std::max(meshes.source.devices(), meshes.target.devices())
                                     : meshes.source.devices() + meshes.target.devices();
    return {Mesh({{"device", devices}}), part_of_cluster(source.profile, devices, place)};
  }
  std::vector<MeshAxis> axes;
  std::vector<std::vector<TorusSpan>> spans;
  const std::vector<std::int64_t> sizes = source.torus->device_sizes();
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::int64_t size = sizes[i];
    const bool in_chip = i >= source.torus->sizes.size();
    axes.push_back({in_chip ? "chip" : std::string(1, "xyz"[i]), size});
    spans.emplace_back();
    if (size > 1) spans.back().push_back({static_cast<int>(i), size, 1});
  }
  return {Mesh(std::move(axes)), source, std::move(spans)};
}

DeviceMesh devices_of(const Placement& placement, std::int64_t first) {
  DeviceMesh result = numbered(placement.mesh(), first);
  if (!placement.machine().torus) return result;
  const TorusRoutes routes(placement);
  for (std::int64_t& device : result.devices) device = routes.device(device);
  return result;
}

Seconds time_of(std::int64_t bytes, const LinkProfile& link) {
  return Bytes(bytes) / Bandwidth(link.bandwidth.value.count() * link.efficiency.value);
}

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
        transfer = std::max(transfer, time_of(inside.bytes, cluster_.scale_up));
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
  explicit TorusMeter(const Placement& chips) : profile_(chips.machine().profile), routes_(chips) {}

  void add(const Message& message) override {
    routes_.add(message.source, message.target, message.bytes.count());
  }

  [[nodiscard]] Seconds time() const override {
    if (routes_.longest() == 0) return Seconds{0};
    const LinkProfile& link = std::get<TorusProfile>(profile_.network).link;
    return profile_.collective_launch.value +
           link.latency.value * static_cast<double>(routes_.longest()) +
           routes_.transfer_time(/*bytes=*/1);
  }

 private:
  const Profile& profile_;
  TorusRoutes routes_;
};

}  // namespace

MachineReshardCost::MachineReshardCost(const Profile& profile, const ReshardMeshes& meshes,
                                       const std::optional<std::string>& topology,
                                       const Place& place)
    : profile_(profile),
      source_placement_(meshes.source,
                        machine_for(profile, meshes.source, meshes, topology, place)),
      target_placement_(meshes.target,
                        machine_for(profile, meshes.target, meshes, topology, place)),
      all_(placement_of_all(source_placement_.machine(), meshes, place)) {
  source_ = devices_of(source_placement_, 0);
  target_ = devices_of(target_placement_, meshes.shared ? 0 : meshes.source.devices());
}

std::int64_t MachineReshardCost::domain(std::int64_t device) const {
  if (is_torus(profile_)) return 0;
  return device / std::get<ClusterProfile>(profile_.network).devices_per_node.value;
}

std::optional<Seconds> MachineReshardCost::collective(ReshardPart part,
                                                      const Collective& collective) const {
  const bool of_source = part == ReshardPart::source;
  const Placement& placement = of_source ? source_placement_ : target_placement_;
  CollectiveCosts& costs = of_source ? source_costs_ : target_costs_;
  if (is_torus(profile_)) {
    try {
      return costs.cost(collective).total();
    } catch (const InputError&) {
      return std::nullopt;  // the part of an axis cuts a dimension where it cannot be cut
    }
  }
  const std::int64_t first = (of_source ? source_ : target_).devices[0];
  const std::int64_t per_node = std::get<ClusterProfile>(profile_.network).devices_per_node.value;
  if (first % per_node == 0) return costs.cost(collective).total();
  // The mesh begins in the middle of a node: groups by id see the nodes as they are.
  Collective listed = collective;
  listed.groups = placement.mesh().groups(collective.axes);
  listed.axes.clear();
  for (auto& group : listed.groups) {
    for (std::int64_t& device : group) device += first;
  }
  return all_costs_.cost(listed).total();
}

std::unique_ptr<TransferMeter> MachineReshardCost::transfer() const {
  if (is_torus(profile_)) return std::make_unique<TorusMeter>(all_);
  return std::make_unique<ClusterMeter>(profile_, all_.mesh().devices());
}

}  // namespace shardsim
