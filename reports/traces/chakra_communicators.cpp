#include "reports/traces/chakra_communicators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/collectives/permute_pairs.hpp"

namespace shardsim {

ChakraCommunicators::ChakraCommunicators(const Plan& plan) : plan_(plan) {
  place_ranks();
  for (const Program& program : plan.programs) check_messages(program);
  group_ranks();
}

ChakraCommunicators::Ranks ChakraCommunicators::devices_of(const Program& program) const {
  if (!program.devices.empty()) return program.devices;
  Ranks all(at(plan_.mesh.devices()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

void ChakraCommunicators::place_ranks() {
  program_of_.assign(at(plan_.mesh.devices()), none);
  place_of_.assign(at(plan_.mesh.devices()), none);
  for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
    const Ranks devices = devices_of(plan_.programs[p]);
    for (std::size_t place = 0; place < devices.size(); ++place) {
      program_of_[at(devices[place])] = static_cast<std::int32_t>(p);
      place_of_[at(devices[place])] = static_cast<std::int64_t>(place);
    }
  }
}

void ChakraCommunicators::check_messages(const Program& program) const {
  const std::size_t devices = devices_of(program).size();
  for (const Task& task : program.tasks) {
    if (task.kind != TaskKind::transfer) continue;
    const Program& peer = plan_.programs[at(plan_.transfers[at(task.work)].peer_program)];
    const std::size_t others = devices_of(peer).size();
    if (devices == others) continue;
    throw InputError({"", "program " + program.name},
                     fmt::format("messages between {} devices and {} of {} have no counterparts "
                                 "that a trace could name",
                                 devices, others, peer.name));
  }
}

void ChakraCommunicators::group_ranks() {
  using Key = std::tuple<bool, std::vector<AxisRef>, std::vector<Ranks>,
                         std::vector<std::pair<std::int64_t, std::int64_t>>>;
  std::map<Key, std::int32_t> known;
  std::set<std::pair<std::size_t, std::int32_t>> numbered;  // program and grouping
  grouping_of_.assign(plan_.collectives.size(), none);
  for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
    for (const Task& task : plan_.programs[p].tasks) {
      if (task.kind != TaskKind::collective) continue;
      const Collective& collective = plan_.collectives[at(task.work)];
      const bool permutes = collective.kind == CollectiveKind::collective_permute;
      std::int32_t& index = grouping_of_[at(task.work)];
      if (index == none) {
        const Key key(permutes, collective.axes, collective.groups, collective.source_targets);
        const auto next = static_cast<std::int32_t>(groupings_.size());
        const auto [found, is_new] = known.try_emplace(key, next);
        if (is_new) groupings_.push_back(make_grouping(collective));
        index = found->second;
      }
      if (!permutes && numbered.insert({p, index}).second) {
        number_groups(p, collective, groupings_[at(index)]);
      }
    }
  }
}

ChakraCommunicators::Grouping ChakraCommunicators::make_grouping(
    const Collective& collective) const {
  Grouping grouping;
  const std::size_t count = at(plan_.mesh.devices());
  if (collective.kind != CollectiveKind::collective_permute) {
    grouping.group_of.assign(count, none);
    return grouping;
  }
  grouping.sends_to.assign(count, none);
  grouping.receives_from.assign(count, none);
  for (const auto& [source, target] : permute_pairs(plan_.mesh, collective)) {
    if (source == target) continue;  // a copy where it is
    grouping.sends_to[at(source)] = static_cast<std::int32_t>(target);
    grouping.receives_from[at(target)] = static_cast<std::int32_t>(source);
  }
  return grouping;
}

void ChakraCommunicators::number_groups(std::size_t program, const Collective& collective,
                                        Grouping& grouping) {
  const std::vector<Ranks> groups =
      collective.axes.empty() ? collective.groups : plan_.mesh.groups(collective.axes);
  for (const Ranks& group : groups) {
    const auto members = std::count_if(group.begin(), group.end(), [&](std::int64_t rank) {
      return program_of_[at(rank)] == static_cast<std::int32_t>(program);
    });
    if (members == 0 || group.size() == 1) continue;
    if (members != static_cast<std::ptrdiff_t>(group.size())) {
      throw InputError({"", "program " + plan_.programs[program].name},
                       fmt::format("{} over {} reaches devices of other programs, which have no "
                                   "such task",
                                   name_of(collective.kind),
                                   fmt::join(plan_.mesh.names_of(collective.axes), "+")));
    }
    const auto next = static_cast<std::int32_t>(groups_.size());
    const auto [found, is_new] = group_index_.try_emplace(group, next);
    if (is_new) groups_.push_back(group);
    for (const std::int64_t rank : group) grouping.group_of[at(rank)] = found->second;
  }
}

}  // namespace shardsim
