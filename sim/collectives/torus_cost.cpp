#include "sim/collectives/torus_cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "sim/collectives/permute_pairs.hpp"
#include "sim/collectives/torus_lanes.hpp"
#include "sim/collectives/torus_routes.hpp"
#include "sim/collectives/tpu_choice.hpp"

namespace shardsim {
namespace {

// Bytes per second of a link in one direction that are one device's: all of a link between devices
// of a chip, its part of one between chips.
class LinkRates {
 public:
  explicit LinkRates(const Placement& placement)
      : profile_(std::get<TorusProfile>(placement.machine().profile.network)),
        torus_(*placement.machine().torus) {}

  [[nodiscard]] bool in_chip(const Lane& lane) const {
    return static_cast<std::size_t>(lane.dimension) >= torus_.sizes.size();
  }
  [[nodiscard]] double between_chips() const { return rate(profile_.link); }
  [[nodiscard]] double of(const Lane& lane) const {
    if (in_chip(lane)) return rate(profile_.chip->link);
    return between_chips() / static_cast<double>(torus_.devices_per_chip);
  }
  [[nodiscard]] Seconds latency(const Lane& lane) const {
    return (in_chip(lane) ? profile_.chip->link : profile_.link).latency.value *
           static_cast<double>(lane.hops);
  }

 private:
  [[nodiscard]] static double rate(const LinkProfile& link) {
    return link.bandwidth.value.count() * link.efficiency.value;
  }

  const TorusProfile& profile_;
  const TorusShape& torus_;
};

// Bytes per second that a member can take in along the lane.
double rate_of(const Lane& lane, const LinkRates& rates) {
  return (lane.ring ? 2 : 1) * rates.of(lane) / static_cast<double>(lane.sharing);
}

// Seconds per byte, and what part of that time the links of each lane are at work.
struct LaneTimes {
  double slowest = 0;
  std::vector<double> busy;  // by lane
};

// Some of the lanes: what they span, and the bytes per second that a member can take in along them.
struct LaneSet {
  double members = 1;
  double rate = 0;
};

LaneSet set_of(const std::vector<Lane>& lanes, const LinkRates& rates, unsigned set) {
  LaneSet result;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if ((set >> i & 1U) == 0) continue;
    result.members *= static_cast<double>(lanes[i].members);
    result.rate += rate_of(lanes[i], rates);
  }
  return result;
}

// Per byte of a member's share of an all-gather: for every set of lanes, a corner of the box that
// they span takes all shares but its own in through these lanes alone. What the slowest set does
// not take comes through the others, evenly.
LaneTimes gather_times(const std::vector<Lane>& lanes, const LinkRates& rates) {
  const unsigned all = (1U << lanes.size()) - 1;
  LaneTimes times;
  unsigned slowest = all;
  for (unsigned set = all; set > 0; --set) {  // of sets alike the largest
    const LaneSet here = set_of(lanes, rates, set);
    const double time = (here.members - 1) / here.rate;
    if (time <= times.slowest) continue;
    times.slowest = time;
    slowest = set;
  }
  const LaneSet full = set_of(lanes, rates, slowest);
  const LaneSet rest = set_of(lanes, rates, all & ~slowest);
  const double left = full.members * (rest.members - 1);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const bool is_full = (slowest >> i & 1U) != 0;
    times.busy.push_back(is_full ? 1 : left / rest.rate / times.slowest);
  }
  return times;
}

// Per byte of payload of an all-to-all: half of the members send to the other half through the
// middle of each lane.
LaneTimes exchange_times(const std::vector<Lane>& lanes, const LinkRates& rates) {
  LaneTimes times;
  for (const Lane& lane : lanes) {
    const std::int64_t half = lane.members / 2;
    const std::int64_t crossing = half * (lane.members - half);
    const double share = static_cast<double>(crossing) / static_cast<double>(lane.members);
    times.busy.push_back(share / rate_of(lane, rates));
    times.slowest = std::max(times.slowest, times.busy.back());
  }
  for (double& busy : times.busy) busy /= times.slowest;
  return times;
}

std::string name_of(const Lane& lane, const LinkRates& rates) {
  return rates.in_chip(lane) ? "chip" : std::string(1, "xyz"[lane.dimension]);
}

