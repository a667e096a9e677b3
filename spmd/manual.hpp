// What sdy.manual_computation says: how its operands and results lie outside, and which axes are
// manual inside. A manual axis that a sharding does not use is replicated there.
#pragma once

#include <string>
#include <vector>

#include "spmd/tiling/tensor_sharding.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

struct ManualComputation {
  std::vector<stablehlo::AxisSharding> in;   // by operand
  std::vector<stablehlo::AxisSharding> out;  // by result
  std::vector<std::string> axes;
};

// Throws InputError: other numbers of shardings than of operands and results.
[[nodiscard]] ManualComputation manual_computation(const stablehlo::Op& op, const Place& place);
// Writes `shardings` back into the op.
void set_manual_shardings(stablehlo::Op& op, const std::vector<stablehlo::AxisSharding>& in,
                          const std::vector<stablehlo::AxisSharding>& out);

// Of a sharding as the other side of a manual computation sees it.
[[nodiscard]] TensorSharding with_manual_axes(const TensorSharding& inner,
                                              const TensorSharding& outside,
                                              const std::vector<int>& manual_axes);
[[nodiscard]] TensorSharding without_manual_axes(const TensorSharding& outer,
                                                 const std::vector<int>& manual_axes);

}  // namespace shardsim::spmd
