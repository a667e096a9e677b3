#include "strategies/schedule/zbv.hpp"

#include <algorithm>
#include <utility>

#include "strategies/schedule/schedules.hpp"
#include "strategies/schedule/v_rank.hpp"

namespace shardsim {
namespace {

// The whole order: with 2 ranks - 1 microbatches or more.
std::vector<Action> full_zbv(std::int32_t ranks, std::int32_t rank, std::int32_t microbatches) {
  VRank list(ranks, rank);
  // Warmup: as many forwards as the first needs to come back up, then both ways, then the first
  // backwards of the way up.
  for (std::int32_t i = 0; i < 2 * (ranks - rank) - 1; ++i) list.forward(VRank::down);
  for (std::int32_t i = 0; i < rank; ++i) {
    list.forward(VRank::up);
    list.forward(VRank::down);
  }
  for (std::int32_t i = 0; i < ranks - rank; ++i) {
    list.forward(VRank::up);
    list.input_and_weight(VRank::up);
  }
  while (list.forwards(VRank::up) < list.forwards(VRank::down) ||
         list.forwards(VRank::down) < microbatches) {
    if (list.forwards(VRank::down) < microbatches) list.forward(VRank::down);
    list.input_and_weight(VRank::down);
    list.forward(VRank::up);
    list.input_and_weight(VRank::up);
  }
  // Cooldown: what other ranks wait for first.
  for (std::int32_t i = 0; i < rank; ++i) {
    list.input(VRank::down);
    list.input(VRank::up);
  }
  for (std::int32_t i = 0; i < ranks - rank; ++i) list.input_and_weight(VRank::down);
  while (list.weights(VRank::up) < list.inputs(VRank::up)) list.weight(VRank::up);
  while (list.weights(VRank::down) < list.inputs(VRank::down)) list.weight(VRank::down);
  return list.actions();
}

}  // namespace

PipelineSchedule zbv(const ScheduleRequest& request, const Place& /*place*/) {
  PipelineSchedule schedule;
  schedule.shape = pipeline_shape(request.ranks, 2, request.microbatches, StagePlacement::v);
  const std::int32_t full = std::max(2 * request.ranks - 1, request.microbatches);
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action> actions = full_zbv(request.ranks, rank, full);
    std::erase_if(actions, [&](const Action& a) { return a.microbatch >= request.microbatches; });
    schedule.of_rank.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace shardsim
