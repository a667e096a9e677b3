#include "plan/plan.hpp"

#include <array>
#include <cassert>

namespace shardsim {
namespace {

std::string with_layer(const std::string& name, std::int32_t layer) {
  const std::size_t hole = name.find("{}");
  if (layer < 0 || hole == std::string::npos) return name;
  return name.substr(0, hole) + std::to_string(layer) + name.substr(hole + 2);
}

// Appends `ids` to `all`; where they begin.
std::uint32_t append(std::vector<TaskId>& all, const std::vector<TaskId>& ids) {
  const auto first = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), ids.begin(), ids.end());
  return first;
}

}  // namespace

TaskId Program::add_task(Task task, const std::vector<TaskId>& after) {
  task.first_dependency = append(dependencies, after);
  task.dependency_count = static_cast<std::uint32_t>(after.size());
  tasks.push_back(task);
  return static_cast<TaskId>(tasks.size() - 1);
}

BufferId Program::add_buffer(Buffer buffer, const std::vector<TaskId>& freed_after) {
  buffer.first_free = append(frees, freed_after);
  buffer.free_count = static_cast<std::uint32_t>(freed_after.size());
  buffers.push_back(buffer);
  return static_cast<BufferId>(buffers.size() - 1);
}

std::span<const TaskId> Program::after(const Task& task) const {
  return std::span(dependencies).subspan(task.first_dependency, task.dependency_count);
}

std::span<const TaskId> Program::freed_after(const Buffer& buffer) const {
  return std::span(frees).subspan(buffer.first_free, buffer.free_count);
}

std::string Plan::task_name(const Task& task) const {
  return with_layer(names.at(static_cast<std::size_t>(task.name)), task.layer);
}

std::string Plan::buffer_name(const Buffer& buffer) const {
  return with_layer(names.at(static_cast<std::size_t>(buffer.name)), buffer.layer);
}

std::string_view name_of(CollectiveKind kind) {
  static constexpr std::array<std::string_view, 6> names{"all-gather",         "reduce-scatter",
                                                         "all-reduce",         "all-to-all",
                                                         "collective-permute", "broadcast"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(Parallelism parallelism) {
  static constexpr std::array<std::string_view, 7> names{"unknown", "tensor", "data",   "pipeline",
                                                         "context", "expert", "scalars"};
  return names.at(static_cast<std::size_t>(parallelism));
}

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> names{"forward", "backward", "backward-input",
                                                         "backward-weight", "optimizer"};
  return names.at(static_cast<std::size_t>(phase));
}

std::string_view name_of(BufferCategory category) {
  static constexpr std::array<std::string_view, buffer_categories> names{
      "parameters",  "gathered_parameters", "gradients", "optimizer", "activations",
      "temporaries", "communication",       "inputs",    "cache"};
  return names.at(static_cast<std::size_t>(category));
}

std::string_view name_of(KernelClass kernel_class) {
  static constexpr std::array<std::string_view, 5> names{"matmul", "attention",
                                                         "attention-backward", "memory", "host"};
  return names.at(static_cast<std::size_t>(kernel_class));
}

std::string_view name_of(TaskKind kind) {
  static constexpr std::array<std::string_view, 5> names{"kernel", "collective", "transfer",
                                                         "to-host", "from-host"};
  return names.at(static_cast<std::size_t>(kind));
}

std::int64_t group_size(const Plan& plan, const Collective& collective) {
  if (!collective.axes.empty()) return Mesh::size_of(collective.axes);
  if (!collective.groups.empty()) return static_cast<std::int64_t>(collective.groups[0].size());
  return plan.mesh.devices();
}

Bytes wire_bytes_per_device(CollectiveKind kind, std::int64_t group_size, Bytes payload) {
  assert(group_size >= 1);
  // P - floor(P / n) is (n-1)/n P rounded up, without a product that could overflow.
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return payload - payload / group_size;
    case CollectiveKind::all_reduce:
      return 2 * payload - 2 * payload / group_size;
    case CollectiveKind::collective_permute:
    case CollectiveKind::broadcast:  // all but one pass on what they receive
      return payload;
  }
  return payload;
}

Bytes wire_bytes_per_device(const Plan& plan) {
  const std::vector<std::int64_t> executed = executions(plan);
  Bytes sum{0};
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    sum +=
        wire_bytes_per_device(collective.kind, group_size(plan, collective), collective.payload) *
        executed[i];
  }
  return sum;
}

std::vector<std::int64_t> executions(const Plan& plan) {
  std::vector<std::int64_t> counts(plan.collectives.size(), 0);
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind == TaskKind::collective) ++counts.at(static_cast<std::size_t>(task.work));
    }
  }
  return counts;
}

}  // namespace shardsim
