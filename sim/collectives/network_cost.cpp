#include "sim/collectives/network_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/collectives/machine_flows.hpp"
#include "sim/collectives/permute_pairs.hpp"
#include "sim/network/algorithms/permute.hpp"
#include "sim/network/group.hpp"
#include "sim/network/symmetric.hpp"

namespace shardsim {
namespace {

const Place machine_place{"", "/machine"};

// Up to here every link is followed when collectives meet.
constexpr std::int64_t most_devices_by_link = 4096;
constexpr std::int64_t most_devices_in_flows = std::int64_t{1} << 17;
constexpr std::size_t most_hops_by_link = std::size_t{1} << 20;

// Empty: all.
bool has_member(const std::vector<std::int64_t>& devices, const std::vector<std::int64_t>& group) {
  return devices.empty() || std::any_of(group.begin(), group.end(), [&](std::int64_t member) {
           return std::find(devices.begin(), devices.end(), member) != devices.end();
         });
}

std::vector<Bytes> bytes_by_link(const network::Traffic& traffic, Bytes payload) {
  std::vector<Bytes> carried(traffic.capacities.size(), Bytes(0));
  for (const network::TrafficStream& stream : traffic.streams) {
    const network::Messages& messages = traffic.kinds[stream.kind];
    const Bytes sent = messages.count(payload) * messages.bytes(payload);
    for (const network::Crossing& crossing : traffic.crossings_of(stream)) {
      carried[at(crossing.link)] += sent;
    }
  }
  return carried;
}

// What switches between nodes reduce reaches another part of a NIC's bandwidth than rings do.
void set_reducing_rates(const ClusterProfile& cluster, const MachineGraph& graph,
                        network::Traffic& traffic) {
  const ScaleOutProfile& out = *cluster.scale_out;
  const double ratio = out.reduction->efficiency.value / out.efficiency.value;
  for (std::size_t i = 0; i < traffic.capacities.size(); ++i) {
    const NetworkLink& link = graph.graph.links()[i];
    const bool is_outside = std::max(link.from, link.to) >= graph.first_outside;
    if (is_outside) traffic.capacities[i] = traffic.capacities[i] * ratio;
  }
}

network::Repeats repeats_of(Folding folding) {
  return folding == Folding::folded ? network::Repeats::skipped : network::Repeats::simulated;
}

}  // namespace

NetworkCosts::NetworkCosts(const Placement& placement, Folding folding)
    : placement_(placement), network_(placement.network()), folding_(folding) {
  if (placement.machine().slices > 1) {
    throw InputError({"", "/slices"}, "flows and links of several slices are not simulated");
  }
}

CostBreakdown NetworkCosts::cost(const Collective& collective, const Told& told) {
  if (collective.payload == Bytes(0)) return {};
  try {
    const Prepared& ready = prepared(collective, told);
    if (ready.traffic.streams.empty()) return {};
    const network::FlowTime time =
        network::run(ready.traffic, collective.payload, repeats_of(folding_));
    const network::FlowTime latency = network::latency_of(ready.traffic, collective.payload);
    CostBreakdown cost;
    cost.algorithm = ready.algorithm;
    cost.latency = network::to_seconds(latency);
    cost.transfer = network::to_seconds(time - latency);
    for (const LinkLevel level : levels(collective)) cost.links.push_back({level});
    return cost;
  } catch (const std::range_error& error) {
    throw InputError(machine_place, error.what());
  }
}

LinkLoads NetworkCosts::link_loads(const Collective& collective, const Told& told) {
  const CostBreakdown whole = cost(collective, told);
  try {
    const network::Traffic traffic =
        traffic_on_graph(collective, expand(collective, group_of(collective), told));
    const std::vector<Bytes> carried = bytes_by_link(traffic, collective.payload);
    LinkLoads loads;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      loads.links.push_back({graph().graph.links()[i], carried[i]});
      loads.links.back().link.wire.bandwidth = traffic.capacities[i];
    }
    if (whole.total() > Seconds(0)) add_histories(traffic, collective.payload, loads);
    for (LinkLoad& load : loads.links) {
      if (load.bytes == Bytes(0)) continue;
      load.busy = (load.bytes / load.link.wire.bandwidth).count() /
                  (whole.latency + whole.transfer).count();
    }
    return loads;
  } catch (const std::range_error& error) {
    throw InputError(machine_place, error.what());
  }
}

