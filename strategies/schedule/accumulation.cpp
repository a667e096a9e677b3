#include "strategies/schedule/accumulation.hpp"

#include <cassert>

namespace shardsim {

PipelineSchedule accumulation_schedule(std::int32_t microbatches, bool trains) {
  assert(microbatches >= 1);
  PipelineSchedule schedule;
  schedule.shape =
      pipeline_shape(/*ranks=*/1, /*stages_per_rank=*/1, microbatches, StagePlacement::loop);
  std::vector<Action>& actions = schedule.of_rank.emplace_back();
  for (std::int32_t m = 0; m < microbatches; ++m) {
    actions.push_back({.kind = ActionKind::forward, .microbatch = m});
    if (trains) actions.push_back({.kind = ActionKind::backward, .microbatch = m});
  }
  if (trains) actions.push_back({.kind = ActionKind::optimizer});
  return schedule;
}

}  // namespace shardsim
