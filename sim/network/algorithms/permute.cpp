#include "sim/network/algorithms/permute.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::network {

Lanes permute(std::int64_t ranks, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  // Of each no rank sends or receives twice: the message goes into the first that it fits.
  struct Round {
    Targets targets;
    std::vector<bool> receives;
  };
  std::vector<Round> rounds;
  for (const auto& [source, target] : pairs) {
    if (source == target) continue;
    const auto fits = [from = at(source), to = at(target)](const Round& round) {
      return round.targets[from] == nobody && !round.receives[to];
    };
    auto round = std::find_if(rounds.begin(), rounds.end(), fits);
    if (round == rounds.end()) {
      rounds.push_back({Targets(at(ranks), nobody), std::vector<bool>(at(ranks))});
      round = rounds.end() - 1;
    }
    round->targets[at(source)] = static_cast<std::int32_t>(target);
    round->receives[at(target)] = true;
  }
  if (rounds.empty()) return {};
  Phase phase;
  for (Round& round : rounds) phase.targets.emplace_back(std::move(round.targets));
  return {{std::move(phase)}};
}

}  // namespace shardsim::network
