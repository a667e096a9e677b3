#include "strategies/schedule/one_forward_one_backward.hpp"

#include <fmt/format.h>

#include "strategies/key_place.hpp"
#include "strategies/schedule/turns.hpp"

namespace shardsim {

PipelineSchedule one_forward_one_backward(const ScheduleRequest& request, const Place& place) {
  if (request.limits == ScheduleLimits::pytorch && request.microbatches < request.ranks) {
    throw InputError(place_of_key(place, "microbatches"),
                     fmt::format("PyTorch's 1F1B needs as many microbatches as ranks: {} are fewer "
                                 "than {}; {} or more do, or gpipe",
                                 request.microbatches, request.ranks, request.ranks));
  }
  return schedule_of_turns(request, /*group=*/request.microbatches, /*per_hop=*/1,
                           WeightPass::with_input);
}

}  // namespace shardsim
