#include "strategies/schedule/zero_bubble.hpp"

#include "strategies/schedule/turns.hpp"

namespace shardsim {
PipelineSchedule zero_bubble_h1(const ScheduleRequest& request, const Place& /*place*/) {
  return schedule_of_turns(request, /*group=*/request.microbatches, /*per_hop=*/1,
                           WeightPass::late);
}

PipelineSchedule zero_bubble_h2(const ScheduleRequest& request, const Place& /*place*/) {
  return schedule_of_turns(request, /*group=*/request.microbatches, /*per_hop=*/2,
                           WeightPass::late);
}

PipelineSchedule interleaved_zero_bubble(const ScheduleRequest& request, const Place& place) {
  return schedule_of_turns(request, pytorch_group(request, place), /*per_hop=*/1, WeightPass::late);
}

}  // namespace shardsim
