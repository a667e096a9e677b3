#include "strategies/schedule/dualpipev.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "strategies/key_place.hpp"
#include "strategies/schedule/schedules.hpp"
#include "strategies/schedule/v_rank.hpp"

namespace shardsim {
namespace {

// W of the I that were split off, oldest first, whichever way they are.
class OwedWeights {
 public:
  explicit OwedWeights(VRank& list) : list_(list) {}

  void input(VRank::Way way) {
    list_.input(way);
    owed_.push_back(way);
  }
  void weight() {
    if (paid_ < owed_.size()) list_.weight(owed_[paid_++]);
  }

 private:
  VRank& list_;
  std::vector<VRank::Way> owed_;
  std::size_t paid_ = 0;
};

// From the last backwards on: the second half of them is split.
void cool_down(VRank& list, OwedWeights& owed, std::int32_t ranks, std::int32_t rank) {
  // Down and up in turn; the split begins with the way down on even ranks, up on odd ones.
  bool split = false;
  const auto backward = [&](VRank::Way way) { split ? owed.input(way) : list.backward(way); };
  for (std::int32_t i = 0; i <= rank; ++i) {
    const bool half = i == (rank + 1) / 2;
    split = split || (half && rank % 2 == 1);
    backward(VRank::up);
    split = split || (half && rank % 2 == 0);
    backward(VRank::down);
  }
  for (std::int32_t i = 0; i < ranks - rank - 1; ++i) {
    owed.weight();
    backward(VRank::down);
  }
  for (std::int32_t i = 0; i <= rank; ++i) owed.weight();
}

std::vector<Action> dualpipev_rank(std::int32_t ranks, std::int32_t rank,
                                   std::int32_t microbatches) {
  VRank list(ranks, rank);
  OwedWeights owed(list);
  const std::int32_t behind = ranks - rank - 1;
  for (std::int32_t i = 0; i < 2 * behind; ++i) list.forward(VRank::down);
  for (std::int32_t i = 0; i <= rank; ++i) {
    list.forward(VRank::down);
    list.forward(VRank::up);
  }
  for (std::int32_t i = 0; i < behind; ++i) {
    owed.input(VRank::up);
    owed.weight();
    list.forward(VRank::up);
  }
  for (std::int32_t i = 0; i < microbatches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 &&
        behind == 0) {  // the bubble is smaller where the last rank does not overlap these
      list.forward(VRank::down);
      list.backward(VRank::up);
    } else {
      list.overlapped(VRank::down, VRank::up);
    }
    list.overlapped(VRank::up, VRank::down);
  }
  for (std::int32_t i = 0; i < behind; ++i) {
    list.backward(VRank::up);
    list.overlapped(VRank::up, VRank::down);
  }
  cool_down(list, owed, ranks, rank);
  return list.actions();
}

}  // namespace

PipelineSchedule dualpipev(const ScheduleRequest& request, const Place& place) {
  if (request.microbatches < 2 * request.ranks) {
    throw InputError(
        place_of_key(place, "microbatches"),
        fmt::format("dualpipev needs as many microbatches as stages: {} are fewer than "
                    "{}, two on each of {} ranks",
                    request.microbatches, 2 * request.ranks, request.ranks));
  }
  PipelineSchedule schedule;
  schedule.shape = pipeline_shape(request.ranks, 2, request.microbatches, StagePlacement::v);
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    schedule.of_rank.push_back(dualpipev_rank(request.ranks, rank, request.microbatches));
  }
  return schedule;
}

}  // namespace shardsim
