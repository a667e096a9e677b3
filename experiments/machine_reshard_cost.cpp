#include "experiments/machine_reshard_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "base/json.hpp"
#include "experiments/transfer_meters.hpp"
#include "hardware_profiles/network/machine_graph.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "sim/collectives/torus_routes.hpp"

namespace shardsim {
namespace {

constexpr double most_links_looked_at = 0x1p21;  // by the messages of an all-to-all: half a second

bool is_torus(const Profile& profile) {
  return std::holds_alternative<TorusProfile>(profile.network);
}

// As many devices of a cluster as there are, whether or not they could be bought alone.
Machine part_of_cluster(const Profile& profile, std::int64_t devices, const Place& place) {
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  check_network_between_nodes(profile, devices, place);
  return {profile, devices, ceil_div(devices, cluster.devices_per_node.value), std::nullopt};
}

std::int64_t past(const std::vector<std::int64_t>& devices) {
  return *std::max_element(devices.begin(), devices.end()) + 1;
}

// How many devices there must be: numbers from 0 on.
std::int64_t devices_needed(const ReshardMeshes& meshes) {
  if (meshes.source_devices)
    return std::max(past(*meshes.source_devices), past(*meshes.target_devices));
  return meshes.shared ? std::max(meshes.source.devices(), meshes.target.devices())
                       : meshes.source.devices() + meshes.target.devices();
}

DeviceMesh devices_of(const Mesh& mesh, const std::optional<std::vector<std::int64_t>>& listed,
                      std::int64_t first) {
  return listed ? DeviceMesh{mesh, *listed} : numbered(mesh, first);
}

bool follow_each_other(const std::vector<std::int64_t>& devices) {
  return std::adjacent_find(devices.begin(), devices.end(), [](std::int64_t a, std::int64_t b) {
           return b != a + 1;
         }) == devices.end();
}

// Of the smallest slice that has so many; without one as many as are asked for.
std::int64_t smallest_slice(const TorusProfile& torus, std::int64_t least) {
  for (std::int64_t devices = least; devices <= 2 * most_listed_device; ++devices) {
    if (largest_slice(torus, devices) == devices) return devices;
  }
  return least;
}

// Of "4x4x8_twisted" 128 chips; 0 of what is no shape, which make_machine refuses.
std::int64_t chips_of(const std::string& topology) {
  const std::string shape = topology.substr(0, topology.find('_'));
  std::int64_t chips = 1;
  for (std::size_t at = 0; at <= shape.size();) {
    const std::size_t end = std::min(shape.find('x', at), shape.size());
    const Json size = Json::parse(shape.substr(at, end - at), nullptr, /*allow_exceptions=*/false);
    if (!size.is_number_unsigned() || size > 1024 || chips > most_listed_device) return 0;
    chips *= size.get<std::int64_t>();
    at = end + 1;
  }
  return chips;
}

Mesh line_of(std::int64_t devices) { return Mesh({{"device", devices}}); }

// Every device of a slice by number.
Placement placement_by_number(const Machine& machine) {
  const Mesh mesh = mesh_of_torus(*machine.torus);
  return {mesh, machine, *spans_by_number(*machine.torus, mesh)};
}

// Every device of a group sends to every other: links that messages go over, in all groups, as in
// the first.
double links_looked_at(const MachineGraph& graph, const std::vector<std::int64_t>& group,
                       std::int64_t devices) {
  Router router(graph.graph, graph.choice);
  double hops = 0;
  for (const std::int64_t device : group) {
    const auto to = static_cast<NodeId>(group[group.size() / 2]);
    hops += static_cast<double>(router.route(static_cast<NodeId>(device), to).size());
  }
  return hops * static_cast<double>(devices);
}

}  // namespace

struct MachineReshardCost::Ground {
  explicit Ground(Placement where) : placement(std::move(where)) {}

