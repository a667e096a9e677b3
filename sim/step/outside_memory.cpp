#include "sim/step/outside_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr Bytes context{std::int64_t{563} * MiB};
constexpr std::int64_t of_a_connection = 10 * MiB;

struct Communicator {
  std::int64_t size = 1;
  std::int64_t rings = 0;  // channels
  std::int64_t all = 0;    // to each of the others
};

bool is_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::collective_permute;
}

}  // namespace

Bytes outside_memory(const Plan& plan, const Program& program, const Lowered& lowered,
                     const Machine& machine) {
  const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network);
  if (cluster == nullptr || !cluster->nccl) return Bytes(0);
  std::vector<char> is_called(plan.collectives.size(), 0);
  for (const Task& task : program.tasks) {
    if (task.kind == TaskKind::collective) is_called[at(task.work)] = 1;
  }
  using Groups = std::pair<std::vector<AxisRef>, std::vector<std::vector<std::int64_t>>>;
  std::map<Groups, Communicator> communicators;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    if (is_called[i] == 0) continue;
    const Collective& collective = plan.collectives[i];
    Communicator& communicator = communicators[{collective.axes, collective.groups}];
    communicator.size = group_size(plan, collective);
    std::int64_t& channels = is_exchange(collective.kind) ? communicator.all : communicator.rings;
    channels = std::max(channels, lowered.collectives[i].thread_blocks);
  }
  const std::int64_t most_near = cluster->devices_per_node.value - 1;
  std::int64_t connections = 0;
  for (const auto& [groups, one] : communicators) {
    connections += one.rings * (one.size > 2 ? 3 : 2) + one.all * std::min(one.size - 1, most_near);
  }
  return context + Bytes(connections * of_a_connection);
}

}  // namespace shardsim
