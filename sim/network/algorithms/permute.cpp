#include "sim/network/algorithms/permute.hpp"

#include "base/index.hpp"

namespace shardsim::network {

Phases permute(std::int64_t ranks, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
               Bytes message) {
  Phase phase{1, message, std::vector<std::int32_t>(at(ranks), nobody)};
  bool moves = false;
  for (const auto& [source, target] : pairs) {
    if (source == target) continue;
    phase.target[at(source)] = static_cast<std::int32_t>(target);
    moves = true;
  }
  if (!moves) return {};
  return {std::move(phase)};
}

}  // namespace shardsim::network
