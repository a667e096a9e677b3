#include "sim/step/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {
namespace {

std::vector<std::int64_t> devices_of(const Plan& plan, const Program& program) {
  if (!program.devices.empty()) return program.devices;
  std::vector<std::int64_t> all(static_cast<std::size_t>(plan.mesh.devices()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return all;
}

// A collective whose group has members outside its program would have to wait for them.
void check_stays_inside(const Plan& plan, const Program& program, const Collective& collective) {
  const std::set<std::int64_t> inside(program.devices.begin(), program.devices.end());
  auto groups = collective.groups.empty() && !collective.axes.empty()
                    ? plan.mesh.groups(collective.axes)
                    : collective.groups;
  for (const auto& [source, target] : collective.source_targets) groups.push_back({source, target});
  for (const auto& group : groups) {
    const auto members = std::count_if(
        group.begin(), group.end(), [&](std::int64_t device) { return inside.count(device) != 0; });
    if (members == 0 || members == static_cast<std::ptrdiff_t>(group.size())) continue;
    throw InputError(
        {"", "program " + program.name},
        fmt::format("{} over {} reaches devices of other programs, which is not simulated",
                    name_of(collective.kind), fmt::join(plan.mesh.names_of(collective.axes), "+")));
  }
}

class Lowering {
 public:
  Lowering(const Plan& plan, const Placement& placement, const CostOptions& options,
           FollowLinks follow)
      : plan_(plan),
        placement_(placement),
        costs_(placement, options),
        resources_(plan, placement_, costs_, follow),
        kernels_(plan.programs.size() * plan.kernels.size(), unknown),
        collectives_(plan.programs.size() * plan.collectives.size(), unknown) {}

  Lowered lower() {
    for (const Collective& collective : plan_.collectives) {
      lowered_.collectives.push_back(costs_.cost(collective));
    }
    std::int32_t first = 0;
    for (const Program& program : plan_.programs) {
      lowered_.first_task.push_back(first);
      first += static_cast<std::int32_t>(program.tasks.size());
    }
    lowered_.first_task.push_back(first);
    lowered_.graph.tasks.reserve(static_cast<std::size_t>(first));
    lowered_.graph.waits.reserve(static_cast<std::size_t>(first));
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) add_program(p);
    match_transfers();
    link_successors();
    lowered_.link_uses = resources_.link_uses();
    resources_.finish(lowered_.graph);
    check_sum();
    lowered_.notes = costs_.notes_on_flows();
    lowered_.notes.insert(lowered_.notes.end(), resources_.notes().begin(),
                          resources_.notes().end());
    for (const std::string& unused : costs_.unused_algorithms()) {
      lowered_.notes.push_back(
          fmt::format("algorithms: the step has no {}, which was told one", unused));
    }
    return std::move(lowered_);
  }

 private:
  static constexpr std::int32_t unknown = -1;

  // What a kernel or collective takes of the devices of a program; those of transfers come later.
  std::int32_t work_in(std::size_t p, const Task& task) {
    if (task.kind == TaskKind::transfer) return unknown;
    if (is_host_copy(task.kind)) return host_copy_in(p, task);
    const bool computes = task.kind == TaskKind::kernel;
    const std::size_t works = computes ? plan_.kernels.size() : plan_.collectives.size();
    std::int32_t& work = (computes ? kernels_ : collectives_)[p * works + at(task.work)];
    if (work != unknown) return work;
    if (computes) {
      work = resources_.add_kernel(p, plan_.kernels[at(task.work)]);
    } else {
      work = resources_.add_collective(p, plan_.collectives[at(task.work)],
                                       lowered_.collectives[at(task.work)]);
    }
    return work;
  }

  std::int32_t host_copy_in(std::size_t p, const Task& task) {
    const auto [work, is_new] = host_copies_.try_emplace({p, task.kind, task.work}, unknown);
    if (is_new) {
      work->second = resources_.add_host_copy(p, task.kind, plan_.kernels[at(task.work)].bytes);
    }
    return work->second;
  }

  void add_program(std::size_t p) {
    const Program& program = plan_.programs[p];
    std::vector<bool> last_in_stream(program.streams.size(), false);
    std::set<std::int32_t> checked;
    for (const Task& task : program.tasks) {
      if (task.kind == TaskKind::collective) {
        if (!program.devices.empty() && checked.insert(task.work).second) {
          check_stays_inside(plan_, program, plan_.collectives[at(task.work)]);
        }
      }
      const EngineTask lowered{work_in(p, task), static_cast<std::int32_t>(p), -1, false};
      const bool follows = last_in_stream[task.stream];
      last_in_stream[task.stream] = true;
      lowered_.graph.tasks.push_back(lowered);
      lowered_.graph.waits.push_back(static_cast<std::int32_t>(task.dependency_count) + follows);
    }
  }

  struct Ends {
    std::vector<std::int32_t> sends;
    std::vector<std::int32_t> receives;
  };

  void match_transfers() {
    std::map<std::pair<int, int>, Ends> channels;  // by sending and receiving program
    for_each_task([&](int p, const Task& task, std::int32_t id) {
      if (task.kind != TaskKind::transfer) return;
      const Transfer& transfer = transfer_of(task);
      if (transfer.sends) channels[{p, transfer.peer_program}].sends.push_back(id);
      if (!transfer.sends) channels[{transfer.peer_program, p}].receives.push_back(id);
    });
    for (const auto& [programs, ends] : channels) {
      if (ends.sends.size() != ends.receives.size()) {
        throw std::logic_error(fmt::format("plan: {} sends {} messages to {}, which receives {}",
                                           program(programs.first).name, ends.sends.size(),
                                           program(programs.second).name, ends.receives.size()));
      }
      pair_up(programs, ends);
    }
  }

  void pair_up(const std::pair<int, int>& programs, const Ends& ends) {
    std::map<std::int64_t, std::int32_t> works;  // by payload
    for (std::size_t i = 0; i < ends.sends.size(); ++i) {
      const Bytes payload = transfer_of(plan_task(programs.first, ends.sends[i])).payload;
      if (transfer_of(plan_task(programs.second, ends.receives[i])).payload != payload) {
        throw std::logic_error(fmt::format("plan: message {} from {} to {} has two sizes", i,
                                           program(programs.first).name,
                                           program(programs.second).name));
      }
      auto [work, is_new] = works.try_emplace(payload.count(), 0);
      if (is_new) work->second = add_message(programs, payload);
      for (const bool sends : {true, false}) {
        auto& task = lowered_.graph.tasks[at(sends ? ends.sends[i] : ends.receives[i])];
        task.work = work->second;
        task.partner = sends ? ends.receives[i] : ends.sends[i];
        task.sends = sends;
      }
    }
  }

  // Every device of one program to its counterpart of the other, as a permute.
  std::int32_t add_message(const std::pair<int, int>& programs, Bytes payload) {
    const auto from = devices_of(plan_, program(programs.first));
    const auto to = devices_of(plan_, program(programs.second));
    if (from.size() != to.size()) {
      throw InputError({"", "program " + program(programs.first).name},
                       fmt::format("messages from {} devices to {} of {} are not simulated",
                                   from.size(), to.size(), program(programs.second).name));
    }
    Collective permute;
    permute.kind = CollectiveKind::collective_permute;
    permute.payload = payload;
    for (std::size_t i = 0; i < from.size(); ++i)
      permute.source_targets.emplace_back(from[i], to[i]);
    return resources_.add_message(at(programs.first), at(programs.second), permute,
                                  costs_.cost(permute));
  }

  // One after the other, the tasks of a step must fit SimTime.
  void check_sum() const {
    double sum = 0;
    for (const EngineTask& task : lowered_.graph.tasks) {
      const Work& work = lowered_.graph.works[at(task.work)];
      sum += static_cast<double>((work.fixed + work.shared).count());
    }
    check_length(placement_.machine(), "the tasks of the step take",
                 Seconds(sum / picoseconds_per_second));
  }

  // Two passes over the same edges: count, then fill.
  void link_successors() {
    TaskGraph& graph = lowered_.graph;
    graph.first_successor.assign(graph.tasks.size() + 1, 0);
    for_each_edge(
        [&](std::int32_t before, std::int32_t) { ++graph.first_successor[at(before) + 1]; });
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      graph.first_successor[i + 1] += graph.first_successor[i];
    }
    graph.successors.resize(graph.first_successor.back());
    std::vector<std::uint32_t> next(graph.first_successor.begin(), graph.first_successor.end() - 1);
    for_each_edge([&](std::int32_t before, std::int32_t after) {
      graph.successors[next[at(before)]++] = after;
    });
  }

  template <class Visit>
  void for_each_task(Visit visit) const {
    std::int32_t id = 0;
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      for (const Task& task : plan_.programs[p].tasks) visit(static_cast<int>(p), task, id++);
    }
  }

