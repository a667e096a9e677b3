// In which order the kernels of a region run.
//
// XLA's latency-hiding schedulers put first what the end of the program waits for longest. Here:
//   1. depth first: of what a kernel depends on, the longest chain comes first
//   2. loops come as early as they can: what they do not wait for runs after them
//   3. except that what frees more memory than it takes runs at once, and so do reductions, which
//      XLA computes beside what they reduce. A buffer that several kernels could read now counts
//      for each of them by its share. Collectives never run for that reason: a gradient that is
//      made early is reduced late. Nor does, on a TPU, a dot that forms a ring with the
//      reduce_scatter of its result (4 devices or more): it stays behind the loops
//
//   logits = dot x, w;  d = f(logits);  dw = dot d, x;  dx = dot d, w;  loop(dx);  reduce_scatter
//   dw d larger than dw       logits, dx, dw, loop, reduce_scatter a ring, or d smaller   logits,
//   dx, loop, dw, reduce_scatter
//
// What stays behind is seen in the peaks of llama3-8b: the logits' cotangent lives through the
// backward loop with fsdp over 32 v5p, the unreduced gradient with fsdp over 8 H100, and neither
// with tp over 4x4 v5e (qwen3-1.7b), where that gradient is all-reduced.
#pragma once

#include <vector>

#include "spmd/memory/kernels.hpp"

namespace shardsim::spmd {

// Indices of the kernels of `region`, in the order in which they run.
[[nodiscard]] std::vector<int> run_order(const KernelGraph& graph, stablehlo::RegionId region,
                                         MemoryTarget target);

}  // namespace shardsim::spmd
