#include "validate/exchange/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/collectives/permute_pairs.hpp"

namespace shardsim {

Groups groups_of(const Plan& plan, const Collective& collective) {
  if (!collective.groups.empty()) return collective.groups;
  if (!collective.axes.empty()) return plan.mesh.groups(collective.axes);
  Groups pairs;
  for (const auto& [source, target] : collective.source_targets) pairs.push_back({source, target});
  return pairs;
}

std::optional<Membership> membership_in(const Groups& groups, std::int64_t position) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto member = std::find(groups[i].begin(), groups[i].end(), position);
    if (member == groups[i].end()) continue;
    return Membership{static_cast<int>(i), static_cast<int>(member - groups[i].begin())};
  }
  return std::nullopt;
}

Neighbours neighbours_in(const Plan& plan, const Collective& permute, std::int64_t position) {
  Neighbours neighbours;
  for (const auto& [source, target] : permute_pairs(plan.mesh, permute)) {
    if (source == position) neighbours.targets.push_back(static_cast<int>(target));
    if (target == position) neighbours.sources.push_back(static_cast<int>(source));
  }
  return neighbours;
}

void check_messages(const Plan& plan) {
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind != TaskKind::transfer) continue;
      const Transfer& transfer = plan.transfers[at(task.work)];
      const Program& peer = plan.programs[at(transfer.peer_program)];
      if (peer.devices.size() == program.devices.size()) continue;
      throw InputError({"", "program " + program.name},
                       fmt::format("messages between programs of {} and {} devices are simulated, "
                                   "but not run",
                                   program.devices.size(), peer.devices.size()));
    }
  }
}

std::int64_t peer_of(const Plan& plan, std::size_t program, const Transfer& transfer,
                     std::int64_t position) {
  const auto& mine = plan.programs[program].devices;
  const auto& theirs = plan.programs[at(transfer.peer_program)].devices;
  const auto place = std::find(mine.begin(), mine.end(), position) - mine.begin();
  return theirs.at(at(place));
}

}  // namespace shardsim