  Placement placement;
  CollectiveCosts costs{placement};
};

MachineReshardCost::MachineReshardCost(const Profile& profile, const ReshardMeshes& meshes,
                                       const ReshardTopologies& topologies, const Place& place)
    : profile_(profile), place_(place) {
  const bool on_slices = is_torus(profile) && !meshes.shared && !meshes.source_devices;
  if ((topologies.source || topologies.target) && !on_slices) {
    throw InputError(place,
                     "a topology of one end is that of its own slice of a torus, where "
                     "devices are disjoint and not listed");
  }
  if (on_slices) {
    place_on_slices(meshes, topologies, place);
  } else if (is_torus(profile)) {
    place_on_slice(meshes, topologies.both, place);
  } else if (topologies.both) {
    throw InputError(place, fmt::format("{} is no torus: no topology", profile.name));
  } else if (std::holds_alternative<ClusterProfile>(profile.network)) {
    place_on_cluster(meshes, place);
  } else {
    place_on_network(meshes, place);
  }
}

MachineReshardCost::~MachineReshardCost() = default;

void MachineReshardCost::place_on_cluster(const ReshardMeshes& meshes, const Place& place) {
  const std::int64_t devices = devices_needed(meshes);
  const std::int64_t per_node = std::get<ClusterProfile>(profile_.network).devices_per_node.value;
  source_.all = target_.all = std::make_shared<Ground>(
      Placement(line_of(devices), part_of_cluster(profile_, devices, place)));
  source_.mesh = devices_of(meshes.source, meshes.source_devices, 0);
  target_.mesh =
      devices_of(meshes.target, meshes.target_devices, meshes.shared ? 0 : meshes.source.devices());
  for (End* end : {&source_, &target_}) {
    const std::vector<std::int64_t>& ids = end->mesh.devices;
    // From the middle of a node on, groups by number see the nodes as they are.
    if (ids[0] % per_node != 0 || !follow_each_other(ids)) continue;
    const Mesh& mesh = end->mesh.mesh;
    end->own =
        std::make_shared<Ground>(Placement(mesh, part_of_cluster(profile_, mesh.devices(), place)));
  }
}

void MachineReshardCost::place_on_network(const ReshardMeshes& meshes, const Place& place) {
  const std::int64_t needed = devices_needed(meshes);
  const auto& network = std::get<NetworkDescription>(profile_.network);
  const std::int64_t devices = shardsim::devices_of(network, place).value_or(needed);
  if (needed > devices) {
    throw InputError(
        place, fmt::format("the network has {} devices, the two meshes take {}", devices, needed));
  }
  const Machine machine = make_machine(profile_, devices, std::nullopt, place);
  source_.all = target_.all = std::make_shared<Ground>(Placement(line_of(devices), machine));
  source_.mesh = devices_of(meshes.source, meshes.source_devices, 0);
  target_.mesh =
      devices_of(meshes.target, meshes.target_devices, meshes.shared ? 0 : meshes.source.devices());
  for (End* end : {&source_, &target_}) {
    const Mesh& mesh = end->mesh.mesh;
    if (mesh.devices() != devices || !follow_each_other(end->mesh.devices)) continue;
    end->own = std::make_shared<Ground>(Placement(mesh, machine));
  }
  graph_ = graph_of(machine, place);
}

void MachineReshardCost::place_on_slice(const ReshardMeshes& meshes,
                                        const std::optional<std::string>& topology,
                                        const Place& place) {
  const auto& torus = std::get<TorusProfile>(profile_.network);
  const std::int64_t needed = devices_needed(meshes);
  std::int64_t devices = needed;
  if (topology) {
    const std::int64_t chips = chips_of(*topology);
    if (chips > 0) devices = chips * devices_per_chip(torus);
  } else if (meshes.source_devices) {
    devices = smallest_slice(torus, needed);
  }
  if (needed > devices) {
    throw InputError(place, fmt::format("a slice of {} has {} devices, the two meshes take {}",
                                        *topology, devices, needed));
  }
  const Machine machine = make_machine(profile_, devices, topology, place);
  source_.all = target_.all = std::make_shared<Ground>(placement_by_number(machine));
  place_on_torus(meshes.source, meshes.source_devices, machine, source_);
  place_on_torus(meshes.target, meshes.target_devices, machine, target_);
}

void MachineReshardCost::place_on_slices(const ReshardMeshes& meshes,
                                         const ReshardTopologies& topologies, const Place& place) {
  if (!std::get<TorusProfile>(profile_.network).dcn) {
    throw InputError(place, fmt::format("disjoint meshes lie on two slices of {}, whose profile "
                                        "has no network \"dcn\" between slices; on one they can be "
                                        "shared, or lie on devices that are listed",
                                        profile_.name));
  }
  const auto place_end = [&](const Mesh& mesh, const std::optional<std::string>& own, End& end) {
    const Machine machine =
        make_machine(profile_, mesh.devices(), own ? own : topologies.both, place);
    end.all = std::make_shared<Ground>(placement_by_number(machine));
    place_on_torus(mesh, std::nullopt, machine, end);
  };
  place_end(meshes.source, topologies.source, source_);
  target_.first = meshes.source.devices();
  place_end(meshes.target, topologies.target, target_);
}

void MachineReshardCost::place_on_torus(const Mesh& mesh,
                                        const std::optional<std::vector<std::int64_t>>& listed,
                                        const Machine& machine, End& end) const {
  end.mesh = devices_of(mesh, listed, end.first);
  if (mesh.devices() != machine.devices) return;
  if (listed) {
    DeviceOrder order;
    order.kind = DeviceOrder::Kind::listed;
    order.devices = *listed;
    end.own =
        std::make_shared<Ground>(Placement(mesh, machine, collective_models::simulated, order));
    return;
  }
  end.own = std::make_shared<Ground>(Placement(mesh, machine));
  const TorusRoutes routes(end.own->placement);
  const std::int64_t chips = machine.devices / machine.torus->devices_per_chip;
  for (std::int64_t position = 0; position < mesh.devices(); ++position) {
    // In its own numbers the second devices of all chips follow the first ones.
    const std::int64_t device = routes.device(position);
    end.mesh.devices[at(position)] =
        end.first + device % chips * machine.torus->devices_per_chip + device / chips;
  }
}

std::string MachineReshardCost::where() const {
  if (!is_torus(profile_)) return "";
  const std::string source = source_.all->placement.machine().topology();
  if (source_.all == target_.all) return "a slice of " + source;
  return fmt::format("slices of {} and {} over DCN", source,
                     target_.all->placement.machine().topology());
}

std::int64_t MachineReshardCost::domain(std::int64_t device) const {
  if (const auto* cluster = std::get_if<ClusterProfile>(&profile_.network)) {
    return device / cluster->devices_per_node.value;
  }
  const bool is_second = target_.first > 0 && device >= target_.first;
  return is_second ? 1 : 0;
}

bool MachineReshardCost::takes_too_long(const End& end, const Collective& collective) const {
  if (collective.kind != CollectiveKind::all_to_all) return false;
  std::vector<std::int64_t> group = end.mesh.mesh.first_group(collective.axes);
  const std::int64_t devices = end.mesh.mesh.devices();
  if (end.own && static_cast<std::int64_t>(group.size()) == devices) return false;
  for (std::int64_t& device : group) device = end.mesh.devices[at(device)];
  return links_looked_at(*graph_, group, devices) > most_links_looked_at;
}

std::optional<Seconds> MachineReshardCost::collective(ReshardPart part,
                                                      const Collective& collective) const {
  const End& end = part == ReshardPart::source ? source_ : target_;
  const auto cost = [&]() {
    if (end.own) return end.own->costs.cost(collective).total();
    Collective listed = collective;
    listed.groups = end.mesh.mesh.groups(collective.axes);
    listed.axes.clear();
    for (auto& group : listed.groups) {
      for (std::int64_t& device : group) device = end.mesh.devices[at(device)] - end.first;
    }
    return end.all->costs.cost(listed).total();
  };
  if (std::holds_alternative<ClusterProfile>(profile_.network)) return cost();
  if (graph_ && takes_too_long(end, collective)) return std::nullopt;
  try {
    return cost();
  } catch (const InputError&) {
    return std::nullopt;  // the part of an axis cuts a dimension where it cannot be cut
  }
}

std::unique_ptr<TransferMeter> MachineReshardCost::transfer() const {
  const Placement& all = source_.all->placement;
  if (is_torus(profile_)) {
    SlicePlacements slices{{source_.first, &all}};
    if (target_.all != source_.all) slices.emplace_back(target_.first, &target_.all->placement);
    return torus_meter(slices);
  }
  if (graph_) return network_meter(profile_, *graph_);
  return cluster_meter(profile_, all.mesh().devices());
}

Seconds MachineReshardCost::host_copies(const std::vector<std::int64_t>& devices,
                                        Bytes bytes) const {
  const std::optional<HostLinkProfile>& link = profile_.device.host_link;
  if (!link) {
    throw InputError(place_, fmt::format("{} does not say how fast devices copy to the memory of "
                                         "their host: give it a device.host_link",
                                         profile_.name));
  }
  const std::int64_t sharers = link->devices ? link->devices->value : 1;
  std::map<std::int64_t, std::int64_t> copies;  // by link
  std::int64_t most = 0;
  for (const std::int64_t device : devices) most = std::max(most, ++copies[device / sharers]);
  return link->latency.value + transfer_time(Bytes(bytes.count() * most), *link);
}

std::optional<std::int64_t> MachineReshardCost::host(std::int64_t device) const {
  const auto* cluster = std::get_if<ClusterProfile>(&profile_.network);
  if (cluster == nullptr) return std::nullopt;
  return device / devices_per_host(*cluster);
}

}  // namespace shardsim
