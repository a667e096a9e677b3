#include "sim/step/accounting.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace shardsim {
namespace {

struct Weighed {
  std::string text;
  std::int64_t weight = 0;  // over all executions
};

// Adds to what has been said before.
void note(std::vector<Weighed>& all, const std::string& text, std::int64_t weight) {
  if (text.empty()) return;
  auto known = std::find_if(all.begin(), all.end(),
                            [&](const Weighed& other) { return other.text == text; });
  if (known == all.end()) known = all.insert(known, {text, 0});
  known->weight += weight;
}

// The heaviest first.
std::vector<std::string> by_weight(std::vector<Weighed> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Weighed& a, const Weighed& b) { return a.weight > b.weight; });
  std::vector<std::string> texts;
  for (Weighed& one : all) texts.push_back(std::move(one.text));
  return texts;
}

// What a program runs: collectives by their index, behind them transfers; in the order of their
// first executions.
class Executions {
 public:
  explicit Executions(const Plan& plan)
      : collectives_(plan.collectives.size()), of_(collectives_ + plan.transfers.size()) {}

  struct Of {
    std::int64_t count = 0;
    std::int64_t carried = 0;  // of those joined to other programs' the ones that count
    SimTime time{0};
  };
  void add(const Task& task, bool carries, SimTime time) {
    const bool is_transfer = task.kind == TaskKind::transfer;
    const auto work = static_cast<std::size_t>(task.work) + (is_transfer ? collectives_ : 0);
    if (of_[work].count++ == 0) order_.push_back(work);
    of_[work].carried += carries ? 1 : 0;
    of_[work].time += time;
  }
  template <class VisitCollective, class VisitTransfer>
  void for_each(VisitCollective collective, VisitTransfer transfer) const {
    for (const std::size_t work : order_) {
      if (work < collectives_) {
        collective(work, of_[work]);
      } else {
        transfer(work - collectives_, of_[work]);
      }
    }
  }

 private:
  std::size_t collectives_;
  std::vector<Of> of_;
  std::vector<std::size_t> order_;
};

// One row per kind, axes and group size; where the work of collectives and transfers is counted.
struct Rows {
  std::vector<CommunicationRow> rows;
  std::vector<std::vector<Weighed>> reasons;     // by row, as they come; in bytes of payload
  std::vector<std::vector<Weighed>> algorithms;  // by row; in picoseconds
  std::vector<std::size_t> of_collective;        // row by index into Plan::collectives
  std::size_t of_transfers = 0;
  std::array<std::size_t, 2> of_host_copies{};  // there, back
};

Rows make_rows(const Plan& plan) {
  Rows result;
  std::map<std::tuple<std::string_view, std::vector<AxisRef>, std::int64_t>, std::size_t> known;
  const auto row_of = [&](std::string_view kind, const std::vector<AxisRef>& axes,
                          std::int64_t size) {
    const auto [found, is_new] = known.try_emplace({kind, axes, size}, result.rows.size());
    if (is_new) {
      CommunicationRow row;
      row.kind = kind;
      row.axes = plan.mesh.names_of(axes);
      row.group_size = size;
      result.rows.push_back(std::move(row));
    }
    return found->second;
  };
  for (const Collective& collective : plan.collectives) {
    result.of_collective.push_back(
        row_of(name_of(collective.kind), collective.axes, group_size(plan, collective)));
  }
  if (!plan.transfers.empty()) {
    result.of_transfers = row_of(name_of(CollectiveKind::collective_permute), {}, 2);
  }
  result.of_host_copies = {row_of(name_of(TaskKind::to_host), {}, 1),
                           row_of(name_of(TaskKind::from_host), {}, 1)};
  result.reasons.resize(result.rows.size());
  result.algorithms.resize(result.rows.size());
  return result;
}

// The reason that moves most bytes, and how many more there are.
std::string summary_of(const std::vector<Weighed>& reasons) {
  if (reasons.empty()) return "";
  const std::string heaviest = by_weight(reasons).front();
  const std::size_t more = reasons.size() - 1;
  return more == 0 ? heaviest : heaviest + "; " + std::to_string(more) + " more";
}

// "ring on y", "NVLS Simple"
std::string algorithm_of(const CostBreakdown& cost) {
  return cost.protocol.empty() ? cost.algorithm : cost.algorithm + " " + cost.protocol;
}

// Walks a program's changes in order of time.
class Sweep {
 public:
  // `issued()`: when the task that begins now was; the beginning of the step where none does.
  template <class Issued>
  void advance(SimTime now, Issued issued, Rows& rows, ProgramResult& result) {
    const SimTime then = std::exchange(last_, now);
    const SimTime passed = now - then;
    if (passed == SimTime(0)) return;
    if (!flying_.empty()) result.communication_time += passed;
    if (!kernels_.empty()) {
      std::min_element(kernels_.begin(), kernels_.end())->counted += passed;
    } else if (flying_.empty()) {
      result.idle_time += passed;
      const SimTime by_host =
          on_host_ > 0 ? passed : std::clamp(issued() - then, SimTime(0), passed);
      of(result, TimePart::host) += by_host;
      of(result, TimePart::bubble) += passed - by_host;
    } else {
      result.exposed_time += passed;
      const auto sharers = static_cast<std::int64_t>(flying_.size());
      std::int64_t remainder = passed.count() % sharers;
      for (const Flight& flight : flying_) {
        const SimTime share = passed / sharers + SimTime(remainder-- > 0 ? 1 : 0);
        rows.rows[flight.row].exposed += share;
        of(result, flight.part) += share;
      }
    }
  }
  void begin_on_host() { ++on_host_; }
  void end_on_host() { --on_host_; }