// Of the traffic of the links, which have no histories yet.
void NetworkCosts::add_histories(const network::Traffic& traffic, Bytes payload,
                                 LinkLoads& loads) const {
  network::Folded folded;
  if (folding_ == Folding::folded) {
    folded = network::fold_links(traffic);
  } else {
    folded.classes.resize(loads.links.size());
    std::iota(folded.classes.begin(), folded.classes.end(), 0);
  }
  const network::Traffic& simulated = folding_ == Folding::folded ? folded.traffic : traffic;
  if (simulated.capacities.size() > most_link_histories) return;
  const network::FlowTime time = network::run(simulated, payload, repeats_of(folding_));
  loads.bin = network::to_seconds(time) / static_cast<double>(network::default_bins);
  loads.histories = network::links_over_time(simulated, payload, time);
  for (std::size_t i = 0; i < loads.links.size(); ++i) {
    loads.links[i].history = at(folded.classes[i]);
  }
}

std::optional<std::vector<Seconds>> NetworkCosts::link_times(
    const Collective& collective, const std::vector<std::int64_t>& devices, const Told& told) {
  assert(network_ != nullptr);
  if (placement_.mesh().devices() > most_devices_by_link) return std::nullopt;
  Collective part = collective;
  if (collective.kind == CollectiveKind::collective_permute) {
    part.source_targets.clear();
    for (const auto& [source, target] : permute_pairs(placement_.mesh(), collective)) {
      if (has_member(devices, {source, target})) part.source_targets.emplace_back(source, target);
    }
  }
  try {
    const network::Traffic traffic =
        traffic_on_graph(part, expand(part, group_of(part), told), devices, most_hops_by_link);
    const std::vector<Bytes> carried = bytes_by_link(traffic, collective.payload);
    std::vector<Seconds> times;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      times.push_back(carried[i] / graph().graph.links()[i].wire.bandwidth);
    }
    return times;
  } catch (const std::range_error&) {
    return std::nullopt;  // too many hops
  }
}

const MachineGraph& NetworkCosts::graph() {
  if (!graph_) {
    const std::int64_t devices = placement_.machine().devices;
    if (network_ == nullptr && devices > most_devices_in_flows) {
      throw InputError(machine_place,
                       fmt::format("{} devices: link by link, machines of up to {} are simulated",
                                   devices, most_devices_in_flows));
    }
    graph_ = graph_of(placement_.machine(), machine_place);
    router_.emplace(graph_->graph, graph_->choice);
    nodes_ = nodes_of_positions(placement_);
  }
  return *graph_;
}

const NetworkCosts::Prepared& NetworkCosts::prepared(const Collective& collective,
                                                     const Told& told) {
  Key key{collective.kind, collective.axes, collective.groups, collective.source_targets,
          told.algorithm};
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  return prepared_.emplace(std::move(key), prepare(collective, told)).first->second;
}

NetworkCosts::Prepared NetworkCosts::prepare(const Collective& collective, const Told& told) {
  const network::GroupOnNetwork group = group_of(collective);
  const network::Expansion expansion = expand(collective, group, told);
  const auto* lanes = std::get_if<network::Lanes>(&expansion.steps);
  if (network_ != nullptr && lanes != nullptr && folding_ == Folding::folded) {
    auto traffic = network::symmetric_traffic(*network_, placement_.machine().devices,
                                              group.dimensions, expansion.shape, *lanes);
    if (traffic) return {expansion.algorithm, std::move(*traffic)};
  }
  network::Traffic traffic = traffic_on_graph(collective, expansion);
  return {expansion.algorithm,
          folding_ == Folding::folded ? network::fold(traffic) : std::move(traffic)};
}

network::GroupOnNetwork NetworkCosts::group_of(const Collective& collective) const {
  return network_ != nullptr ? network::group_on(*network_, placement_.mesh(), collective)
                             : group_on_machine(placement_, collective);
}

