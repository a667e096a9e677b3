// Zero bubble over two stages per rank that lie as a V (arXiv:2401.10241, section 6; PyTorch's
// ScheduleZBVZeroBubble): the last stage is on rank 0, where backwards begin while forwards still
// go down. Its memory is that of 1F1B, on every rank; it has no bubble where F, I and W take the
// same.
//
//   2 ranks, 4 microbatches (a: the stage on the way down, 0 or 1; z: on the way up, 3 or 2)
//   rank 0: aF0 aF1 aF2 zF0 zI0 zW0 zF1 zI1 zW1  aF3 aI0 aW0 zF2 zI2 zW2 ...
//   rank 1: aF0 zF0 aF1 zF1 zI0 zW0 aF2 aI0 aW0 zF2 zI1 zW1 ...
//
// Needs two stages per rank. Fewer than 2 ranks - 1 microbatches run the order of 2 ranks - 1 with
// the others left out.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule zbv(const ScheduleRequest& request, const Place& place);

}  // namespace shardsim