std::string algorithm_name(const std::vector<Lane>& lanes, const LinkRates& rates) {
  std::string name;
  for (const bool ring : {true, false}) {
    std::string dimensions;
    for (const Lane& lane : lanes) {
      if (lane.ring != ring) continue;
      dimensions += (dimensions.empty() ? "" : "+") + name_of(lane, rates);
    }
    if (dimensions.empty()) continue;
    name += (name.empty() ? "" : ", ") + std::string(ring ? "ring on " : "line on ") + dimensions;
  }
  return name;
}

Seconds hop_latency(const Placement& placement) {
  return std::get<TorusProfile>(placement.machine().profile.network).link.latency.value;
}

std::string one_ring_name(const std::vector<Lane>& lanes, const LinkRates& rates) {
  std::string dimensions;
  for (const Lane& lane : lanes) {
    dimensions += (dimensions.empty() ? "" : "+") + name_of(lane, rates);
  }
  return "one ring over " + dimensions;
}

MemoryTraffic dma_traffic(const Collective& collective, CollectiveKind kind, std::int64_t members) {
  const Bytes wire = wire_bytes_per_device(kind, members, collective.payload);
  return traffic_of_dma(kind, static_cast<double>(wire.count()));
}

// How the collective runs over its lanes.
struct Way {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool one_ring = false;  // over several lanes
  std::string prefix;     // of the algorithm's name
};

bool is_one_ring(const tpu::Choice& choice) {
  switch (choice.emitter) {
    case tpu::Emitter::all_gather_1d:
    case tpu::Emitter::all_gather_1d_imbalanced:
    case tpu::Emitter::single_phase_ring_sum:
      return true;
    default:
      return choice.strategy == tpu::Strategy::ring ||
             choice.strategy == tpu::Strategy::uni_direction_1d;
  }
}

Way way_of(const Placement& placement, const Collective& collective,
           const std::vector<Lane>& lanes) {
  Way way{collective.kind, false, ""};
  if (placement.model().torus_links == TorusLinks::all) return way;
  const std::optional<tpu::Choice> choice = tpu_choice(placement, collective);
  if (!choice) return way;
  way.one_ring = lanes.size() > 1 && is_one_ring(*choice);
  const bool rewritten = choice->instruction == tpu::Instruction::all_reduce &&
                         collective.kind != CollectiveKind::all_reduce;
  if (rewritten) {
    way.kind = CollectiveKind::all_reduce;
    way.prefix = collective.kind == CollectiveKind::all_gather ? "as all-reduce: "
                                                               : "all-reduce and slice: ";
  }
  return way;
}

// Of one all-gather or reduce-scatter over a single ring through the box of the lanes. A ring that
// takes all devices of its chips has their links for itself.
CostBreakdown one_ring_cost(const Placement& placement, const std::vector<Lane>& lanes,
                            double payload, double members) {
  const LinkRates rates(placement);
  std::int64_t sharing = 1;
  bool whole_chips = false;
  for (const Lane& lane : lanes) {
    sharing = std::max(sharing, lane.sharing);
    whole_chips = whole_chips || rates.in_chip(lane);
  }
  const double link = whole_chips ? rates.between_chips() : rates.of(lanes.front());
  CostBreakdown cost;
  cost.algorithm = one_ring_name(lanes, rates);
  // Where the ring goes its links are full: whoever needs all of a dimension meets one of them.
  for (const Lane& lane : lanes) cost.links.push_back({level_of(placement, lane.dimension)});
  const double hops = std::floor(members / 2) * static_cast<double>(sharing);
  cost.latency = hop_latency(placement) * hops;
  cost.transfer =
      Seconds(payload * (members - 1) / members / (2 * link / static_cast<double>(sharing)));
  return cost;
}

// Seconds of an all-to-all per byte of payload over a whole twisted slice, where all links carry
// alike: the hops to all chips over the links of one.
double twisted_exchange_time(const Placement& placement, const LinkRates& rates) {
  const TorusShape& torus = *placement.machine().torus;
  const std::int64_t devices = placement.mesh().devices();
  const TorusRoutes routes(placement);
  std::int64_t hops = 0;
  for (std::int64_t device = 0; device < devices; ++device) hops += routes.chip_hops(0, device);
  const auto links = static_cast<double>(2 * torus.sizes.size());
  return static_cast<double>(hops) / static_cast<double>(devices) *
         static_cast<double>(torus.devices_per_chip) / (links * rates.between_chips());
}

