// Collectives by flows (network/traffic.hpp): every message on its links, all groups at once, by
// the algorithm that is asked for or the machine's default (network/algorithms/by_name.hpp). On
// networks written in place and graphs, and with Fidelity::flows on every machine, whose profile is
// made a graph (machine_flows.hpp).
//
// `latency` is that of the longest chain of messages, one after the other; `transfer` is the rest
// of the simulated time: what bytes take, and waiting for links that others are on.
//
// Example: an all-gather of 1 GiB over a ring of 8, links of 50 GiB/s and 500 ns:
//   7 steps of 128 MiB: 3.5 us + 7 * 2.5 ms = 17.5035 ms
//
// What does not depend on the size of a collective, its traffic, is found once and kept. Where the
// network looks the same from every device it is found without a graph (network/symmetric.hpp).
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "hardware_profiles/network/machine_graph.hpp"
#include "hardware_profiles/network/routes.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/network/algorithms/by_name.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim {

class NetworkCosts {
 public:
  // The placement outlives it.
  NetworkCosts(const Placement& placement, Folding folding);

  // Throws InputError for what takes longer than 2.5 hours or more hops than are simulated
  // (network/traffic.hpp), and for an algorithm that is not for this collective.
  [[nodiscard]] CostBreakdown cost(const Collective& collective, const Told& told);

  // By link, as the graph has them. Always finds every way on the graph: throws InputError for
  // networks and collectives that are too large for that. Over time: simulated once more.
  [[nodiscard]] LinkLoads link_loads(const Collective& collective, const Told& told);
  // Builds it where that has not been done. Throws InputError for networks that are too large.
  [[nodiscard]] const MachineGraph& graph();

  // Of a network written in place, by link: how long it would be at work, at its full bandwidth,
  // for the groups and pairs that have a member among `devices` (empty: all). Nothing for more than
  // 4096 devices or 2^20 hops.
  [[nodiscard]] std::optional<std::vector<Seconds>> link_times(
      const Collective& collective, const std::vector<std::int64_t>& devices, const Told& told);

 private:
  // A collective but for its size, and the algorithm that it is told.
  using Key =
      std::tuple<CollectiveKind, std::vector<AxisRef>, std::vector<std::vector<std::int64_t>>,
                 std::vector<std::pair<std::int64_t, std::int64_t>>, std::optional<std::string>>;
  struct Prepared {
    std::string algorithm;
    network::Traffic traffic;
  };

  [[nodiscard]] const Prepared& prepared(const Collective& collective, const Told& told);
  [[nodiscard]] Prepared prepare(const Collective& collective, const Told& told);
  void add_histories(const network::Traffic& traffic, Bytes payload, LinkLoads& loads) const;
  [[nodiscard]] network::GroupOnNetwork group_of(const Collective& collective) const;
  [[nodiscard]] network::Expansion expand(const Collective& collective,
                                          const network::GroupOnNetwork& group,
                                          const Told& told) const;
  [[nodiscard]] std::vector<LinkLevel> levels(const Collective& collective) const;
  // Of the groups with a member among `devices`.
  [[nodiscard]] network::Traffic traffic_on_graph(const Collective& collective,
                                                  const network::Expansion& expansion,
                                                  const std::vector<std::int64_t>& devices = {},
                                                  std::size_t most_hops = network::most_crossings);
  [[nodiscard]] std::vector<network::PlacedGroup> placed(
      const std::vector<std::vector<NodeId>>& groups, const network::Expansion& expansion) const;
  [[nodiscard]] std::vector<std::vector<NodeId>> groups_of(
      const Collective& collective, const network::Expansion& expansion,
      const std::vector<std::int64_t>& devices);

  const Placement& placement_;
  const NetworkDescription* network_;  // of a profile nothing
  Folding folding_;
  std::optional<MachineGraph> graph_;  // all three when they are needed first
  std::optional<Router> router_;
  std::vector<NodeId> nodes_;  // by position of the mesh
  std::map<Key, Prepared> prepared_;
};

}  // namespace shardsim
