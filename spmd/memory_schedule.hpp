// In which order the kernels of a region run.
//
// XLA's latency-hiding schedulers put first what the end of the program waits for longest. Here:
//   1. depth first: of what a kernel depends on, the longest chain comes first
//   2. loops come as early as they can: what they do not wait for runs after them (the gradient of
//      the output projection runs after the backward loop, and what it reads lives as long)
//   3. except that what frees more memory than it takes runs at once, and so do reductions, which
//      XLA computes beside what they reduce. Collectives never do: a gradient that is made early
//      is reduced late. A dot that may wait for a loop does so on a TPU in any case; on a GPU it
//      runs at once when it frees memory
//
//   logits = dot x, w;  d = f(logits);  dw = dot d, x;  dx = dot d, w;  loop(dx);  update(dw)
//   TPU   logits, dx, loop, dw, update     GPU (dw smaller than d)   logits, dx, dw, loop, update
#pragma once

#include <vector>

#include "spmd/memory_kernels.hpp"

namespace shardsim::spmd {

// Indices of the kernels of `region`, in the order in which they run.
[[nodiscard]] std::vector<int> run_order(const KernelGraph& graph, stablehlo::RegionId region,
                                         MemoryTarget target);

}  // namespace shardsim::spmd
