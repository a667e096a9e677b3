// What the temporaries of a kernel graph occupy at most, when its kernels run in run_order().
//
// A buffer is counted from the kernel that writes it to the last that reads it. It is not counted
//   - when it takes over an operand of its size that dies there (elementwise kernels, all-reduces)
//   - when the place that it is to have in the end, a donated argument's or the loop's, is free
// While a kernel with bodies runs, the larger of their peaks is added.
#pragma once

#include <vector>

#include "spmd/memory/kernels.hpp"

namespace shardsim::spmd {

struct TemporaryPeak {
  Bytes bytes;
  std::vector<LiveBuffer> alive;
  stablehlo::OpId op = stablehlo::no_op;  // what runs then
};

[[nodiscard]] TemporaryPeak temporary_peak(const stablehlo::Function& main,
                                           const KernelGraph& graph, MemoryTarget target);

}  // namespace shardsim::spmd
