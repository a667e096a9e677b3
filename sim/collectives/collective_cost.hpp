// Closed-form cost of one collective on one group: the alpha-beta model.
//
//   time = launch + steps * latency + wire_bytes / bandwidth
//
// Example: all-reduce of 64 MiB over 8 devices of one node, ring, latency 2 us, 370 GB/s.
//   steps      = 2 * (8 - 1)               = 14
//   wire_bytes = 2 * (8 - 1) / 8 * 64 MiB  = 112 MiB
//   time       = launch + 28 us + 317 us
//
// Derivation and limits of validity: docs/cost-model.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/network/machine_graph.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"
#include "sim/collectives/told_algorithms.hpp"
#include "sim/network/link_history.hpp"

namespace shardsim {

// Of what is simulated as flows (network_cost.hpp): classes of devices and links, or
// every device and link of its own, which takes longer and gives the same time.
enum class Folding : std::uint8_t { folded, unfolded };

// What a link of a network carries in a collective, and for which part of the time, if it
// carried that at its full bandwidth.
struct LinkLoad {
  NetworkLink link;
  Bytes bytes{0};
  double busy = 0;
  std::size_t history = 0;  // in LinkLoads::histories
};

// Above so many classes of links they are not followed over time: a hundred megabytes of text.
inline constexpr std::size_t most_link_histories = std::size_t{1} << 14;

// Of all links of a machine, and what each carries over time: links that nothing tells apart have
// one history together. No histories where they are too many, or nothing is carried.
struct LinkLoads {
  std::vector<LinkLoad> links;
  Seconds bin{0};  // of histories
  std::vector<network::LinkHistory> histories;
};

struct CostOptions {
  Folding folding = Folding::folded;
  std::vector<ToldAlgorithm> told = {};
};

class ClusterCosts;
class NetworkCosts;
class SlicesCosts;

// What collectives cost on a placement. What those have in common that differ in size alone is
// found once.
class CollectiveCosts {
 public:
  // The placement outlives it. Throws InputError for algorithms that cannot be told.
  explicit CollectiveCosts(const Placement& placement, const CostOptions& options = {});
  ~CollectiveCosts();
  CollectiveCosts(CollectiveCosts&&) noexcept;

  // Of a collective of the plan, the slowest of its groups. A group of one device costs nothing,
  // not even a launch. Throws InputError for a part of an axis that cuts a physical dimension where
  // it cannot be cut, for an algorithm that cannot run, and where the placement's model knows
  // nothing of the machine or the collective.
  [[nodiscard]] CostBreakdown cost(const Collective& collective);

  // Of all links of the machine, and the time that the collective takes there: by flows, whatever
  // the placement's model.
  [[nodiscard]] LinkLoads link_loads(const Collective& collective);
  [[nodiscard]] CostBreakdown flow_cost(const Collective& collective);
  [[nodiscard]] const MachineGraph& graph();  // which the links are of
  // What no collective so far was there to be told: "all-reduce over data".
  [[nodiscard]] std::vector<std::string> unused_algorithms() const { return told_.unused(); }
  // What whoever reads costs by Fidelity::flows must know of the machine's graph; of closed forms
  // and networks written in place nothing.
  [[nodiscard]] std::vector<std::string> notes_on_flows();

  // Of such a network, by link: how long it is at work for those groups and pairs that have a
  // member among `devices` (empty: all). Nothing where links or messages are too many to be
  // followed one by one (network_cost.hpp).
  [[nodiscard]] std::optional<std::vector<Seconds>> link_times(
      const Collective& collective, const std::vector<std::int64_t>& devices);

 private:
  [[nodiscard]] CostBreakdown cost_on_devices(const Collective& collective, const Told& told);
  [[nodiscard]] CostBreakdown cost_on_machine(const Collective& collective, const Told& told);
  [[nodiscard]] NetworkCosts& flows();

  const Placement& placement_;
  Folding folding_;
  ToldAlgorithms told_;
  bool is_simulated_ = false;  // as flows
  // One of them at most; none of a torus.
  std::unique_ptr<ClusterCosts> cluster_;
  std::unique_ptr<SlicesCosts> slices_;
  std::unique_ptr<NetworkCosts> network_;  // when it is needed first
};

// Of a single one.
[[nodiscard]] CostBreakdown collective_cost(const Placement& placement,
                                            const Collective& collective,
                                            const CostOptions& options = {});

// What whoever reads the cost must know of it; empty: nothing.
[[nodiscard]] std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost);

}  // namespace shardsim
