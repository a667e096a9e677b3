// What a device's memory may hold beside what is counted: whether a step fits when little is left,
// no prediction here can tell.
//
//   Under PyTorch's allocator what it reserves, the CUDA context and NCCL's buffers are counted
//   (sim/step/reserved_memory.hpp, outside_memory.hpp), with an error: of published steps the
//   reserved or the whole memory was 13 % off in the median (docs/accuracy.md, 2026-11). Else:
//
//   GPUs   1 to 2 GiB for the CUDA context and NCCL's buffers: with PyTorch 2.1 on A100 the context
//          and kernels alone take 0.47 to 0.92 GiB (stas00/ml-engineering, training/performance);
//          and 3 to 12 % of what is allocated, which the allocator reserves beside it: 1.03 to 1.09
//          times in SimuMax' runs on B200, 1.12 in NVIDIA's log of Llama 8B (dgxc-benchmarking).
//          Those of other vendors, of which nothing is published, count as NVIDIA's
//   TPUs   what XLA reserves is not in the profile's capacity; up to 5 % of temporaries for
//          padding to tiles where the plan has none, and gaps
//   CPUs   nothing: a device is a process. They are what has neither multiprocessors in its profile
//          nor what NCCL or RCCL sees of the node
//
// Example: 70 GiB of buffers on an H100 of 79.1 GiB need 1 + 0.03 * 70 = 3.1 to
// 2 + 0.12 * 70 = 10.4 GiB more; 9.1 are left: it fits narrowly.
#pragma once

#include <string>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

struct NotCounted {
  Bytes low{0};
  Bytes high{0};
  std::string what;  // "the CUDA context, NCCL's buffers and ..."; empty: there is nothing
};

// `counted`: of what is asked for, as large as the process is known to be.
[[nodiscard]] NotCounted not_counted(const Profile& profile, const Result& result, Bytes counted);

}  // namespace shardsim
