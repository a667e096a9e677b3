#include "sim/collectives/cluster_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "sim/collectives/nccl_cost.hpp"
#include "sim/collectives/one_shot.hpp"
#include "sim/collectives/permute_pairs.hpp"
#include "sim/collectives/rccl_cost.hpp"
#include "sim/collectives/row_exchange_cost.hpp"
#include "sim/nccl/describe.hpp"
#include "sim/nccl/message_channels.hpp"

namespace shardsim {
namespace {

Region region_of(const NodeSpread& spread) {
  if (spread.nodes == 1) return Region::node;
  return spread.most == 1 ? Region::rail : Region::nodes;
}

CostBreakdown ring_cost(const ClusterRates& rates, const NodeSpread& spread,
                        const Collective& collective) {
  const auto wire = static_cast<double>(
      wire_bytes_per_device(collective.kind, spread.members, collective.payload).count());
  const double rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double n = static_cast<double>(spread.members);
  const double k = static_cast<double>(spread.nodes);

  CostBreakdown cost;
  if (spread.nodes == 1) {
    cost.algorithm = "ring in the node";
    cost.latency = rates.step_inside() * (rounds * (n - 1));
    cost.transfer = rates.inside(wire, spread.members);
    cost.links = {{LinkLevel::scale_up}};
    cost.memory = traffic_of_thread_blocks(collective.kind, wire, /*nics=*/0);
    return cost;
  }
  const bool alone = spread.most == 1;  // every member has a node to itself
  // A piece makes every hop of the ring but one; the last to arrive is one that skips a short hop.
  // A broadcast goes along the ring and never comes back to its first node.
  const bool returns = collective.kind != CollectiveKind::broadcast;
  const double across = alone || !returns ? k - 1 : k;
  const double inside = alone ? 0 : n - 1 - across;
  cost.latency = rates.step_across() * (rounds * across) + rates.step_inside() * (rounds * inside);
  const Seconds time_across = rates.across(wire, spread.fewest);
  std::optional<Seconds> time_inside;
  // The slowest node that sends inside may have two members: what lies between is not known.
  if (!alone) time_inside = rates.inside(wire, std::max<std::int64_t>(spread.fewest, 2));
  cost.transfer = std::max(time_across, time_inside.value_or(Seconds(0)));
  cost.links = links_of(time_inside, time_across);
  cost.memory =
      traffic_of_thread_blocks(collective.kind, wire, wire / static_cast<double>(spread.fewest));
  const double nics = rates.nics_of(spread.fewest);
  cost.algorithm =
      fmt::format("ring over {} nodes, {} NIC{} each", spread.nodes, nics, nics == 1 ? "" : "s");
  return cost;
}

CostBreakdown all_to_all_cost(const ClusterRates& rates, const NodeSpread& spread,
                              const Collective& collective) {
  const double piece =
      static_cast<double>(collective.payload.count()) / static_cast<double>(spread.members);
  const auto inside = static_cast<double>(spread.most - 1);
  const auto across = spread.nodes == 1 ? 0.0 : static_cast<double>(spread.members - spread.fewest);
  const auto peers = static_cast<double>(spread.members - 1);

  CostBreakdown cost;
  cost.algorithm = "pairwise";
  cost.latency = rates.step_inside() * (peers - across);
  std::optional<Seconds> time_inside;
  std::optional<Seconds> time_across;
  if (inside > 0) time_inside = rates.inside(piece * inside, spread.most);
  if (across > 0) {
    cost.latency += rates.step_across() * across;
    time_across = rates.across(piece * across, 1);
  }
  cost.transfer = std::max(time_inside.value_or(Seconds(0)), time_across.value_or(Seconds(0)));
  cost.links = links_of(time_inside, time_across);
  cost.memory = traffic_of_thread_blocks(collective.kind, piece * peers, piece * across);
  return cost;
}

// Messages that the busiest device sends or receives inside its node, the busiest way out across.
struct BusiestPorts {
  std::int64_t inside = 0;
  std::int64_t across = 0;
};

BusiestPorts busiest_ports(const ClusterProfile& cluster, const Mesh& mesh,
                           const Collective& collective) {
  std::map<std::int64_t, std::int64_t> sent[2];
  std::map<std::int64_t, std::int64_t> received[2];
  BusiestPorts busiest;
  const std::int64_t per_node = cluster.devices_per_node.value;
  for (const auto& [source, target] : permute_pairs(mesh, collective)) {
    if (source == target) continue;
    const bool leaves = source / per_node != target / per_node;
    const int level = leaves ? 1 : 0;
    const std::int64_t from = leaves ? way_of(source, cluster) : source;
    const std::int64_t to = leaves ? way_of(target, cluster) : target;
    std::int64_t& most = leaves ? busiest.across : busiest.inside;
    most = std::max({most, ++sent[level][from], ++received[level][to]});
  }
  return busiest;
}

CostBreakdown permute_cost(const ClusterProfile& cluster, const BusiestPorts& busiest,
                           Bytes message) {
  const auto bytes = static_cast<double>(message.count());
  const ClusterRates rates(cluster, /*busy_per_node=*/1);  // shared ways are counted above
  CostBreakdown cost;
  cost.algorithm = "permute";
  std::optional<Seconds> time_inside;
  std::optional<Seconds> time_across;
  const double inside = bytes * static_cast<double>(busiest.inside);
  if (busiest.inside > 0) {
    cost.latency = rates.step_inside();
    time_inside = rates.inside(inside, /*members=*/2);
  }
  if (busiest.across > 0) {
    cost.latency = std::max(cost.latency, rates.step_across());
    time_across = rates.across(bytes * static_cast<double>(busiest.across), /*members=*/1);
  }
  cost.transfer = std::max(time_inside.value_or(Seconds(0)), time_across.value_or(Seconds(0)));
  cost.links = links_of(time_inside, time_across);
  cost.memory = traffic_of_thread_blocks(CollectiveKind::collective_permute,
                                         std::max(bytes, inside), time_across ? bytes : 0);
  return cost;
}

// But for the algorithm.
CurveKey curve_of(Region region, std::int64_t nodes, CollectiveKind kind) {
  return {region, std::string(name_of(kind)), "", nodes};
}

}  // namespace

ClusterCosts::ClusterCosts(const Placement& placement)
    : placement_(placement),
      cluster_(std::get<ClusterProfile>(placement.machine().profile.network)) {}

CostBreakdown ClusterCosts::cost(const Collective& collective, const Told& told) {
  const CollectiveKind kind = collective.kind;
  if (kind == CollectiveKind::collective_permute) {
    const BusiestPorts busiest = busiest_ports(cluster_, placement_.mesh(), collective);
    const CurveKey key = busiest.across > 0
                             ? curve_of(Region::nodes, placement_.machine().nodes, kind)
                             : curve_of(Region::node, /*nodes=*/1, kind);
    return corrected(key, collective.payload, [&](Bytes message) {
      CostBreakdown cost = permute_cost(cluster_, busiest, message);
      cost.launch = placement_.machine().profile.collective_launch.value;
      return cost;
    });
  }
  const ClusterRates rates(cluster_, busy_per_node(placement_.machine(), collective));
  CostBreakdown slowest;
  for (const NodeSpread& spread :
       node_spreads(placement_.mesh(), collective, cluster_.devices_per_node.value)) {
    if (spread.members == 1) continue;
    if (told.one_shot) {
      if (spread.nodes > 1) {
        throw InputError(told.place, fmt::format("one-shot all-reduces read the memory of peers: a "
                                                 "group lies in one node, this one in {}",
                                                 spread.nodes));
      }
      if (collective.payload > most_of_one_shot) {
        throw InputError(told.place, fmt::format("one-shot all-reduces are of {} at most, this one "
                                                 "is of {}",
                                                 format_bytes(most_of_one_shot),
                                                 format_bytes(collective.payload)));
      }
      CostBreakdown cost = one_shot_cost(spread.members, collective.payload,
                                         placement_.machine().profile.device.kernel_launch.value);
      if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
      continue;
    }
    if (collective.visits) {  // by kernels of their own
      CostBreakdown cost = row_exchange_cost(rates, spread, collective.payload, *collective.visits,
                                             placement_.machine().profile.device.kernels);
      cost.launch = placement_.machine().profile.collective_launch.value;
      if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
      continue;
    }
    const CurveKey key = curve_of(region_of(spread), spread.nodes, kind);
    const auto cost_of = [&](Bytes payload) {
      return group_cost(rates, spread, kind, payload, told);
    };
    CostBreakdown cost =
        corrected(key, collective.payload, cost_of, with_members(spread, kind, told));
    if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
  }
  return slowest;
}

// The group alone on as many nodes, as whoever measured it had it.
CostWithMembers ClusterCosts::with_members(const NodeSpread& spread, CollectiveKind kind,
                                           const Told& told) {
  return [this, spread, kind, &told](std::int64_t members) -> std::optional<CostOfSize> {
    const bool is_alike = spread.fewest == members || spread.fewest != spread.most;
    if (spread.nodes == 1 || is_alike || members > cluster_.devices_per_node.value) {
      return std::nullopt;
    }
    const NodeSpread measured{members * spread.nodes, spread.nodes, members, members};
    const ClusterRates rates(cluster_, members);
    return [this, measured, rates, kind, &told](Bytes payload) {
      return group_cost(rates, measured, kind, payload, told);
    };
  };
}

CostBreakdown ClusterCosts::corrected(const CurveKey& key, Bytes payload, const CostOfSize& cost,
                                      const CostWithMembers& with_members) const {
  const auto with_curve = [&](Bytes size) {
    CostBreakdown result = cost(size);
    result.curve = key;
    if (!result.protocol.empty()) result.curve->algorithm = result.algorithm;
    return result;
  };
  if (!placement_.model().calibrated) return with_curve(payload);
  const LinkProfile& narrow = key.region == Region::node
                                  ? static_cast<const LinkProfile&>(cluster_.scale_up)
                                  : static_cast<const LinkProfile&>(*cluster_.scale_out);
  return calibrated_cost(with_curve, placement_.machine().profile.calibrations,
                         narrow.efficiency.value, payload, with_members);
}

CostBreakdown ClusterCosts::group_cost(const ClusterRates& rates, const NodeSpread& spread,
                                       CollectiveKind kind, Bytes payload, const Told& told) {
  Collective collective;
  collective.kind = kind;
  collective.payload = payload;
  if (cluster_.rccl && nccl_operation(kind) && kind != CollectiveKind::broadcast) {
    return rccl_cost(cluster_, rates, spread, collective, told);
  }
  const nccl::Communicator* communicator = communicator_of(spread);
  if (communicator != nullptr && nccl_operation(kind)) {
    return nccl_cost({rates, spread, *communicator}, collective, told);
  }
  const bool exchanges = kind == CollectiveKind::all_to_all;
  CostBreakdown cost =
      exchanges ? all_to_all_cost(rates, spread, collective) : ring_cost(rates, spread, collective);
  cost.launch = placement_.machine().profile.collective_launch.value;
  if (exchanges && communicator != nullptr) {
    const Bytes message(ceil_div(payload.count(), spread.members));
    cost.thread_blocks = nccl::all_to_all_channels(*communicator, message).value_or(0);
    if (spread.nodes == 1 && cost.thread_blocks > 0) {
      const Bandwidth copied{nccl::copied_by_channel(*communicator).count() *
                             static_cast<double>(cost.thread_blocks)};
      cost.transfer = std::max(cost.transfer, payload / copied);
    }
  }
  return cost;
}

const nccl::Communicator* ClusterCosts::communicator_of(const NodeSpread& spread) {
  if (!cluster_.nccl) return nullptr;
  const auto [place, is_new] = communicators_.try_emplace(spread);
  if (is_new) place->second = nccl::describe(placement_.machine(), spread, {}, {"", "/machine"});
  return &place->second;
}

}  // namespace shardsim
