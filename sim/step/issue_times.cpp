#include "sim/step/issue_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool are_of_a_layer(const Task& a, const Task& b) {
  return a.layer >= 0 && a.layer == b.layer && a.microbatch == b.microbatch && a.phase == b.phase;
}

// Launches of one program's tasks.
class Launches {
 public:
  Launches(const Plan& plan, const Program& program) : plan_(plan) {
    const std::vector<Task>& tasks = program.tasks;
    for (auto first = tasks.begin(); first != tasks.end();) {
      auto end = std::next(first);
      while (end != tasks.end() && are_of_a_layer(*first, *end)) ++end;
      add_layer({first, end});
      first = end;
    }
  }

  [[nodiscard]] int of(std::size_t task) const { return launches_[task]; }

 private:
  using Tasks = std::vector<Task>::const_iterator;
  struct Range {
    Tasks begin;
    Tasks end;
  };

  void add_layer(Range layer) {
    if (plan_.layers_are_graphs) {
      add_graph(layer);
    } else if (plan_.parts_are_graphs) {
      const auto sends_rows = [&](const Task& task) { return is_exchange(task); };
      const Tasks experts = std::find_if(layer.begin, layer.end, sends_rows);
      const Tasks behind = std::find_if(std::make_reverse_iterator(layer.end),
                                        std::make_reverse_iterator(experts), sends_rows)
                               .base();
      add_graph({layer.begin, experts});
      for (Tasks task = experts; task != behind; ++task) launches_.push_back(launches_of(*task));
      add_graph({behind, layer.end});
    } else {
      for (Tasks task = layer.begin; task != layer.end; ++task) {
        launches_.push_back(launches_of(*task));
      }
    }
  }

  void add_graph(Range tasks) {
    for (Tasks task = tasks.begin; task != tasks.end; ++task) {
      const bool is_graph = task->layer >= 0;
      launches_.push_back(is_graph ? (task == tasks.begin ? 1 : 0) : launches_of(*task));
    }
  }

  // One call of Transformer Engine issues all that it has for several experts.
  [[nodiscard]] int launches_of(const Task& task) const {
    if (task.kind != TaskKind::kernel) return 1;
    const Kernel& kernel = plan_.kernels[at(task.work)];
    const bool is_one_call =
        kernel.kernel_class == KernelClass::memory && kernel.implementation == "transformer-engine";
    return is_one_call ? std::min(kernel.launches, 1) : kernel.launches;
  }

  [[nodiscard]] bool is_exchange(const Task& task) const {
    return task.kind == TaskKind::collective &&
           plan_.collectives[at(task.work)].kind == CollectiveKind::all_to_all;
  }

  const Plan& plan_;
  std::vector<int> launches_;
};

// When the host waits: kernels that exchange rows say how many before they send them.
enum class Wait : std::uint8_t { none, before, behind };

Wait wait_at(const Plan& plan, const Task& task) {
  if (task.kind == TaskKind::collective) {
    const Collective& collective = plan.collectives[at(task.work)];
    if (!collective.awaited) return Wait::none;
    return collective.visits ? Wait::before : Wait::behind;
  }
  const bool is_receive = task.kind == TaskKind::transfer && !plan.transfers[at(task.work)].sends;
  return plan.awaits_messages && is_receive ? Wait::behind : Wait::none;
}

}  // namespace

IssueTimes issue_times(const Plan& plan, const DeviceProfile& device) {
  const auto launch = device.host_launch.find(plan.issued_by);
  if (launch == device.host_launch.end()) return {};
  const double one = launch->second.value.count() * picoseconds_per_second;
  IssueTimes issue;
  bool waits = plan.awaits_messages;
  for (const Program& program : plan.programs) {
    const Launches launches(plan, program);
    double issued = 0;
    std::int32_t behind = -1;
    const auto wait_for_last = [&] {
      behind = static_cast<std::int32_t>(issue.times.size()) - 1;
      issued = 0;
      waits = true;
    };
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const Wait wait = wait_at(plan, program.tasks[i]);
      if (wait == Wait::before && i > 0) wait_for_last();
      issued += one * launches.of(i);
      issue.times.emplace_back(std::llround(issued));
      issue.behind.push_back(behind);
      if (wait == Wait::behind) wait_for_last();
    }
  }
  if (!waits) issue.behind.clear();
  return issue;
}

}  // namespace shardsim
