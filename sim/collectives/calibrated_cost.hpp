// A cost, corrected by what machines alike have taken (hardware_profiles/calibration.hpp).
//
// Measured over modelled times jump where a library changes its algorithm, and so would their
// product. A corrected time never falls as sizes grow: it goes through the corrected times of
// the powers of two, moved as little as makes them rise, and between two of them along their
// logarithms' straight line over that of the size. All terms of the cost are stretched alike.
//
// Example: modelled 90 us and 130 us at 8 and 16 MiB, factors 1.4 and 1.2: 126 us and 156 us; at
// 11.3 MiB, half way, 140 us.
#pragma once

#include <functional>
#include <vector>

#include "hardware_profiles/calibration.hpp"
#include "sim/collectives/cost_breakdown.hpp"

namespace shardsim {

using CostOfSize = std::function<CostBreakdown(Bytes)>;

// `cost(payload)` as it is where no calibration has a curve for it. At no power of two is it less
// than `least` times its transfer: links carry no more than their full bandwidth, of which the
// model takes a share.
[[nodiscard]] CostBreakdown calibrated_cost(const CostOfSize& cost,
                                            const std::vector<Calibration>& calibrations,
                                            double least, Bytes payload);

}  // namespace shardsim
