#include "sim/step/issue_times.hpp"

#include <cmath>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool are_of_a_layer(const Task& a, const Task& b) {
  return a.layer >= 0 && a.layer == b.layer && a.microbatch == b.microbatch && a.phase == b.phase;
}

}  // namespace

std::vector<SimTime> issue_times(const Plan& plan, const DeviceProfile& device) {
  const auto launch = device.host_launch.find(plan.issued_by);
  if (launch == device.host_launch.end()) return {};
  const double one = launch->second.value.count() * picoseconds_per_second;
  std::vector<SimTime> times;
  for (const Program& program : plan.programs) {
    double issued = 0;
    const Task* last = nullptr;
    for (const Task& task : program.tasks) {
      const bool is_launched =
          last == nullptr || !plan.layers_are_graphs || !are_of_a_layer(*last, task);
      const bool is_kernel = task.kind == TaskKind::kernel;
      const int launches = is_kernel ? plan.kernels[at(task.work)].launches : 1;
      if (is_launched) issued += one * (plan.layers_are_graphs ? 1 : launches);
      times.emplace_back(std::llround(issued));
      last = &task;
    }
  }
  return times;
}

}  // namespace shardsim
