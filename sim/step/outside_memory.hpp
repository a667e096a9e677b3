// What a process holds of a GPU's memory outside the allocator of its framework.
//
//   context   0.55 GiB: CUDA's context with the kernels that PyTorch has loaded
//             (stas00/ml-engineering, training/performance, torch-dist-mem-usage.py, 2023-12; 0.47
//             to 0.92 GiB with PyTorch 2.1 on A100, 1.5 GiB before kernels were loaded lazily)
//   NCCL      a communicator has room for 8 steps of each protocol for whatever it receives: of a
//             ring one neighbour, of a tree two, one in a group of two, on each of its channels;
//             for all-to-alls every other GPU of the node on each. 4 MiB Simple, 4.7 MiB LL128,
//             0.5 MiB LL, together 10 MiB, as they are taken in units of 2 MiB (NVIDIA/nccl
//             @04cdb80, src/init.cc, computeBuffSizes; issue 1685, 2025-04)
//
// Example: 4 A100s, 24 channels: 24 * 3 * 10 = 720 MiB; a group of two 480 MiB. Measured were 688
// and 544 (NVIDIA/nccl, issue 964, 2023-08).
//
// Not counted: buffers of messages between stages and of NVLS.
#pragma once

#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/step/lowering.hpp"

namespace shardsim {

// Of each device. Nothing where NCCL does not run.
[[nodiscard]] Bytes outside_memory(const Plan& plan, const Program& program, const Lowered& lowered,
                                   const Machine& machine);

}  // namespace shardsim