  void begin_kernel(std::int32_t task, std::uint8_t stream) {
    kernels_.push_back({stream, task, SimTime(0)});
  }
  // `took` and `alone`: its time, and what it would have been.
  void end_kernel(std::int32_t task, SimTime took, SimTime alone, TimePart kind,
                  ProgramResult& result) {
    const auto ended = std::find_if(kernels_.begin(), kernels_.end(),
                                    [&](const Running& kernel) { return kernel.task == task; });
    const SimTime computed = part(alone, ended->counted, took);
    result.compute_time += computed;
    result.contention_time += ended->counted - computed;
    of(result, kind) += computed;
    of(result, TimePart::contention) += ended->counted - computed;
    kernels_.erase(ended);
  }
  void take_off(std::int32_t task, std::size_t row, TimePart part) {
    flying_.push_back({task, row, part});
  }
  void land(std::int32_t task) {
    flying_.erase(std::find_if(flying_.begin(), flying_.end(),
                               [&](const Flight& flight) { return flight.task == task; }));
  }

 private:
  struct Flight {
    std::int32_t task = 0;
    std::size_t row = 0;
    TimePart part = TimePart::communication;
  };
  struct Running {
    std::uint8_t stream = 0;
    std::int32_t task = 0;
    SimTime counted{0};  // during which it was the one that counts
    friend bool operator<(const Running& a, const Running& b) {
      return std::tie(a.stream, a.task) < std::tie(b.stream, b.task);
    }
  };

  // What of `alone` falls on `counted` of `took`; all of it, where that is all.
  static SimTime part(SimTime alone, SimTime counted, SimTime took) {
    if (counted == took) return std::min(alone, took);
    const double share = static_cast<double>(counted.count()) / static_cast<double>(took.count());
    const auto computed = static_cast<std::int64_t>(share * static_cast<double>(alone.count()));
    return std::min(SimTime(computed), counted);
  }

  static SimTime& of(ProgramResult& result, TimePart part) {
    return result.parts[static_cast<std::size_t>(part)];
  }

  SimTime last_{0};
  int on_host_ = 0;  // kernels of the host
  std::vector<Running> kernels_;
  std::vector<Flight> flying_;  // collectives and messages, the first started first
};

class Accountant {
 public:
  Accountant(const Plan& plan, const Lowered& lowered, const Trace& trace, Result& result)
      : plan_(plan),
        lowered_(lowered),
        trace_(trace),
        result_(result),
        rows_(make_rows(plan)),
        wire_bytes_(plan.programs.size(), 0) {}

