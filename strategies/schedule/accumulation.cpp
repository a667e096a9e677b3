#include "strategies/schedule/accumulation.hpp"

#include <cassert>

namespace shardsim {

PipelineSchedule accumulation_schedule(std::int32_t microbatches, bool trains, bool pairs) {
  assert(microbatches >= 1);
  PipelineSchedule schedule;
  schedule.shape =
      pipeline_shape(/*ranks=*/1, /*stages_per_rank=*/1, microbatches, StagePlacement::loop);
  std::vector<Action>& actions = schedule.of_rank.emplace_back();
  const std::int32_t behind = pairs ? 1 : 0;  // forwards that a backward follows its own by
  for (std::int32_t m = 0; m < microbatches + behind; ++m) {
    const bool with_next = pairs && m > 0;
    if (m < microbatches) actions.push_back({ActionKind::forward, with_next, 0, m});
    if (trains && m >= behind) actions.push_back({ActionKind::backward, false, 0, m - behind});
  }
  if (trains) actions.push_back({.kind = ActionKind::optimizer});
  return schedule;
}

}  // namespace shardsim