  template <class Visit>
  void for_each_edge(Visit visit) const {
    std::vector<std::int32_t> last;
    for_each_task([&](int p, const Task& task, std::int32_t id) {
      const std::int32_t first = lowered_.first_task[at(p)];
      if (id == first) last.assign(program(p).streams.size(), -1);
      for (TaskId before : program(p).after(task)) visit(first + before, id);
      if (last[task.stream] >= 0) visit(last[task.stream], id);
      last[task.stream] = id;
    });
  }

  const Program& program(int p) const { return plan_.programs[at(p)]; }
  const Task& plan_task(int p, std::int32_t id) const {
    return program(p).tasks[at(id - lowered_.first_task[at(p)])];
  }
  const Transfer& transfer_of(const Task& task) const { return plan_.transfers[at(task.work)]; }

  const Plan& plan_;
  const Placement& placement_;
  CollectiveCosts costs_;
  Resources resources_;
  std::vector<std::int32_t> kernels_;      // works by program and kernel
  std::vector<std::int32_t> collectives_;  // works by program and collective
  std::map<std::tuple<std::size_t, TaskKind, std::int32_t>, std::int32_t> host_copies_;
  Lowered lowered_;
};

}  // namespace

Lowered lower(const Plan& plan, const Placement& placement, const CostOptions& options,
              FollowLinks follow) {
  return Lowering(plan, placement, options, follow).lower();
}

}  // namespace shardsim
