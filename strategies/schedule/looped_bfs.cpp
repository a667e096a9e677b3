#include "strategies/schedule/looped_bfs.hpp"

#include <iterator>

#include "strategies/schedule/schedules.hpp"

namespace shardsim {

PipelineSchedule looped_bfs(const ScheduleRequest& request, const Place& /*place*/) {
  PipelineSchedule schedule;
  schedule.shape = pipeline_shape(request.ranks, request.virtual_stages, request.microbatches,
                                  StagePlacement::loop);
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action>& actions = schedule.of_rank.emplace_back();
    for (const std::int16_t stage : schedule.shape.stages_of(rank)) {
      for (std::int32_t m = 0; m < request.microbatches; ++m) {
        actions.push_back({ActionKind::forward, /*with_next=*/false, stage, m});
      }
    }
    const std::vector<Action> forwards = actions;
    for (auto forward = forwards.rbegin(); forward != forwards.rend(); ++forward) {
      actions.push_back(
          {ActionKind::backward, /*with_next=*/false, forward->stage, forward->microbatch});
    }
  }
  return schedule;
}

}  // namespace shardsim
