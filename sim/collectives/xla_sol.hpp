// XLA's estimate of a collective on GPUs at the speed of light (SOL): what its latency-hiding
// scheduler reckons with across hosts.
//
//   all-gather, reduce-scatter   launch + (n - 1) / m * (t(B / n) + c(B / n) + round trip)
//   all-reduce                   twice that, the launch once
//   all-to-all                   launch + m (k - 1) * (t(B / (n-1)) + c(B / (n-1)) + round trip)
//   send and receive             as n = 2 with the whole message: 1 / m * (...)
//
//   B  bytes     n  members     k  nodes     m = n / k members of a node, each with a NIC
//   t(b) = 1.025 b / NIC, 2.5 % for headers     c(b) = ceil(b / chunk) * preparation of a chunk
//
// Facts: openxla/xla xla/service/gpu/model/sol_gpu_cost_model.cc @3e1a45f9,
// sol_latency_estimator.cc @082af290, xla/service/collective_utils.h (read 2026-11). XLA adds the
// time that the operands take in memory and the sum's arithmetic, and inside one node takes
// measured tables instead; neither is here.
//
// Example, the constants of XLA's own test: launch, preparation and round trip 100 us, NIC 100
// GB/s, chunk 4 MiB. All-gather of 8 MiB over 16 of 2 nodes: 100 + 15 / 8 * (5.4 + 100 + 100) = 485
// us.
#pragma once

#include <cstdint>

#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"

namespace shardsim {

struct XlaSolConfig {
  Seconds launch{0};
  Bandwidth nic{0};  // XLA calls it nic_speed_gbps and means GB/s
  Seconds chunk_preparation{0};
  Seconds round_trip{0};
  Bytes chunk{4 * MiB};
};

// XLA's table, by the device: its entries for H100 and B200, else the one for devices unknown to
// it.
[[nodiscard]] XlaSolConfig xla_sol_config(const DeviceProfile& device);

struct XlaSolRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{0};
  std::int64_t members = 2;  // of a permute: 2
  std::int64_t nodes = 1;    // at most as many
};

// Integers are divided as XLA divides them, rounding down.
[[nodiscard]] Seconds xla_sol_estimate(const XlaSolConfig& config, const XlaSolRequest& request);

// The slowest of the groups. `ours` says which links it is on. Throws InputError on other machines
// than clusters.
[[nodiscard]] CostBreakdown xla_sol_cost(const Placement& placement, const Collective& collective,
                                         const CostBreakdown& ours);

}  // namespace shardsim
