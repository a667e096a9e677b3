#include "sim/network/algorithms/halving_doubling.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shardsim::network {
namespace {

Phases halving(std::int64_t ranks) {
  assert(can_halve(ranks));
  Phases phases;
  for (std::int64_t distance = ranks / 2; distance > 0; distance /= 2) {
    Targets partners;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      partners.push_back(static_cast<std::int32_t>(rank ^ distance));
    }
    phases.push_back({{.parts = ranks / distance}, {std::move(partners)}});
  }
  return phases;
}

Phases doubling(std::int64_t ranks) {
  Phases phases = halving(ranks);
  std::reverse(phases.begin(), phases.end());
  return phases;
}

}  // namespace

bool can_halve(std::int64_t ranks) {
  return ranks > 0 && std::has_single_bit(static_cast<std::uint64_t>(ranks));
}

Lanes halving_reduce_scatter(std::int64_t ranks) { return {halving(ranks)}; }

Lanes doubling_all_gather(std::int64_t ranks) { return {doubling(ranks)}; }

Lanes halving_doubling_all_reduce(std::int64_t ranks) {
  Phases phases = halving(ranks);
  const Phases gather = doubling(ranks);
  phases.insert(phases.end(), gather.begin(), gather.end());
  return {std::move(phases)};
}

FlowTime halving_time(std::int64_t ranks, Bytes payload, const Way& way) {
  FlowTime time{0};
  for (std::int64_t parts = 2; parts <= ranks; parts *= 2) {
    time += way.time(Bytes(ceil_div(payload.count(), parts)));
  }
  return time;
}

}  // namespace shardsim::network
