// 1F1B: every rank runs as many forwards as there are ranks after it, then a backward after each
// forward.
//
//   2 ranks, 3 microbatches
//   rank 0: 0F0 0F1 0B0 0F2 0B1 0B2
//   rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
//
// Warmup of rank r is min(microbatches, ranks - 1 - r); rank r holds min(microbatches, ranks - r).
// PyTorch's Schedule1F1B (what it executes), Megatron's
// forward_backward_pipelining_without_interleaving and DeepSpeed's TrainSchedule run this order.
// PyTorch refuses fewer microbatches than ranks, Megatron does not.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule one_forward_one_backward(const ScheduleRequest& request,
                                                        const Place& place);

}  // namespace shardsim
