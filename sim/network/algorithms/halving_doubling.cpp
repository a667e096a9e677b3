#include "sim/network/algorithms/halving_doubling.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shardsim::network {

bool can_halve(std::int64_t ranks) {
  return ranks > 0 && std::has_single_bit(static_cast<std::uint64_t>(ranks));
}

Phases halving_reduce_scatter(std::int64_t ranks, Bytes payload) {
  assert(can_halve(ranks));
  Phases phases;
  for (std::int64_t distance = ranks / 2; distance > 0; distance /= 2) {
    Phase exchange;
    exchange.bytes = Bytes(ceil_div(payload.count(), ranks / distance));
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      exchange.target.push_back(static_cast<std::int32_t>(rank ^ distance));
    }
    phases.push_back(std::move(exchange));
  }
  return phases;
}

Phases doubling_all_gather(std::int64_t ranks, Bytes payload) {
  Phases phases = halving_reduce_scatter(ranks, payload);
  std::reverse(phases.begin(), phases.end());
  return phases;
}

Phases halving_doubling_all_reduce(std::int64_t ranks, Bytes payload) {
  Phases phases = halving_reduce_scatter(ranks, payload);
  Phases gather = doubling_all_gather(ranks, payload);
  phases.insert(phases.end(), gather.begin(), gather.end());
  return phases;
}

}  // namespace shardsim::network
