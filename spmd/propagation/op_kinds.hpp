// What propagation asks of an op besides its factor rule.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

[[nodiscard]] bool is_constant(const stablehlo::Op& op);
// Elementwise in Shardy's sense: so are constraints and barriers, but no collective is.
[[nodiscard]] bool is_elementwise(const stablehlo::Function& function, const stablehlo::Op& op);
// Nothing happens but its results: it can be dropped when nobody reads them, and repeated.
[[nodiscard]] bool is_pure(const stablehlo::Op& op);
// while, case, if and optimization_barrier: result i, operand i (or what branches return at i) and
// argument i of the regions are one value with one sharding.
[[nodiscard]] bool is_data_flow(const stablehlo::Op& op);
[[nodiscard]] bool is_loop(const stablehlo::Op& op);
[[nodiscard]] bool is_branch(const stablehlo::Op& op);
[[nodiscard]] bool is_barrier(const stablehlo::Op& op);
[[nodiscard]] bool is_constraint(const stablehlo::Op& op);
[[nodiscard]] bool is_manual(const stablehlo::Op& op);
[[nodiscard]] bool is_terminator(const stablehlo::Op& op);
[[nodiscard]] bool is_scalar(const stablehlo::TensorType& type);
// A broadcast of a scalar.
[[nodiscard]] bool is_scalar_expansion(const stablehlo::Function& function,
                                       const stablehlo::Op& op);

}  // namespace shardsim::spmd
