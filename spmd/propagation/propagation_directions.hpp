// In which pass axes may travel through an op, and which way.
//
//   pass 0   through elementwise ops, reshapes and transposes all of whose operands are read once
//        1   through all of these; of dynamic slices forward
//        2   along factors that go through an op unreduced; of broadcasts backward only
//        3   along any factor
//        4   of broadcasts forward
//
// Each pass lets through what those before did. Source: openxla/shardy op_priority_propagation.cc.
#pragma once

#include <array>
#include <vector>

#include "spmd/propagation/factor_propagation.hpp"
#include "stablehlo/module.hpp"
#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {

inline constexpr std::size_t op_priorities = 5;
using Directions = std::array<std::vector<Direction>, op_priorities>;  // by pass, by factor

// `single_use`: the op alone reads its operands.
[[nodiscard]] Directions directions_of_op(const stablehlo::FactorRule& rule,
                                          const stablehlo::Function& function,
                                          const stablehlo::Op& op, bool single_use);
// Of an op that lets values through as they are.
[[nodiscard]] Directions same_in_all_passes(const stablehlo::FactorRule& rule, Direction direction);
// What sdy.propagation_barrier says.
[[nodiscard]] Direction allowed_direction(const stablehlo::Op& barrier);

}  // namespace shardsim::spmd
