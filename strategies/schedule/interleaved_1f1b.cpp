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
  const bool megatron = request.limits == ScheduleLimits::megatron;
  const std::int32_t group =
      megatron ? megatron_group(request, place) : pytorch_group(request, place);
  return schedule_of_turns(request, group, /*per_hop=*/2, WeightPass::with_input);
}

}  // namespace shardsim
