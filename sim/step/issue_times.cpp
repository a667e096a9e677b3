#include "sim/step/issue_times.hpp"

#include <cmath>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool are_of_a_layer(const Task& a, const Task& b) {
  return a.layer >= 0 && a.layer == b.layer && a.microbatch == b.microbatch && a.phase == b.phase;
}

bool is_receive(const Plan& plan, const Task& task) {
  return task.kind == TaskKind::transfer && !plan.transfers[at(task.work)].sends;
}

}  // namespace

IssueTimes issue_times(const Plan& plan, const DeviceProfile& device) {
  const auto launch = device.host_launch.find(plan.issued_by);
  if (launch == device.host_launch.end()) return {};
  const double one = launch->second.value.count() * picoseconds_per_second;
  IssueTimes issue;
  for (const Program& program : plan.programs) {
    double issued = 0;
    const Task* last = nullptr;
    std::int32_t behind = -1;
    for (const Task& task : program.tasks) {
      const bool is_launched =
          last == nullptr || !plan.layers_are_graphs || !are_of_a_layer(*last, task);
      const bool is_kernel = task.kind == TaskKind::kernel;
      const int launches = is_kernel ? plan.kernels[at(task.work)].launches : 1;
      if (is_launched) issued += one * (plan.layers_are_graphs ? 1 : launches);
      issue.times.emplace_back(std::llround(issued));
      if (plan.awaits_messages) issue.behind.push_back(behind);
      if (plan.awaits_messages && is_receive(plan, task)) {
        behind = static_cast<std::int32_t>(issue.times.size()) - 1;
        issued = 0;
      }
      last = &task;
    }
  }
  return issue;
}

}  // namespace shardsim
