// GPipe: all forwards, then all backwards, both from microbatch 0 on (PyTorch's ScheduleGPipe).
//
//   rank 0: 0F0 0F1 0B0 0B1
//   rank 1: 1F0 1F1 1B0 1B1
//
// Every rank holds every microbatch. Any numbers do.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule gpipe(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
