// Collectives on a network: which messages go over which links (traffic_of), the same for classes
// of messages and links that nothing tells apart (fold), and how long it takes for a payload (run).
//
//   const Schedule schedule = schedule_of({8}, ring_all_reduce(8));
//   const Traffic traffic = traffic_of(graph, router, groups, schedule);
//   run(traffic, payload) == run(fold(traffic), payload)          // to the femtosecond
//
// Folding is an equitable partition: streams of one class wait for streams of the same classes and
// cross links of the same classes, links of one class carry as many streams of each class. Max-min
// fair shares follow from these numbers alone, and so do times, whatever the payload. It is found
// by colour refinement (McKay, "Practical graph isomorphism", Congressus Numerantium 30, 1981), for
// any network and algorithm; on a ring all ranks' streams are one class.
//
// Cost: traffic_of O(streams * hops) and a search of the graph for every target (routes.hpp); fold
// O(hops log hops) at first, then as much for what has been told apart, each time; run O(events),
// memory as much as the traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware_profiles/network/network_graph.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "sim/network/flow_simulation.hpp"
#include "sim/network/link_history.hpp"
#include "sim/network/schedule.hpp"

namespace shardsim::network {

struct TrafficStream {
  FlowTime latency{0};
  std::uint32_t kind = 0;            // in Traffic::kinds
  std::uint32_t first_crossing = 0;  // in Traffic::crossings
  std::uint32_t crossings = 0;
  std::uint32_t first_wait = 0;  // in Traffic::waits
  std::uint32_t waits = 0;
};

struct Traffic {
  std::vector<Bandwidth> capacities;  // by link, or class of links
  std::vector<std::int64_t> links;    // how many are alike
  std::vector<TrafficStream> streams;
  std::vector<std::int64_t> alike;  // by stream, or class of streams: how many are alike
  std::vector<Messages> kinds;
  std::vector<Crossing> crossings;
  std::vector<Wait> waits;

  [[nodiscard]] Crossings crossings_of(const TrafficStream& stream) const {
    return Crossings(crossings).subspan(stream.first_crossing, stream.crossings);
  }
  [[nodiscard]] std::span<const Wait> waits_of(const TrafficStream& stream) const {
    return std::span(waits).subspan(stream.first_wait, stream.waits);
  }
};

inline constexpr std::size_t most_crossings = std::size_t{1} << 25;

// `groups`: the nodes of each, by rank; of one size, which is that of the schedule, and apart. All
// run at once. Throws std::range_error for a latency of more than 2.5 hours, and where messages
// make more than `most_hops`.
[[nodiscard]] Traffic traffic_of(const NetworkGraph& graph, Router& router,
                                 const std::vector<std::vector<NodeId>>& groups,
                                 const Schedule& schedule, std::size_t most_hops = most_crossings);

[[nodiscard]] Traffic fold(const Traffic& traffic);

// The same, and which class every link is of.
struct Folded {
  Traffic traffic;
  std::vector<LinkId> classes;  // by link
};
[[nodiscard]] Folded fold_links(const Traffic& traffic);

// Rounds that repeat: where all that is under way, and how far, is as it was a round ago, every
// further round takes as long, until one of the streams ends.
enum class Repeats : std::uint8_t { simulated, skipped };

// When the last message has arrived; the same either way. Throws std::range_error beyond 2.5 hours.
[[nodiscard]] FlowTime run(const Traffic& traffic, Bytes payload,
                           Repeats repeats = Repeats::simulated);

// What every link, or each of a class, carries while run() lasts, which is `whole`: in bins of one
// length. It simulates all rounds, and takes memory for links * bins numbers.
[[nodiscard]] std::vector<LinkHistory> links_over_time(const Traffic& traffic, Bytes payload,
                                                       FlowTime whole,
                                                       std::size_t bins = default_bins);

// What run() gives is at least this: all messages of a stream one after the other, behind those of
// the streams that it waits for, if bytes took no time. Of all chains of streams the longest.
[[nodiscard]] FlowTime latency_of(const Traffic& traffic, Bytes payload);

}  // namespace shardsim::network
