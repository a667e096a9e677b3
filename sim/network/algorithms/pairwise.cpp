#include "sim/network/algorithms/pairwise.hpp"

namespace shardsim::network {

Lanes pairwise_all_to_all(std::int64_t ranks) {
  Phases phases;
  for (std::int64_t by = 1; by < ranks; ++by) phases.push_back({{.parts = ranks}, {Shift{0, by}}});
  return {std::move(phases)};
}

Lanes direct_all_to_all(std::int64_t ranks) {
  Phase phase{{.parts = ranks}, {}};
  for (std::int64_t by = 1; by < ranks; ++by) phase.targets.emplace_back(Shift{0, by});
  return {{std::move(phase)}};
}

FlowTime pairwise_time(std::int64_t ranks, Bytes payload, const Way& way) {
  return (ranks - 1) * way.time(Bytes(ceil_div(payload.count(), ranks)));
}

}  // namespace shardsim::network
