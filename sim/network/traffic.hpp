// Collectives on a network: which rank sends what over which links (traffic_of), the same for
// classes of ranks and links that nothing tells apart (fold), and how long it takes (run).
//
//   const Traffic traffic = traffic_of(graph, router, groups, ring_all_reduce(8, payload));
//   run(traffic) == run(fold(traffic))            // to the femtosecond
//
// Folding is an equitable partition: ranks of one class send to, receive from and share links with
// the same classes in the same numbers, links of one class carry as many messages of each class.
// Max-min fair shares follow from these numbers alone, and so do times. It is found by colour
// refinement (McKay, "Practical graph isomorphism", Congressus Numerantium 30, 1981), for any
// network and algorithm; on a ring all ranks are one class.
//
// Cost: traffic_of O(ranks * phases * hops); fold as much for every refinement, of which there are
// as many as symmetry needs to be told (few on rings and trees, up to half the length of a line);
// run O(events), memory as much as the traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "sim/network/flow_simulation.hpp"
#include "sim/network/phases.hpp"

namespace shardsim::network {

using RankId = std::int32_t;  // over all groups: group * size + rank in the group

// What a rank sends in every step of a phase.
struct Send {
  RankId receiver = nobody;
  FlowTime latency{0};
  std::uint32_t first_crossing = 0;  // in Traffic::crossings
  std::uint32_t crossings = 0;
};

struct TrafficPhase {
  std::int64_t steps = 1;
  Bytes bytes{0};
  std::vector<Send> sends;      // by rank
  std::vector<RankId> senders;  // who sends to each rank, or nobody
};

struct Traffic {
  std::vector<Bandwidth> capacities;  // by link, or class of links
  std::vector<std::int64_t> links;    // how many are alike
  std::vector<std::int64_t> ranks;    // by rank, or class of ranks: how many are alike
  std::vector<TrafficPhase> phases;
  std::vector<Crossing> crossings;

  [[nodiscard]] Crossings crossings_of(const Send& send) const {
    return Crossings(crossings).subspan(send.first_crossing, send.crossings);
  }
};

inline constexpr std::size_t most_crossings = std::size_t{1} << 25;

// `groups`: the devices of each, by rank; of one size, which is that of the phases, and apart. All
// run at once. Throws std::range_error for a latency of more than 2.5 hours, and where messages
// make more than `most_hops`.
[[nodiscard]] Traffic traffic_of(const NetworkGraph& graph, Router& router,
                                 const std::vector<std::vector<NodeId>>& groups,
                                 const Phases& phases, std::size_t most_hops = most_crossings);

[[nodiscard]] Traffic fold(const Traffic& traffic);

// When the last message has arrived. Throws std::range_error beyond 2.5 hours.
[[nodiscard]] FlowTime run(const Traffic& traffic);

}  // namespace shardsim::network
