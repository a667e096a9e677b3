#include "sim/step/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "sim/step/issue_times.hpp"
#include "sim/step/joined_programs.hpp"

namespace shardsim {
namespace {

// What a product must sum over for the TPU compiler to spell the scatter of its sums as permutes
// beside its pieces: operations in the time of a byte on a link. Of 329 programs that libtpu 0.0.51
// compiled (2026-10) it does so from between 4096 and 4608 on on v5e (4378 by this) and v5p (5100:
// somewhat late), 8192 and 10240 on v6e (10200). GPUs' compilers do not, unless they are told to.
double least_contracted(const Profile& profile, const TorusProfile& torus) {
  const auto peak = profile.device.peak.find(DType::bf16);
  if (peak == profile.device.peak.end()) return std::numeric_limits<double>::infinity();
  return peak->second.value.count() / torus.link.bandwidth.value.count();
}

// By index into Plan::collectives.
std::vector<bool> collectives_in_turn(const Plan& plan, const Profile& profile) {
  std::vector<bool> in_turn(plan.collectives.size(), false);
  const auto* torus = std::get_if<TorusProfile>(&profile.network);
  for (std::size_t i = 0; i < in_turn.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    if (collective.contracted > 0) {
      in_turn[i] = torus == nullptr ||
                   static_cast<double>(collective.contracted) < least_contracted(profile, *torus);
    } else if (torus != nullptr && torus->synchronous) {
      const std::vector<std::string>& kinds = torus->synchronous->value;
      const std::string_view kind = name_of(collective.kind);
      in_turn[i] = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    }
  }
  return in_turn;
}

class Lowering {
 public:
  Lowering(const Plan& plan, const Placement& placement, const CostOptions& options,
           FollowLinks follow)
      : plan_(plan),
        placement_(placement),
        follow_(follow),
        costs_(placement, options),
        resources_(plan, placement_, costs_, follow),
        joined_programs_(plan),
        in_turn_(collectives_in_turn(plan, placement.machine().profile)),
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
    IssueTimes issue = issue_times(plan_, placement_.machine().profile.device);
    lowered_.graph.not_before = std::move(issue.times);
    lowered_.graph.issued_behind = std::move(issue.behind);
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) add_program(p);
    match_transfers();
    match_collectives();
    link_successors();
    lowered_.link_uses = resources_.link_uses();
    resources_.finish(lowered_.graph);
    if (follow_ == FollowLinks::always) follow_links();
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
      const Collective& collective = plan_.collectives[at(task.work)];
      const std::vector<std::size_t> programs = joined_programs_.joined_by(p, collective);
      work = resources_.add_collective(programs, collective, lowered_.collectives[at(task.work)]);
      for (const std::size_t q : programs) collectives_[q * works + at(task.work)] = work;
      if (programs.size() > 1) joint_.push_back({task.work, programs});
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
    for (const Task& task : program.tasks) {
      const EngineTask lowered{work_in(p, task), static_cast<std::int32_t>(p)};
      const std::uint8_t stream = stream_of(task);
      const bool follows = last_in_stream[stream];
      last_in_stream[stream] = true;
      const bool is_behind = issued_behind(lowered_.graph.tasks.size()) >= 0;
      lowered_.graph.tasks.push_back(lowered);
      std::int32_t waits = follows + is_behind;
      for (const TaskId before : program.after(task)) waits += is_edge(program, before, task);
      lowered_.graph.waits.push_back(waits);
    }
  }

  struct Ends {
    std::vector<std::int32_t> sends;
    std::vector<std::int32_t> receives;
  };

  struct Channel {
    int from = 0;
    int to = 0;
    std::int32_t number = 0;
    auto operator<=>(const Channel&) const = default;
  };

  void match_transfers() {
    std::map<Channel, Ends> channels;
    for_each_task([&](int p, const Task& task, std::int32_t id) {
      if (task.kind != TaskKind::transfer) return;
      const Transfer& transfer = transfer_of(task);
      const int peer = transfer.peer_program;
      if (transfer.sends) channels[{p, peer, transfer.channel}].sends.push_back(id);
      if (!transfer.sends) channels[{peer, p, transfer.channel}].receives.push_back(id);
    });
    for (const auto& [channel, ends] : channels) {
      if (ends.sends.size() != ends.receives.size()) {
        throw std::logic_error(
            fmt::format("plan: {} sends {} messages to {} on channel {}, which receives {}",
                        program(channel.from).name, ends.sends.size(), program(channel.to).name,
                        channel.number, ends.receives.size()));
      }
      pair_up(channel, ends);
    }
  }

  void pair_up(const Channel& channel, const Ends& ends) {
    const auto senders = static_cast<std::int64_t>(devices_of(plan_, program(channel.from)).size());
    const auto receivers = static_cast<std::int64_t>(devices_of(plan_, program(channel.to)).size());
    for (std::size_t i = 0; i < ends.sends.size(); ++i) {
      const Bytes sent = transfer_of(plan_task(channel.from, ends.sends[i])).payload;
      const Bytes received = transfer_of(plan_task(channel.to, ends.receives[i])).payload;
      if (sent * senders != received * receivers) {
        throw std::logic_error(fmt::format("plan: message {} from {} to {} has two sizes", i,
                                           program(channel.from).name, program(channel.to).name));
      }
      const Bytes message = std::min(sent, received);
      auto [work, is_new] = messages_.try_emplace({channel.from, channel.to, message.count()}, 0);
      if (is_new) work->second = add_message(channel, message);
      join({ends.sends[i], ends.receives[i]}, work->second);
    }
  }

