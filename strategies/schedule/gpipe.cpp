#include "strategies/schedule/gpipe.hpp"

#include "strategies/schedule/schedules.hpp"

namespace shardsim {

PipelineSchedule gpipe(const ScheduleRequest& request, const Place& /*place*/) {
  PipelineSchedule schedule;
  schedule.shape = pipeline_shape(request.ranks, 1, request.microbatches, StagePlacement::loop);
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action>& actions = schedule.of_rank.emplace_back();
    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
      for (std::int32_t m = 0; m < request.microbatches; ++m) {
        actions.push_back({kind, /*with_next=*/false, static_cast<std::int16_t>(rank), m});
      }
    }
  }
  return schedule;
}

}  // namespace shardsim
