#include "sim/network/algorithms/pat.hpp"

#include <algorithm>
#include <bit>

namespace shardsim::network {
namespace {

std::int64_t parts_sent(std::int64_t ranks, std::int64_t distance) {
  return ceil_div(ranks - distance, 2 * distance);
}

std::int64_t farthest(std::int64_t ranks) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ranks))) / 2;
}

}  // namespace

Lanes pat_all_gather(std::int64_t ranks) {
  Phases phases;
  for (std::int64_t distance = farthest(ranks); distance > 0; distance /= 2) {
    phases.push_back(
        {{.blocks = parts_sent(ranks, distance), .parts = ranks}, {Shift{0, distance}}});
  }
  return {std::move(phases)};
}

Lanes pat_reduce_scatter(std::int64_t ranks) {
  Lanes lanes = pat_all_gather(ranks);
  std::reverse(lanes.front().begin(), lanes.front().end());
  for (Phase& phase : lanes.front()) {
    auto& shift = std::get<Shift>(phase.targets.front());
    shift.by = ranks - shift.by;
  }
  return lanes;
}

FlowTime pat_time(std::int64_t ranks, Bytes payload, const Way& way) {
  FlowTime time{0};
  for (std::int64_t distance = farthest(ranks); distance > 0; distance /= 2) {
    const Messages messages{.blocks = parts_sent(ranks, distance), .parts = ranks};
    time += way.time(messages.bytes(payload));
  }
  return time;
}

}  // namespace shardsim::network