  // Every device of one program to its counterpart, or counterparts, of the other, as a permute.
  std::int32_t add_message(const Channel& channel, Bytes message) {
    const auto from = devices_of(plan_, program(channel.from));
    const auto to = devices_of(plan_, program(channel.to));
    const std::size_t most = std::max(from.size(), to.size());
    if (most % from.size() != 0 || most % to.size() != 0) {
      throw InputError(
          {"", "program " + program(channel.from).name},
          fmt::format("messages from {} devices to {} of {} are not simulated: neither "
                      "is a multiple of the other",
                      from.size(), to.size(), program(channel.to).name));
    }
    const CollectiveModel& model = placement_.model();
    const bool is_permute = from.size() == to.size();
    if (!is_permute && model.estimator != Estimator::shardsim) {
      throw InputError(
          {"", "program " + program(channel.from).name},
          fmt::format("what \"{}\" makes of messages from {} to {} is not known", name_of(model),
                      counted(static_cast<std::int64_t>(from.size()), "device"), to.size()));
    }
    Collective permute;
    permute.kind = CollectiveKind::collective_permute;
    permute.payload = message;
    for (std::size_t i = 0; i < most; ++i) {
      permute.source_targets.emplace_back(from[i / (most / from.size())],
                                          to[i / (most / to.size())]);
    }
    return resources_.add_message(at(channel.from), at(channel.to), permute, costs_.cost(permute));
  }

  // A collective that several programs run together.
  struct Joint {
    std::int32_t collective = 0;
    std::vector<std::size_t> programs;
  };

  void match_collectives() {
    for (const Joint& joint : joint_) {
      std::vector<std::vector<std::int32_t>> executions;  // by program
      for (const std::size_t p : joint.programs) {
        executions.emplace_back();
        const std::vector<Task>& tasks = plan_.programs[p].tasks;
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          if (tasks[i].kind != TaskKind::collective || tasks[i].work != joint.collective) continue;
          executions.back().push_back(lowered_.first_task[p] + static_cast<std::int32_t>(i));
        }
        if (executions.back().size() == executions.front().size()) continue;
        throw std::logic_error(
            fmt::format("plan: {} of several programs: {} runs it {} times, {} {}",
                        name_of(plan_.collectives[at(joint.collective)].kind),
                        plan_.programs[joint.programs.front()].name, executions.front().size(),
                        plan_.programs[p].name, executions.back().size()));
      }
      for (std::size_t k = 0; k < executions.front().size(); ++k) {
        std::vector<std::int32_t> together;
        for (const auto& of_program : executions) together.push_back(of_program[k]);
        join(together, lowered_.graph.tasks[at(together.front())].work);
      }
    }
  }

  // Makes partners of tasks, of which the first carries what they do.
  void join(const std::vector<std::int32_t>& tasks, std::int32_t work) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      EngineTask& task = lowered_.graph.tasks[at(tasks[i])];
      task.work = work;
      task.next_partner = tasks[(i + 1) % tasks.size()];
      task.carries = i == 0;
    }
  }

  void follow_links() {
    std::vector<Work>& works = lowered_.graph.works;
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].is_followed = !lowered_.link_uses.by_work[i].empty();
    }
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

  // The task whose end its host waits for before it issues this one; -1: none.
  std::int32_t issued_behind(std::size_t task) const {
    const std::vector<std::int32_t>& behind = lowered_.graph.issued_behind;
    return behind.empty() ? -1 : behind[task];
  }

  // A collective that the machine runs in turn with kernels is among those of the compute stream.
  std::uint8_t stream_of(const Task& task) const {
    const bool in_turn = task.kind == TaskKind::collective && in_turn_[at(task.work)];
    return in_turn ? 0 : task.stream;
  }

  // Of one stream a task waits for the one before it, and so for all.
  bool is_edge(const Program& program, TaskId before, const Task& task) const {
    return stream_of(program.tasks[at(before)]) != stream_of(task);
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
      for (const TaskId before : program(p).after(task)) {
        if (is_edge(program(p), before, task)) visit(first + before, id);
      }
      if (issued_behind(at(id)) >= 0) visit(issued_behind(at(id)), id);
      std::int32_t& before = last[stream_of(task)];
      if (before >= 0) visit(before, id);
      before = id;
    });
  }

  const Program& program(int p) const { return plan_.programs[at(p)]; }
  const Task& plan_task(int p, std::int32_t id) const {
    return program(p).tasks[at(id - lowered_.first_task[at(p)])];
  }
  const Transfer& transfer_of(const Task& task) const { return plan_.transfers[at(task.work)]; }

  const Plan& plan_;
  const Placement& placement_;
  FollowLinks follow_;
  CollectiveCosts costs_;
  Resources resources_;
  JoinedPrograms joined_programs_;
  std::vector<bool> in_turn_;              // collectives of the plan, with what is computed
  std::vector<std::int32_t> kernels_;      // works by program and kernel
  std::vector<std::int32_t> collectives_;  // works by program and collective
  std::map<std::tuple<std::size_t, TaskKind, std::int32_t>, std::int32_t> host_copies_;
  std::map<std::tuple<int, int, std::int64_t>, std::int32_t> messages_;  // by programs and size
  std::vector<Joint> joint_;
  Lowered lowered_;
};

}  // namespace

Lowered lower(const Plan& plan, const Placement& placement, const CostOptions& options,
              FollowLinks follow) {
  return Lowering(plan, placement, options, follow).lower();
}

}  // namespace shardsim
