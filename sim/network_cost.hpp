// Collectives on a network written in place, by flows (network/traffic.hpp): every message on its
// links, all groups at once, by the algorithm that is asked for or the network's default
// (network/algorithms.hpp).
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

#include "hardware_profiles/network/routes.hpp"
#include "sim/collective_cost.hpp"
#include "sim/network/algorithms.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim {

class NetworkCosts {
 public:
  // The placement, which has a network, outlives it.
  NetworkCosts(const Placement& placement, NetworkOptions options);

  // Throws InputError for what takes longer than 2.5 hours or more hops than are simulated
  // (network/traffic.hpp), and for an algorithm that is not for this collective.
  [[nodiscard]] CostBreakdown cost(const Collective& collective);

  // By link, as the graph has them. Always finds every way on the graph: throws InputError for
  // networks and collectives that are too large for that.
  [[nodiscard]] std::vector<LinkLoad> link_loads(const Collective& collective);

 private:
  // A collective but for its size.
  using Key =
      std::tuple<CollectiveKind, std::vector<AxisRef>, std::vector<std::vector<std::int64_t>>,
                 std::vector<std::pair<std::int64_t, std::int64_t>>>;
  struct Prepared {
    std::string algorithm;
    network::Traffic traffic;
  };

  [[nodiscard]] const Prepared& prepared(const Collective& collective);
  [[nodiscard]] Prepared prepare(const Collective& collective);
  [[nodiscard]] network::Expansion expand(const Collective& collective,
                                          const network::GroupOnNetwork& group) const;
  [[nodiscard]] network::Traffic traffic_on_graph(const Collective& collective,
                                                  const network::Expansion& expansion);
  [[nodiscard]] std::vector<std::vector<NodeId>> groups_of(const Collective& collective,
                                                           bool with_switch) const;

  const Placement& placement_;
  const NetworkDescription& network_;
  NetworkOptions options_;
  std::optional<NetworkGraph> graph_;  // both when they are needed first
  std::optional<Router> router_;
  std::map<Key, Prepared> prepared_;
};

}  // namespace shardsim
