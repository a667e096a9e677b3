#include "strategies/schedule/schedule.hpp"

#include <cassert>

namespace shardsim {

std::vector<std::int16_t> PipelineShape::stages_of(std::int32_t rank) const {
  std::vector<std::int16_t> held;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    if (rank_of_stage[stage] == rank) held.push_back(static_cast<std::int16_t>(stage));
  }
  return held;
}

PipelineShape pipeline_shape(std::int32_t ranks, std::int32_t stages_per_rank,
                             std::int32_t microbatches, StagePlacement placement) {
  assert(ranks > 0 && stages_per_rank > 0 && microbatches > 0);
  assert(std::int64_t{ranks} * stages_per_rank <= max_stages);
  PipelineShape shape{ranks, microbatches, {}};
  for (std::int32_t chunk = 0; chunk < stages_per_rank; ++chunk) {
    const bool upwards = placement == StagePlacement::v && chunk % 2 == 1;
    for (std::int32_t hop = 0; hop < ranks; ++hop) {
      shape.rank_of_stage.push_back(static_cast<std::int16_t>(upwards ? ranks - 1 - hop : hop));
    }
  }
  return shape;
}

PipelineSchedule forward_alone(PipelineSchedule schedule) {
  for (std::vector<Action>& actions : schedule.of_rank) {
    std::erase_if(actions, [](const Action& a) { return a.kind != ActionKind::forward; });
    for (Action& action : actions) action.with_next = false;
  }
  return schedule;
}

}  // namespace shardsim
