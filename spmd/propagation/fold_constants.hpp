// Arithmetic of constants whose elements are all equal, as MLIR folds it: in the element type.
//
//   divide 1.0, 3.0 : f32     "0.333333343"      convert 2.5 : f32 -> i32     "2"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// The value of an elementwise op whose operands are the given constants, as text of a constant of
// type `result`. Nothing for ops and element types that are not folded.
[[nodiscard]] std::optional<std::string> fold(const stablehlo::Op& op,
                                              const std::vector<double>& operands,
                                              const stablehlo::TensorType& result);

}  // namespace shardsim::spmd
