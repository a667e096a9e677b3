// DualPipeV (github.com/deepseek-ai/DualPipe, PyTorch's ScheduleDualPipeV): two stages per rank as
// a V, like zbv, but a forward of one way and a backward of the other run overlapped, so that the
// messages of experts hide behind computations. Only the ends split backwards into I and W.
//
//   2 ranks, 4 microbatches
//   rank 0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3
//
// Needs two stages per rank and as many microbatches as stages.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule dualpipev(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
