// 1F1B over several stages per rank (arXiv:2104.04473): groups of microbatches pass the rank's
// stages one after another, see turns.hpp; two more warmup forwards for every rank behind.
//
//   2 ranks, 2 stages each, 4 microbatches, groups of 2: warmup 4 and 2
//   rank 0: 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
//   rank 1: 1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
//
// PyTorch (ScheduleInterleaved1F1B) chooses the group by rounds and refuses microbatches that they
// do not divide. Megatron (forward_backward_pipelining_with_interleaving) takes the group it is
// told, in [ranks, microbatches]; a last, smaller group of fewer microbatches than ranks is
// refused.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule interleaved_1f1b(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
