#include "strategies/schedule/turns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/key_place.hpp"

namespace shardsim {

std::vector<Turn> forward_turns(std::int32_t microbatches, std::int32_t chunks,
                                std::int32_t group) {
  std::vector<Turn> turns;
  for (std::int32_t first = 0; first < microbatches; first += group) {
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int32_t m = first; m < std::min(first + group, microbatches); ++m) {
        turns.push_back({chunk, m});
      }
    }
  }
  return turns;
}

std::int64_t warmup_forwards(const ScheduleRequest& request, std::int32_t group,
                             std::int32_t per_hop, std::int32_t rank) {
  const std::int64_t until_last_stage = std::int64_t{request.virtual_stages - 1} * group;
  const std::int64_t hops = request.ranks - 1 - rank;
  const std::int64_t apart = request.pairs ? 1 : 0;  // no backward is of the forward beside it
  return std::min(until_last_stage + per_hop * hops + apart,
                  std::int64_t{request.microbatches} * request.virtual_stages);
}

std::int32_t pytorch_group(const ScheduleRequest& request, const Place& place) {
  const std::int32_t rounds = std::max(1, request.microbatches / request.ranks);
  if (request.microbatches % rounds != 0) {
    const std::int32_t less = request.microbatches / rounds * rounds;
    throw InputError(
        place_of_key(place, "microbatches"),
        fmt::format("{} of {} ranks takes its microbatches in {} rounds, one for every "
                    "{} of them: {} do not divide by {}, {} or {} do",
                    request.name, request.ranks, rounds, request.ranks, request.microbatches,
                    rounds, less, (request.microbatches / request.ranks + 1) * request.ranks));
  }
  return request.microbatches / rounds;
}

PipelineSchedule schedule_of_turns(const ScheduleRequest& request, std::int32_t group,
                                   std::int32_t per_hop, WeightPass weights) {
  const std::int32_t chunks = request.virtual_stages;
  const bool splits = weights == WeightPass::late;
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
      const std::size_t done = i - warmup;
      if (request.pairs && i < turns.size()) actions.back().with_next = true;
      add_backward(splits ? ActionKind::backward_input : ActionKind::backward, turns[done]);
      if (splits && done >= late) add_backward(ActionKind::backward_weight, turns[done - late]);
    }
    if (!splits) continue;
    for (std::size_t i = turns.size() - std::min(late, turns.size()); i < turns.size(); ++i) {
      add_backward(ActionKind::backward_weight, turns[i]);
    }
  }
  return schedule;
}

}  // namespace shardsim
