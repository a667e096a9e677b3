// What one device sends in the collectives of a per-device program: by which ways of resharding,
// and in the end programs, are compared.
//
//   collective over n devices, B bytes of operand     sends
//   all-gather                                        (n - 1) B
//   all-reduce                                        2 (n - 1)/n B
//   reduce-scatter, all-to-all                        (n - 1)/n B
//   permute                                           B
//
// Example: all-gather of 1 MiB over 4 devices, then an all-reduce of the 4 MiB: 3 MiB + 6 MiB.
//
// Rings; of a permute, what a device sends that sends at all.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// 0 for ops that are no collective.
[[nodiscard]] double wire_bytes(const stablehlo::Function& function, const stablehlo::Op& op);
// Of all collectives that `to` needs beyond `from`, outside regions.
[[nodiscard]] double wire_bytes_between(const stablehlo::Function& function,
                                        stablehlo::ValueId from, stablehlo::ValueId to);
// Of one step: loops times their trip count, once where nobody knows it; all branches.
[[nodiscard]] double wire_bytes(const stablehlo::Module& local);

}  // namespace shardsim::spmd
