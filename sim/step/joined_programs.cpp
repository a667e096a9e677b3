#include "sim/step/joined_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {

std::vector<std::int64_t> devices_of(const Plan& plan, const Program& program) {
  if (!program.devices.empty()) return program.devices;
  std::vector<std::int64_t> all(static_cast<std::size_t>(plan.mesh.devices()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return all;
}

JoinedPrograms::JoinedPrograms(const Plan& plan)
    : plan_(plan), program_of_(at(plan.mesh.devices()), no_program) {
  for (std::size_t q = 0; q < plan.programs.size(); ++q) {
    for (const std::int64_t device : devices_of(plan, plan.programs[q])) {
      int& program = program_of_[at(device)];
      if (program == no_program) program = static_cast<int>(q);
    }
  }
}

std::vector<std::size_t> JoinedPrograms::joined_by(std::size_t p, const Collective& collective) {
  if (plan_.programs[p].devices.empty()) return {p};
  const bool by_axes = collective.groups.empty() && !collective.axes.empty();
  if (by_axes && stay_within(collective.axes)) return {p};
  auto groups = by_axes ? plan_.mesh.groups(collective.axes) : collective.groups;
  for (const auto& [source, target] : collective.source_targets) {
    groups.push_back({source, target});
  }
  std::set<std::size_t> joined = {p};
  for (bool grows = true; grows;) {
    grows = false;
    for (const auto& group : groups) grows |= join(group, p, collective, joined);
  }
  return {joined.begin(), joined.end()};
}

bool JoinedPrograms::stay_within(const std::vector<AxisRef>& axes) {
  const auto [found, is_new] = stay_within_.try_emplace(axes, true);
  if (!is_new) return found->second;
  for (const auto& group : plan_.mesh.groups(axes)) {
    const int first = program_of_[at(group.front())];
    found->second &=
        first != no_program && std::all_of(group.begin(), group.end(), [&](std::int64_t device) {
          return program_of_[at(device)] == first;
        });
  }
  return found->second;
}

bool JoinedPrograms::join(const std::vector<std::int64_t>& group, std::size_t p,
                          const Collective& collective, std::set<std::size_t>& joined) const {
  std::set<std::size_t> members;
  bool has_others = false;
  for (const std::int64_t device : group) {
    const int program = program_of_[at(device)];
    if (program == no_program) has_others = true;
    if (program != no_program) members.insert(at(program));
  }
  const bool meets = std::any_of(members.begin(), members.end(),
                                 [&](std::size_t q) { return joined.contains(q); });
  if (!meets) return false;
  if (has_others) {
    throw InputError(
        {"", "program " + plan_.programs[p].name},
        fmt::format("{} over {} reaches devices that no program has", name_of(collective.kind),
                    fmt::join(plan_.mesh.names_of(collective.axes), "+")));
  }
  const std::size_t before = joined.size();
  joined.insert(members.begin(), members.end());
  return joined.size() > before;
}

}  // namespace shardsim
