#include "sim/network/algorithms/pairwise.hpp"

namespace shardsim::network {

Phases pairwise_all_to_all(std::int64_t ranks, Bytes payload) {
  Phases phases;
  const Bytes part(ceil_div(payload.count(), ranks));
  for (std::int64_t by = 1; by < ranks; ++by) phases.push_back({1, part, shift(ranks, by)});
  return phases;
}

}  // namespace shardsim::network
