// A cost, corrected by what machines alike have taken (hardware_profiles/calibration.hpp).
//
// Measured over modelled times jump where a library changes its algorithm, and so would their
// product. A corrected time never falls as sizes grow: it goes through the corrected times of
// the powers of two, moved as little as makes them rise, and between two of them along their
// logarithms' straight line over that of the size. All terms of the cost are stretched alike.
//
// A curve was measured with some number of members on each node. With fewer of them a ring has
// fewer hops and NICs, so that at one size less is latency, which the factor is mostly of, and more
// is transfer, which is mostly what links carry. The factor is therefore that of the size where as
// many members as were measured, on as many nodes as here, have the same transfer / (launch +
// latency): their pieces take as long beside a hop as ours.
//
// Example: all-gathers over 10 nodes with 8 members on each have 2.4 at 32 MiB, where 1/3 of the
// modelled time is transfer, and 1.3 at 512 MiB, where 5/6 are. With 2 members on each 5/6 of
// 32 MiB are: 1.3.
//
// Example: modelled 90 us and 130 us at 8 and 16 MiB, factors 1.4 and 1.2: 126 us and 156 us; at
// 11.3 MiB, half way, 140 us.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hardware_profiles/calibration.hpp"
#include "sim/collectives/cost_breakdown.hpp"

namespace shardsim {

using CostOfSize = std::function<CostBreakdown(Bytes)>;
// Of a group with so many members on each of as many nodes, uncalibrated; nothing where the machine
// has no such group, or it is the same.
using CostWithMembers = std::function<std::optional<CostOfSize>(std::int64_t members_per_node)>;

// `cost(payload)` as it is where no calibration has a curve for it. At no power of two is it less
// than `least` times its transfer: links carry no more than their full bandwidth, of which the
// model takes a share.
[[nodiscard]] CostBreakdown calibrated_cost(const CostOfSize& cost,
                                            const std::vector<Calibration>& calibrations,
                                            double least, Bytes payload,
                                            const CostWithMembers& with_members = {});

}  // namespace shardsim
