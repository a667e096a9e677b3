// Breadth-first over several stages per rank (arXiv:2211.05953, PyTorch's ScheduleLoopedBFS): stage
// by stage all microbatches, and backwards all of it the other way round.
//
//   2 ranks, 2 stages each, 2 microbatches
//   rank 0: 0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0
//   rank 1: 1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0
//
// Any numbers do.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule looped_bfs(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
