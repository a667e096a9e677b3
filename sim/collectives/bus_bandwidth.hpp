// Bus bandwidth: the rate of a collective in a form that can be compared with that of a link,
// whatever the number of devices. As nccl-tests reports it (NVIDIA/nccl-tests doc/PERFORMANCE.md
// @03a204a, src/sendrecv.cu @29f4114):
//
//   algorithm bandwidth  size / time
//   bus bandwidth        algorithm bandwidth * factor
//
//   all-reduce                               2 (n-1) / n
//   all-gather, reduce-scatter, all-to-all   (n-1) / n
//   collective-permute (sendrecv), broadcast 1
//
// The factor is what a device must send at least for every byte of payload if devices send to each
// other: each of the n-1 sums of an element, and each of the n-1 copies of a sum, crosses one of n
// links. Switches that reduce need less, so that NVLS can show more than the link has: nccl-tests
// prints such figures as well.
//
// Example: all-reduce of 64 MiB over 8 devices in 345 us.
//   algorithm bandwidth  67,108,864 / 345e-6  = 194.5 GB/s
//   bus bandwidth        194.5 * 2 * 7 / 8    = 340.4 GB/s
#pragma once

#include "base/units.hpp"
#include "plan/plan.hpp"

namespace shardsim {

[[nodiscard]] double bus_bandwidth_factor(CollectiveKind kind, std::int64_t group_size);

// `payload` as plan.hpp has it, which is nccl-tests' size.
[[nodiscard]] Bandwidth algorithm_bandwidth(Bytes payload, Seconds time);
[[nodiscard]] Bandwidth bus_bandwidth(CollectiveKind kind, std::int64_t group_size, Bytes payload,
                                      Seconds time);

}  // namespace shardsim
