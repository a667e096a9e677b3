// What a collective makes of a cluster: the rates that its members see.
//
// All groups of a collective run at once and share the ways out of a node (machine.hpp): of p ways
// of a node where a devices are at work, m members have m min(a, p) / a; with a NIC per device m.
//
// Example: 4 ways of 25 GB/s for 8 devices, all at work in two groups of 4: 50 GB/s for each group.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/cost_breakdown.hpp"

namespace shardsim {

class ClusterRates {
 public:
  // `busy_per_node`: devices at work on the busiest node. Keeps a reference to `cluster`.
  ClusterRates(const ClusterProfile& cluster, std::int64_t busy_per_node)
      : cluster_(cluster), busy_per_node_(busy_per_node) {}

  // Of one member into its node, with `members` of its group there.
  [[nodiscard]] Seconds inside(double bytes, std::int64_t members) const;
  // Of `members` of a group out of their node, `bytes` all together.
  [[nodiscard]] Seconds across(double bytes, std::int64_t members) const;
  // The same of what switches between nodes reduce: requires a profile that says that they do.
  [[nodiscard]] Seconds across_reducing(double bytes, std::int64_t members) const;
  // Ways out that a group's `members` on one node reach.
  [[nodiscard]] std::int64_t heads_of(std::int64_t members) const;
  // The ways out that `members` of a group on one node have.
  [[nodiscard]] double ways_of(std::int64_t members) const;
  // "8 NICs": 32 NICs for 8 devices are 4 for each member.
  [[nodiscard]] double nics_of(std::int64_t members) const;

  [[nodiscard]] Seconds step_inside() const { return cluster_.scale_up.latency.value; }
  [[nodiscard]] Seconds step_across() const { return cluster_.scale_out->latency.value; }

 private:
  const ClusterProfile& cluster_;
  std::int64_t busy_per_node_;
};

// Of a transfer that takes so long inside nodes and so long across them, both at once: the larger
// is that of the transfer, and the other level has gaps. Nothing: it does not go there.
//
// Example: 2 ms inside, 8 ms across: a quarter of scale_up, all of scale_out.
[[nodiscard]] std::vector<LinkUse> links_of(std::optional<Seconds> inside,
                                            std::optional<Seconds> across);

[[nodiscard]] std::int64_t busy_per_node(const Machine& machine, const Collective& collective);

}  // namespace shardsim