  void account() {
    for (const SimTime end : trace_.end) result_.step_time = std::max(result_.step_time, end);
    sweep();
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) count(p);
    publish_rows();
    std::vector<double> compute;
    std::vector<std::int64_t> devices;
    for (const ProgramResult& program : result_.programs) {
      compute.push_back(static_cast<double>(program.compute_time.count()));
      devices.push_back(program.devices);
    }
    result_.compute_balance = balance(compute, devices);
    result_.link_balance = balance(wire_bytes_, devices);
  }

 private:
  void sweep() {
    std::vector<Sweep> sweeps(plan_.programs.size());
    for (const Change& change : trace_.changes) {
      const auto id = static_cast<std::size_t>(change.task());
      const auto p = static_cast<std::size_t>(lowered_.graph.tasks[id].program);
      const Task& task =
          plan_.programs[p].tasks[id - static_cast<std::size_t>(lowered_.first_task[p])];
      Sweep& at = sweeps[p];
      at.advance(
          change.starts() ? trace_.start[id] : trace_.end[id],
          [&] { return change.starts() ? issue_time(id) : SimTime(0); }, rows_,
          result_.programs[p]);
      if (is_on_host(task)) {
        change.starts() ? at.begin_on_host() : at.end_on_host();
        continue;
      }
      const bool kernel = task.kind == TaskKind::kernel;
      if (kernel && change.starts()) at.begin_kernel(change.task(), task.stream);
      if (kernel && !change.starts()) {
        at.end_kernel(change.task(), trace_.end[id] - trace_.start[id], alone(id),
                      part_of_kernel(task), result_.programs[p]);
      }
      if (!kernel && change.starts()) {
        at.take_off(change.task(), row_of(task), part_of_communication(plan_, task));
      }
      if (!kernel && !change.starts()) at.land(change.task());
    }
    for (std::size_t p = 0; p < sweeps.size(); ++p) {
      const auto none = [] { return SimTime(0); };
      sweeps[p].advance(result_.step_time, none, rows_, result_.programs[p]);
    }
  }

  // By the host of its own program.
  [[nodiscard]] SimTime issue_time(std::size_t task) const {
    return lowered_.graph.not_before.empty() ? SimTime(0)
                                             : issue_time_of(lowered_.graph, trace_, task);
  }

  // The device is idle meanwhile.
  [[nodiscard]] bool is_on_host(const Task& task) const {
    return task.kind == TaskKind::kernel &&
           plan_.kernels[static_cast<std::size_t>(task.work)].kernel_class == KernelClass::host;
  }

  [[nodiscard]] SimTime alone(std::size_t task) const {
    const EngineTask& of = lowered_.graph.tasks[task];
    const Work& work = lowered_.graph.works[static_cast<std::size_t>(of.work)];
    return work.fixed + work.shared;
  }

  // What each task adds to its row.
  void count(std::size_t p) {
    Executions executions(plan_);
    for (std::size_t i = 0; i < plan_.programs[p].tasks.size(); ++i) {
      const Task& task = plan_.programs[p].tasks[i];
      if (task.kind == TaskKind::kernel) continue;
      const TaskTimes& times = result_.programs[p].tasks[i];
      const auto id = static_cast<std::size_t>(lowered_.first_task[p]) + i;
      rows_.rows[row_of(task)].time += times.end - times.start;
      if (is_host_copy(task.kind)) {
        count_host_copy(task);
      } else {
        executions.add(task, lowered_.graph.tasks[id].carries, times.end - times.start);
      }
    }
    executions.for_each(
        [&](std::size_t work, const Executions::Of& of) { count_collective(p, work, of); },
        [&](std::size_t work, const Executions::Of& of) { count_transfer(p, work, of); });
  }

  void count_host_copy(const Task& task) {
    const std::size_t at = row_of(task);
    const Bytes bytes = plan_.kernels[static_cast<std::size_t>(task.work)].bytes;
    note(rows_.reasons[at], plan_.task_name(task), bytes.count());
    ++rows_.rows[at].count;
    rows_.rows[at].payload += bytes;  // no wire between devices has them
  }

  void count_transfer(std::size_t p, std::size_t work, const Executions::Of& of) {
    const Transfer& transfer = plan_.transfers[work];
    note(rows_.reasons[rows_.of_transfers], transfer.reason, of.count * transfer.payload.count());
    if (!transfer.sends) return;
    add(rows_.rows[rows_.of_transfers], of.count, transfer.payload, transfer.payload);
    wire_bytes_[p] += static_cast<double>(of.count * transfer.payload.count());
  }

  // What several programs run together is counted with the one that carries it.
  void count_collective(std::size_t p, std::size_t work, const Executions::Of& of) {
    const Collective& collective = plan_.collectives[work];
    const std::size_t at = rows_.of_collective[work];
    note(rows_.reasons[at], collective.reason, of.count * collective.payload.count());
    note(rows_.algorithms[at], algorithm_of(lowered_.collectives[work]), of.time.count());
    const Bytes wire =
        wire_bytes_per_device(collective.kind, rows_.rows[at].group_size, collective.payload);
    add(rows_.rows[at], of.carried, collective.payload, wire);
    wire_bytes_[p] += static_cast<double>(of.count * wire.count());
  }

  static void add(CommunicationRow& row, std::int64_t count, Bytes payload, Bytes wire) {
    row.count += count;
    row.payload += count * payload;
    row.wire_bytes_per_device += count * wire;
  }

  void publish_rows() {
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      rows_.rows[i].what = summary_of(rows_.reasons[i]);
      rows_.rows[i].algorithms = by_weight(rows_.algorithms[i]);
    }
    std::erase_if(rows_.rows, [](const CommunicationRow& row) { return row.count == 0; });
    std::stable_sort(rows_.rows.begin(), rows_.rows.end(),
                     [](const CommunicationRow& a, const CommunicationRow& b) {
                       return std::tie(a.exposed, a.time) > std::tie(b.exposed, b.time);
                     });
    result_.communication = std::move(rows_.rows);
  }

  std::size_t row_of(const Task& task) const {
    if (task.kind == TaskKind::transfer) return rows_.of_transfers;
    if (is_host_copy(task.kind)) {
      return rows_.of_host_copies.at(task.kind == TaskKind::to_host ? 0 : 1);
    }
    return rows_.of_collective[static_cast<std::size_t>(task.work)];
  }

  const Plan& plan_;
  const Lowered& lowered_;
  const Trace& trace_;
  Result& result_;
  Rows rows_;
  std::vector<double> wire_bytes_;  // by program
};

}  // namespace

double balance(const std::vector<double>& values, const std::vector<std::int64_t>& devices) {
  double sum = 0;
  double weight = 0;
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i] * static_cast<double>(devices[i]);
    weight += static_cast<double>(devices[i]);
    most = std::max(most, values[i]);
  }
  return most > 0 ? sum / weight / most : 1;
}

void account(const Plan& plan, const Lowered& lowered, const Trace& trace, Result& result) {
  Accountant(plan, lowered, trace, result).account();
}

}  // namespace shardsim
