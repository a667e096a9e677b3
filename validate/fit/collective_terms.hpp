// What a swept collective costs by a profile, and how often each number of it is in that:
//
//   cost = launch + steps inside * latency + bytes inside / bandwidth
//                 + steps across * latency + bytes across / bandwidth
//
// A transfer is the larger of what goes inside hosts and what goes across them (cluster_cost.hpp):
// it counts for the level that bounds it, by the profile as it is.
//
// Example: an all-reduce of 1 MiB over 4 hosts of a process each: 6 steps and 1.5 MiB across.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "validate/fit/robust_fit.hpp"

namespace shardsim {

// Of groups of neighbours among so many processes, the first of them; the profile is a cluster.
// Keep it for all records of a sweep: what they have in common is found once.
class SweptCosts {
 public:
  SweptCosts(const Profile& profile, std::int64_t processes, const CollectiveModel& model);
  SweptCosts(const SweptCosts&) = delete;
  SweptCosts& operator=(const SweptCosts&) = delete;
  [[nodiscard]] CostBreakdown of(const SweptCollective& swept);

 private:
  Placement placement_;
  CollectiveCosts costs_;  // refers to it
};

struct LinkFit {
  FittedTerm step;  // seconds
  FittedTerm byte;
  double most = 0;  // bytes a second that any record reaches
};

struct CollectiveFit {
  FittedTerm launch;
  LinkFit inside;
  std::optional<LinkFit> across;  // where the profile has a network between nodes
};

// What fits the times best. What bounds a transfer is for the numbers that come out to decide: it
// is fitted anew until they leave it as it was. `profile` is where that begins.
[[nodiscard]] CollectiveFit fit_terms(const Profile& profile,
                                      const std::vector<SweptCollective>& collectives,
                                      std::int64_t processes);

[[nodiscard]] bool is_told(const FittedTerm& term);  // determined, and above 0

}  // namespace shardsim
