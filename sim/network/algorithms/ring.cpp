#include "sim/network/algorithms/ring.hpp"

#include <cassert>
#include <numeric>

namespace shardsim::network {
namespace {

Lanes around(std::int64_t ranks, const Strides& strides, std::int64_t rounds) {
  if (ranks == 1) return {};
  const auto rings = static_cast<std::int64_t>(strides.size());
  Phase phase{{.parts = rings * ranks, .steps = rounds * (ranks - 1)}, {}};
  for (const std::int64_t stride : strides) {
    assert(std::gcd(stride, ranks) == 1);
    phase.targets.emplace_back(Shift{0, stride});
  }
  return {{std::move(phase)}};
}

}  // namespace

Strides both_ways(std::int64_t ranks) { return {1, ranks - 1}; }

Strides all_strides(std::int64_t ranks) {
  Strides strides;
  for (std::int64_t stride = 1; stride < ranks; ++stride) {
    if (std::gcd(stride, ranks) == 1) strides.push_back(stride);
  }
  return strides;
}

Lanes ring_all_gather(std::int64_t ranks, const Strides& strides) {
  return around(ranks, strides, 1);
}
Lanes ring_reduce_scatter(std::int64_t ranks, const Strides& strides) {
  return around(ranks, strides, 1);
}
Lanes ring_all_reduce(std::int64_t ranks, const Strides& strides) {
  return around(ranks, strides, 2);
}

FlowTime ring_time(std::int64_t ranks, std::int64_t rings, Bytes payload, const Way& way) {
  return (ranks - 1) * way.time(Bytes(ceil_div(payload.count(), rings * ranks)));
}

}  // namespace shardsim::network
