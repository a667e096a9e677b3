#include "sim/network/algorithms/ring.hpp"

namespace shardsim::network {
namespace {

Phases around(std::int64_t ranks, Bytes payload, std::int64_t rounds) {
  if (ranks == 1) return {};
  const Bytes part(ceil_div(payload.count(), ranks));
  return {{rounds * (ranks - 1), part, shift(ranks, 1)}};
}

}  // namespace

Phases ring_all_gather(std::int64_t ranks, Bytes payload) { return around(ranks, payload, 1); }
Phases ring_reduce_scatter(std::int64_t ranks, Bytes payload) { return around(ranks, payload, 1); }
Phases ring_all_reduce(std::int64_t ranks, Bytes payload) { return around(ranks, payload, 2); }

}  // namespace shardsim::network