// Of one all-gather, reduce-scatter or all-to-all over all lanes at once.
CostBreakdown all_lanes_cost(const Placement& placement, const std::vector<Lane>& lanes,
                             bool exchange, double payload, double members) {
  const LinkRates rates(placement);
  CostBreakdown cost;
  cost.algorithm = algorithm_name(lanes, rates);
  if (placement.machine().torus->twisted) cost.algorithm += ", twisted";
  for (const Lane& lane : lanes) cost.latency += rates.latency(lane);
  const Machine& machine = placement.machine();
  const bool twisted_whole =
      machine.torus->twisted && members == static_cast<double>(machine.devices);
  LaneTimes times = exchange ? exchange_times(lanes, rates) : gather_times(lanes, rates);
  if (exchange && twisted_whole) {
    times = {twisted_exchange_time(placement, rates), std::vector<double>(lanes.size(), 1)};
  }
  cost.transfer = Seconds((exchange ? payload : payload / members) * times.slowest);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    cost.links.push_back({level_of(placement, lanes[i].dimension), times.busy[i], times.busy[i]});
  }
  return cost;
}

CostBreakdown lanes_cost(const Placement& placement, const Collective& collective) {
  const std::vector<Lane> lanes = lanes_of(placement, collective.axes);
  const Way way = way_of(placement, collective, lanes);
  const auto payload = static_cast<double>(collective.payload.count());
  const auto members = static_cast<double>(Mesh::size_of(collective.axes));
  CostBreakdown cost =
      way.one_ring ? one_ring_cost(placement, lanes, payload, members)
                   : all_lanes_cost(placement, lanes, way.kind == CollectiveKind::all_to_all,
                                    payload, members);
  cost.algorithm = way.prefix + cost.algorithm;
  const double rounds = way.kind == CollectiveKind::all_reduce ? 2 : 1;
  cost.latency = cost.latency * rounds;
  cost.transfer = cost.transfer * rounds;
  cost.memory = dma_traffic(collective, way.kind, static_cast<std::int64_t>(members));
  return cost;
}

// Permutes, and groups that no axes describe: a ring both ways in the order listed, or all pairs.
CostBreakdown routed_cost(const Placement& placement, const Collective& collective) {
  const bool exchange = collective.kind == CollectiveKind::all_to_all;
  const bool permute = collective.kind == CollectiveKind::collective_permute;
  TorusRoutes routes(placement);
  double steps = 1;
  auto message = static_cast<double>(collective.payload.count());
  if (exchange) {
    for (const auto& group : collective.groups) {
      for (std::int64_t source : group) {
        for (std::int64_t target : group) routes.add(source, target);
      }
    }
    message /= static_cast<double>(collective.groups[0].size());
  } else {
    for (const auto& [source, target] : permute_pairs(placement.mesh(), collective)) {
      routes.add(source, target);
      if (!permute) routes.add(target, source);
    }
  }
  if (!exchange && !permute) {
    const auto members = static_cast<std::int64_t>(collective.groups[0].size());
    const double rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
    const std::int64_t halfway = members / 2;
    steps = rounds * static_cast<double>(halfway);
    message = static_cast<double>(
                  wire_bytes_per_device(collective.kind, members, collective.payload).count()) /
              2;  // each way
  }
  CostBreakdown cost;
  cost.algorithm = permute ? "permute" : exchange ? "pairwise" : "ring as listed";
  cost.latency = hop_latency(placement) * (steps * static_cast<double>(routes.longest()));
  cost.transfer = routes.transfer_time(message);
  for (int dimension : routes.dimensions()) {
    cost.links.push_back({level_of(placement, dimension), routes.busy(dimension, /*up=*/true),
                          routes.busy(dimension, /*up=*/false)});
  }
  const auto members = permute ? 2 : static_cast<std::int64_t>(collective.groups[0].size());
  cost.memory = dma_traffic(collective, collective.kind, members);
  return cost;
}

}  // namespace

CostBreakdown torus_cost(const Placement& placement, const Collective& collective) {
  const bool routed =
      collective.kind == CollectiveKind::collective_permute || !collective.groups.empty();
  return routed ? routed_cost(placement, collective) : lanes_cost(placement, collective);
}

}  // namespace shardsim