std::vector<LinkLevel> NetworkCosts::levels(const Collective& collective) const {
  if (network_ != nullptr) return {LinkLevel::network};
  return levels_of(placement_, collective);
}

network::Expansion NetworkCosts::expand(const Collective& collective,
                                        const network::GroupOnNetwork& group,
                                        const Told& told) const {
  if (collective.kind != CollectiveKind::collective_permute) {
    const bool is_cluster = network_ == nullptr && !placement_.machine().torus;
    const bool is_all_to_all = collective.kind == CollectiveKind::all_to_all;
    const bool goes_in_rings = !is_all_to_all && collective.kind != CollectiveKind::broadcast;
    if (is_cluster && goes_in_rings && told.algorithm.value_or("ring") == "ring") {
      return rings_on_cluster(placement_, collective);
    }
    std::optional<std::string> algorithm = told.algorithm;
    const auto& torus = placement_.machine().torus;
    const bool is_twisted = network_ == nullptr && torus && torus->twisted;
    // What goes along a dimension that twists takes ways round: parts go straight where they
    // belong.
    const bool goes_straight = is_all_to_all && (is_cluster || is_twisted);
    if (goes_straight && !algorithm) algorithm = network::direct_algorithm;
    return network::expand(algorithm, collective.kind, group, told.place);
  }
  const std::int64_t devices = placement_.mesh().devices();
  return {network::direct_algorithm,
          {devices},
          network::permute(devices, permute_pairs(placement_.mesh(), collective)),
          /*uses_switch=*/false,
          /*over_all=*/true};
}

network::Traffic NetworkCosts::traffic_on_graph(const Collective& collective,
                                                const network::Expansion& expansion,
                                                const std::vector<std::int64_t>& devices,
                                                std::size_t most_hops) {
  const NetworkGraph& wires = graph().graph;
  const std::vector<std::vector<NodeId>> groups = groups_of(collective, expansion, devices);
  const auto* over = std::get_if<network::OverSwitches>(&expansion.steps);
  if (over == nullptr) {
    return network::traffic_of(wires, *router_, groups, expansion.schedule(), most_hops);
  }
  std::vector<NodeId> all(at(wires.nodes()));
  std::iota(all.begin(), all.end(), 0);
  network::Traffic traffic = network::traffic_of(
      wires, *router_, {all}, over->schedule(wires, placed(groups, expansion)), most_hops);
  if (network_ == nullptr && expansion.algorithm == network::collnet_algorithm) {
    const auto& cluster = std::get<ClusterProfile>(placement_.machine().profile.network);
    set_reducing_rates(cluster, *graph_, traffic);
  }
  return traffic;
}

std::vector<network::PlacedGroup> NetworkCosts::placed(
    const std::vector<std::vector<NodeId>>& groups, const network::Expansion& expansion) const {
  if (network_ == nullptr) {
    const auto& cluster = std::get<ClusterProfile>(placement_.machine().profile.network);
    return placed_on_cluster(cluster, *graph_, groups);
  }
  const std::int64_t per_node = expansion.shape.size() > 1 ? expansion.shape.back() : 1;
  std::vector<network::PlacedGroup> placed;
  for (const auto& group : groups) {
    placed.push_back(network::placed_in_order(graph_->graph, group, per_node));
  }
  return placed;
}

std::vector<std::vector<NodeId>> NetworkCosts::groups_of(const Collective& collective,
                                                         const network::Expansion& expansion,
                                                         const std::vector<std::int64_t>& devices) {
  if (expansion.over_all) return {nodes_};
  std::vector<std::vector<NodeId>> groups;
  for (const auto& group :
       collective.groups.empty() ? placement_.mesh().groups(collective.axes) : collective.groups) {
    if (!has_member(devices, group)) continue;
    std::vector<NodeId>& nodes = groups.emplace_back();
    for (const std::int64_t position : group) nodes.push_back(nodes_[at(position)]);
    if (expansion.uses_switch) nodes.push_back(static_cast<NodeId>(placement_.machine().devices));
  }
  return groups;
}

}  // namespace shardsim
