#include "validate/step/collectives_alone.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr TaskId nothing = -1;

bool communicates(const Task& task) {
  return task.kind == TaskKind::collective || task.kind == TaskKind::transfer;
}

// The last tasks that stay, of each stream, among those that a task waits for. Streams keep their
// order: who waits for the last of one has waited for all before.
using LastOf = std::vector<TaskId>;

void join(LastOf& last, const LastOf& others) {
  for (std::size_t stream = 0; stream < last.size(); ++stream) {
    last[stream] = std::max(last[stream], others[stream]);
  }
}

Program without_kernels(const Program& program) {
  Program left;
  left.name = program.name;
  left.devices = program.devices;
  left.streams = program.streams;
  const LastOf none(program.streams.size(), nothing);
  std::vector<LastOf> ends(program.tasks.size(), none);  // waiting for the task is waiting for
  LastOf previous(program.streams.size(), nothing);      // task of each stream, of `program`
  for (std::size_t id = 0; id < program.tasks.size(); ++id) {
    const Task& task = program.tasks[id];
    LastOf before = none;
    for (const TaskId other : program.after(task)) join(before, ends[at(other)]);
    if (previous[task.stream] != nothing) join(before, ends[at(previous[task.stream])]);
    previous[task.stream] = static_cast<TaskId>(id);
    if (!communicates(task)) {
      ends[id] = std::move(before);
      continue;
    }
    before[task.stream] = nothing;  // its stream's order
    std::erase(before, nothing);
    std::sort(before.begin(), before.end());
    ends[id][task.stream] = left.add_task(task, before);
  }
  return left;
}

}  // namespace

Plan collectives_alone(const Plan& plan) {
  Plan alone = plan;
  alone.kernels.clear();
  alone.subject.model_flops = alone.subject.model_flops_full_attention = Flops(0);
  bool any = false;
  for (Program& program : alone.programs) {
    program = without_kernels(program);
    any = any || !program.tasks.empty();
  }
  if (!any) throw InputError({"", "/mesh"}, "the step has no collectives");
  verify(alone);
  return alone;
}

}  // namespace shardsim
