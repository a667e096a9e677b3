#include "sim/network/traffic.hpp"

#include <fmt/format.h>

#include <cassert>
#include <stdexcept>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// The way of a rank's messages in a phase; its crossings are appended.
Send send_over(const NetworkGraph& graph, const std::vector<LinkId>& route, RankId receiver,
               std::vector<Crossing>& crossings) {
  Send send;
  send.receiver = receiver;
  send.first_crossing = static_cast<std::uint32_t>(crossings.size());
  send.crossings = static_cast<std::uint32_t>(route.size());
  Seconds latency{0};
  for (const LinkId link : route) {
    latency += graph.links()[at(link)].wire.latency;
    crossings.push_back({link});
  }
  send.latency = round_up_to_flow_time(latency);
  return send;
}

}  // namespace

Traffic traffic_of(const NetworkGraph& graph, Router& router,
                   const std::vector<std::vector<NodeId>>& groups, const Phases& phases,
                   std::size_t most_hops) {
  Traffic traffic;
  for (const NetworkLink& link : graph.links()) traffic.capacities.push_back(link.wire.bandwidth);
  traffic.links.assign(graph.links().size(), 1);
  for (const auto& group : groups) {
    traffic.ranks.insert(traffic.ranks.end(), group.size(), 1);
  }
  for (const Phase& phase : phases) {
    TrafficPhase lowered{phase.steps, phase.bytes, std::vector<Send>(traffic.ranks.size()),
                         std::vector<RankId>(traffic.ranks.size(), nobody)};
    RankId first = 0;
    for (const auto& group : groups) {
      assert(group.size() == phase.target.size());
      for (std::size_t rank = 0; rank < group.size(); ++rank) {
        const RankId target = phase.target[rank];
        if (target == nobody) continue;
        const RankId sender = first + static_cast<RankId>(rank);
        const std::vector<LinkId> route = router.route(group[rank], group[at(target)]);
        lowered.sends[at(sender)] = send_over(graph, route, first + target, traffic.crossings);
        lowered.senders[at(first + target)] = sender;
      }
      first += static_cast<RankId>(group.size());
    }
    traffic.phases.push_back(std::move(lowered));
    if (traffic.crossings.size() > most_hops) {
      throw std::range_error(
          fmt::format("more than {} hops of messages in its {} phases", most_hops, phases.size()));
    }
  }
  return traffic;
}

}  // namespace shardsim::network
