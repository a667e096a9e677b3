#include "strategies/schedule/zero_bubble.hpp"

#include <algorithm>

#include "strategies/schedule/turns.hpp"

namespace shardsim {
namespace {

PipelineSchedule with_late_weights(const ScheduleRequest& request, std::int32_t group,
                                   std::int32_t per_hop) {
  const std::int32_t chunks = request.virtual_stages;
  const std::vector<Turn> turns = forward_turns(request.microbatches, chunks, group);
  PipelineSchedule schedule;
  schedule.shape =
      pipeline_shape(request.ranks, chunks, request.microbatches, StagePlacement::loop);
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action>& actions = schedule.of_rank.emplace_back();
    const auto add = [&](ActionKind kind, std::int32_t chunk, std::int32_t microbatch) {
      const auto stage = static_cast<std::int16_t>(chunk * request.ranks + rank);
      actions.push_back({kind, /*with_next=*/false, stage, microbatch});
    };
    const auto add_backward = [&](ActionKind kind, const Turn& turn) {
      add(kind, chunks - 1 - turn.chunk, turn.microbatch);
    };
    const auto warmup = static_cast<std::size_t>(warmup_forwards(request, group, per_hop, rank));
    const auto late = static_cast<std::size_t>(per_hop) * static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < turns.size() + warmup; ++i) {
      if (i < turns.size()) add(ActionKind::forward, turns[i].chunk, turns[i].microbatch);
      if (i < warmup) continue;
      add_backward(ActionKind::backward_input, turns[i - warmup]);
      if (i - warmup >= late) add_backward(ActionKind::backward_weight, turns[i - warmup - late]);
    }
    const std::size_t begun = turns.size() - std::min(late, turns.size());
    for (std::size_t i = begun; i < turns.size(); ++i) {
      add_backward(ActionKind::backward_weight, turns[i]);
    }
  }
  return schedule;
}

}  // namespace

PipelineSchedule zero_bubble_h1(const ScheduleRequest& request, const Place& /*place*/) {
  return with_late_weights(request, /*group=*/request.microbatches, /*per_hop=*/1);
}

PipelineSchedule zero_bubble_h2(const ScheduleRequest& request, const Place& /*place*/) {
  return with_late_weights(request, /*group=*/request.microbatches, /*per_hop=*/2);
}

PipelineSchedule interleaved_zero_bubble(const ScheduleRequest& request, const Place& place) {
  return with_late_weights(request, pytorch_group(request, place), /*per_hop=*/1);
}

}  // namespace shardsim
