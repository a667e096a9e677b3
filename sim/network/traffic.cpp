#include "sim/network/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

using Groups = std::vector<std::vector<NodeId>>;

// Streams of all groups, those of a group together; their ways are still to be found.
void add_streams(const Groups& groups, const Schedule& schedule, Traffic& traffic) {
  traffic.kinds = schedule.kinds;
  traffic.streams.reserve(groups.size() * schedule.streams.size());
  traffic.waits.reserve(groups.size() * schedule.waits.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto first_stream = static_cast<StreamId>(traffic.streams.size());
    const auto first_wait = static_cast<std::uint32_t>(traffic.waits.size());
    for (const Stream& stream : schedule.streams) {
      traffic.streams.push_back(
          {FlowTime(0), stream.kind, 0, 0, first_wait + stream.first_wait, stream.waits});
    }
    for (Wait wait : schedule.waits) {
      wait.stream += first_stream;
      traffic.waits.push_back(wait);
    }
  }
  traffic.alike.assign(traffic.streams.size(), 1);
}

struct Journey {
  NodeId target = 0;
  NodeId source = 0;
  StreamId stream = 0;
};

// By target, so that the router searches once for each.
std::vector<Journey> ways_of(const Groups& groups, const Schedule& schedule) {
  std::vector<Journey> ways;
  ways.reserve(groups.size() * schedule.streams.size());
  for (const auto& group : groups) {
    for (const Stream& stream : schedule.streams) {
      ways.push_back(
          {group[at(stream.to)], group[at(stream.from)], static_cast<StreamId>(ways.size())});
    }
  }
  std::sort(ways.begin(), ways.end(), [](const Journey& a, const Journey& b) {
    return a.target != b.target ? a.target < b.target : a.stream < b.stream;
  });
  return ways;
}

}  // namespace

Traffic traffic_of(const NetworkGraph& graph, Router& router, const Groups& groups,
                   const Schedule& schedule, std::size_t most_hops) {
  const auto check_hops = [&](std::size_t hops) {
    if (hops <= most_hops) return;
    throw std::range_error(fmt::format("more than {} hops of messages", most_hops));
  };
  check_hops(groups.size() * schedule.streams.size());
  Traffic traffic;
  std::vector<FlowTime> latencies;
  for (const NetworkLink& link : graph.links()) {
    traffic.capacities.push_back(link.wire.bandwidth);
    latencies.push_back(round_up_to_flow_time(link.wire.latency));
  }
  traffic.links.assign(graph.links().size(), 1);
  add_streams(groups, schedule, traffic);
  for (const Journey& way : ways_of(groups, schedule)) {
    const std::vector<LinkId> route = router.route(way.source, way.target);
    TrafficStream& stream = traffic.streams[at(way.stream)];
    stream.first_crossing = static_cast<std::uint32_t>(traffic.crossings.size());
    stream.crossings = static_cast<std::uint32_t>(route.size());
    for (const LinkId link : route) {
      stream.latency += latencies[at(link)];
      traffic.crossings.push_back({link});
    }
    check_hops(traffic.crossings.size());
  }
  return traffic;
}

FlowTime latency_of(const Traffic& traffic, Bytes payload) {
  struct Ends {
    FlowTime first{0};  // message
    FlowTime last{0};
  };
  std::vector<Ends> ends;
  ends.reserve(traffic.streams.size());
  FlowTime longest{0};
  for (const TrafficStream& stream : traffic.streams) {
    Ends own;
    FlowTime passed_on{0};  // when the last message to pass on has come
    for (const Wait& wait : traffic.waits_of(stream)) {
      if (wait.until == Until::previous) continue;
      const Ends& awaited = ends[at(wait.stream)];
      const bool is_same = wait.until == Until::same;
      own.first = std::max(own.first, is_same ? awaited.first : awaited.last);
      if (is_same) passed_on = std::max(passed_on, awaited.last);
    }
    own.first += stream.latency;
    const Messages& kind = traffic.kinds[stream.kind];
    const std::int64_t others = kind.chunk > Bytes(0) ? 0 : kind.count(payload) - 1;
    own.last = std::max(own.first + others * stream.latency, passed_on + stream.latency);
    longest = std::max(longest, own.last);
    ends.push_back(own);
  }
  return longest;
}

}  // namespace shardsim::network
