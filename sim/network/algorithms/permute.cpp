#include "sim/network/algorithms/permute.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::network {

Lanes permute(std::int64_t ranks, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  Targets targets(at(ranks), nobody);
  for (const auto& [source, target] : pairs) {
    if (source != target) targets[at(source)] = static_cast<std::int32_t>(target);
  }
  const bool moves =
      std::any_of(targets.begin(), targets.end(), [](std::int32_t t) { return t != nobody; });
  if (!moves) return {};
  return {{Phase{{}, {std::move(targets)}}}};
}

}  // namespace shardsim::network
