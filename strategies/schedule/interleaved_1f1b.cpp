#include "strategies/schedule/interleaved_1f1b.hpp"

#include <fmt/format.h>

#include "strategies/key_place.hpp"
#include "strategies/schedule/turns.hpp"

namespace shardsim {
namespace {

std::int32_t megatron_group(const ScheduleRequest& request, const Place& place) {
  const std::int32_t group = request.microbatch_group.value_or(request.ranks);
  if (request.microbatches < request.ranks) {
    throw InputError(place_of_key(place, "microbatches"),
                     fmt::format("Megatron's interleaved-1f1b needs as many microbatches as ranks: "
                                 "{} are fewer than {}",
                                 request.microbatches, request.ranks));
  }
  if (group < request.ranks || group > request.microbatches) {
    throw InputError(place_of_key(place, "microbatch_group"),
                     fmt::format("a group of {} microbatches; Megatron takes {} (ranks) to {} (all "
                                 "microbatches)",
                                 group, request.ranks, request.microbatches));
  }
  const std::int32_t last = request.microbatches % group;
  if (last != 0 && last < request.ranks) {
    throw InputError(
        place_of_key(place, "microbatches"),
        fmt::format("{} microbatches in groups of {} leave a last group of {}, fewer "
                    "than the {} ranks; {} or {} microbatches do",
                    request.microbatches, group, last, request.ranks, request.microbatches - last,
                    request.microbatches - last + request.ranks));
  }
  return group;
}

}  // namespace

PipelineSchedule interleaved_1f1b(const ScheduleRequest& request, const Place& place) {
  if (request.limits == ScheduleLimits::megatron) {
    return one_each(request, megatron_group(request, place), /*per_hop=*/2);
  }
  return one_each(request, pytorch_group(request, place), /*per_hop=*/2);
}

PipelineSchedule one_each(const ScheduleRequest& request, std::int32_t group,
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
    const auto warmup = static_cast<std::size_t>(warmup_forwards(request, group, per_hop, rank));
    for (std::size_t i = 0; i < turns.size() + warmup; ++i) {
      if (i < turns.size()) add(ActionKind::forward, turns[i].chunk, turns[i].microbatch);
      if (i < warmup) continue;
      const Turn& turn = turns[i - warmup];
      add(ActionKind::backward, chunks - 1 - turn.chunk, turn.microbatch);
    }
  }
  return schedule;
}

}  // namespace shardsim
