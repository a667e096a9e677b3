#include "reports/traces/step_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

#include "base/index.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/format/figures.hpp"

namespace shardsim {
namespace {

constexpr double percent_of_one = 100;
constexpr double microseconds_per_second = 1e6;

bool is_communication(SegmentKind kind) {
  return kind != SegmentKind::forward && kind != SegmentKind::recompute &&
         kind != SegmentKind::backward && kind != SegmentKind::optimizer;
}

double as_microseconds(Seconds time) { return time.count() * microseconds_per_second; }

std::vector<TraceArgument> arguments_of(const Kernel& kernel) {
  std::vector<TraceArgument> list{{"op", kernel.op},
                                  {"class", std::string(name_of(kernel.kernel_class))},
                                  {"dtype", std::string(name_of(kernel.dtype))},
                                  {"flops", kernel.flops.count()},
                                  {"bytes", kernel.bytes.count()}};
  if (kernel.product) {
    list.push_back({"batch", kernel.product->batch});
    list.push_back({"m", kernel.product->m});
    list.push_back({"n", kernel.product->n});
    list.push_back({"k", kernel.product->k});
  }
  return list;
}

std::vector<TraceArgument> arguments_of(const Plan& plan, const Collective& collective,
                                        const CostBreakdown& cost) {
  const std::int64_t size = group_size(plan, collective);
  const Bytes wire = wire_bytes_per_device(collective.kind, size, collective.payload);
  std::vector<TraceArgument> list{
      {"axes", fmt::format("{}", fmt::join(plan.mesh.names_of(collective.axes), ","))},
      {"group_size", size},
      {"dtype", std::string(name_of(collective.dtype))},
      {"payload_bytes", collective.payload.count()},
      {"wire_bytes_per_device", wire.count()}};
  list.push_back({"algorithm", cost.algorithm});
  if (!cost.protocol.empty()) list.push_back({"protocol", cost.protocol});
  list.push_back({"alone_us", as_microseconds(cost.total())});
  list.push_back({"reason", collective.reason});
  return list;
}

std::vector<TraceArgument> arguments_of(const Plan& plan, const Transfer& transfer) {
  return {{transfer.sends ? "to" : "from", plan.programs[at(transfer.peer_program)].name},
          {"dtype", std::string(name_of(transfer.dtype))},
          {"payload_bytes", transfer.payload.count()},
          {"reason", transfer.reason}};
}

std::string title_of(const Prediction& prediction) {
  const Figures figures = figures_of(prediction);
  return fmt::format("{}: {} {} step, {} on {}, {} ({}): {} simulated by shardsim {}", figures.name,
                     figures.model, figures.step_kind, figures.strategy, figures.mesh,
                     figures.machine, figures.extent, format_seconds(to_seconds(figures.step)),
                     program_version);
}

// What every collective of the plan takes alone: as the simulation has priced it, once more.
std::vector<CostBreakdown> prices_of(const Prediction& prediction) {
  const Plan& plan = prediction.step.plan;
  const SimulationOptions options = simulation_options(prediction.experiment, {});
  const Placement placement(plan.mesh, prediction.machine, options.collectives, options.order);
  CollectiveCosts costs(placement, options.costs);
  std::vector<CostBreakdown> prices;
  for (const Collective& collective : plan.collectives) prices.push_back(costs.cost(collective));
  return prices;
}

TraceCounters memory_of(const ProgramResult& result) {
  TraceCounters counters{.name = "memory", .bytes = true, .stacks = true};
  for (const BufferCategory category : categories_in_reports) {
    const auto bytes_at = [&](const MemorySample& sample) {
      return sample.by_category[static_cast<std::size_t>(category)];
    };
    const bool is_used =
        std::any_of(result.memory_curve.begin(), result.memory_curve.end(),
                    [&](const MemorySample& sample) { return bytes_at(sample) > Bytes(0); });
    if (!is_used) continue;
    counters.series.push_back(category_label(category));
    std::vector<double>& values = counters.values.emplace_back();
    for (const MemorySample& sample : result.memory_curve) {
      values.push_back(static_cast<double>(bytes_at(sample).count()));
    }
  }
  for (const MemorySample& sample : result.memory_curve) counters.times.push_back(sample.time);
  return counters;
}

TraceCounters links_of(const ProgramResult& result, SimTime step) {
  TraceCounters counters{.name = "links", .bytes = false, .stacks = false};
  if (result.links.empty()) return counters;
  const auto bins = static_cast<std::int64_t>(result.links[0].taken.size());
  for (std::int64_t bin = 0; bin <= bins; ++bin) {
    // step * bin / bins, which could overflow on the way.
    counters.times.push_back(SimTime(step.count() / bins * bin + step.count() % bins * bin / bins));
  }
  for (const LinkUsage& usage : result.links) {
    counters.series.push_back(label_of(usage));
    std::vector<double>& values = counters.values.emplace_back();
    for (const double taken : usage.taken) values.push_back(taken * percent_of_one);
    values.push_back(0);
  }
  return counters;
}

class Tracer {
 public:
  explicit Tracer(const Prediction& prediction)
      : plan_(prediction.step.plan), result_(prediction.result) {
    trace_.title = title_of(prediction);
    trace_.step = result_.step_time;
    add_works(prices_of(prediction));
    for (const Program& program : plan_.programs) {
      has_microbatches_ |= std::any_of(program.tasks.begin(), program.tasks.end(),
                                       [](const Task& task) { return task.microbatch > 0; });
    }
  }

  StepTrace run() {
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) add_class(p);
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) add_dependencies(p);
    add_messages();
    return std::move(trace_);
  }

 private:
  static constexpr std::int32_t none = -1;

  void add_works(const std::vector<CostBreakdown>& prices) {
    for (const Kernel& kernel : plan_.kernels) trace_.works.push_back(arguments_of(kernel));
    first_collective_ = trace_.works.size();
    for (std::size_t i = 0; i < plan_.collectives.size(); ++i) {
      trace_.works.push_back(arguments_of(plan_, plan_.collectives[i], prices[i]));
    }
    first_transfer_ = trace_.works.size();
    for (const Transfer& transfer : plan_.transfers) {
      trace_.works.push_back(arguments_of(plan_, transfer));
    }
  }

  std::int32_t work_of(const Task& task) const {
    std::size_t first = 0;  // of kernels, which host copies are, too
    if (task.kind == TaskKind::collective) first = first_collective_;
    if (task.kind == TaskKind::transfer) first = first_transfer_;
    return static_cast<std::int32_t>(first) + task.work;
  }

  // By what makes the label: few of a plan's tasks have one of their own.
  std::int32_t label(const Task& task) {
    std::string_view prefix;
    if (task.kind == TaskKind::collective) {
      prefix = name_of(plan_.collectives[at(task.work)].kind);
    } else if (task.kind == TaskKind::transfer) {
      prefix = plan_.transfers[at(task.work)].sends ? "send" : "receive";
    } else if (task.kind != TaskKind::kernel) {
      prefix = name_of(task.kind);
    }
    const auto next = static_cast<std::int32_t>(trace_.names.size());
    const auto [found, is_new] = labels_.try_emplace({prefix, task.name, task.layer}, next);
    if (!is_new) return found->second;
    // Tasks outside of layers can be called as one inside.
    const std::string text = label_of(plan_, task);
    const auto [known, is_new_text] = label_texts_.try_emplace(text, next);
    if (is_new_text) trace_.names.push_back(text);
    found->second = known->second;
    return found->second;
  }

  void add_class(std::size_t p) {
    const Program& program = plan_.programs[p];
    const ProgramResult& result = result_.programs[p];
    TraceClass one{.name = fmt::format("{} ({})", program.name, counted(result.devices, "device")),
                   .streams = program.streams};
    const std::vector<SimTime> exposed = exposed_times(program, result.tasks);
    std::vector<TaskId> order;
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      if (result.tasks[i].end > result.tasks[i].start) order.push_back(static_cast<TaskId>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
      return result.tasks[at(a)].start < result.tasks[at(b)].start;
    });
    std::vector<std::int32_t>& slices = slices_.emplace_back(program.tasks.size(), none);
    for (const TaskId id : order) {
      const Task& task = program.tasks[at(id)];
      slices[at(id)] = static_cast<std::int32_t>(one.slices.size());
      one.slices.push_back({.start = result.tasks[at(id)].start,
                            .end = result.tasks[at(id)].end,
                            .exposed = exposed[at(id)],
                            .kind = kind_of(plan_, task),
                            .stream = task.stream,
                            .name = label(task),
                            .work = work_of(task),
                            .layer = task.layer,
                            .microbatch = has_microbatches_ ? task.microbatch : none});
    }
    one.counters.push_back(memory_of(result));
    one.counters.push_back(links_of(result, result_.step_time));
    std::erase_if(one.counters,
                  [](const TraceCounters& counters) { return counters.series.empty(); });
    trace_.classes.push_back(std::move(one));
  }

  void add_flow(std::size_t from, TaskId producer, std::size_t to, TaskId consumer) {
    const std::int32_t from_slice = slices_[from][at(producer)];
    const std::int32_t to_slice = slices_[to][at(consumer)];
    if (from_slice == none || to_slice == none) return;  // one of them takes no time
    trace_.flows.push_back({.from_class = static_cast<std::int32_t>(from),
                            .from_slice = from_slice,
                            .to_class = static_cast<std::int32_t>(to),
                            .to_slice = to_slice});
  }

  void add_dependencies(std::size_t p) {
    const Program& program = plan_.programs[p];
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      for (const TaskId producer : program.after(program.tasks[i])) {
        if (program.tasks[at(producer)].stream == program.tasks[i].stream) continue;
        add_flow(p, producer, p, static_cast<TaskId>(i));
      }
    }
  }

  // The k-th message of a program to another meets the k-th that this one receives.
  void add_messages() {
    struct Ends {
      std::vector<TaskId> sent;
      std::vector<TaskId> received;
    };
    std::map<std::pair<std::size_t, std::size_t>, Ends> channels;
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      const std::vector<Task>& tasks = plan_.programs[p].tasks;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].kind != TaskKind::transfer) continue;
        const Transfer& transfer = plan_.transfers[at(tasks[i].work)];
        const std::size_t peer = at(transfer.peer_program);
        const auto id = static_cast<TaskId>(i);
        if (transfer.sends) channels[{p, peer}].sent.push_back(id);
        if (!transfer.sends) channels[{peer, p}].received.push_back(id);
      }
    }
    for (const auto& [programs, ends] : channels) {
      assert(ends.sent.size() == ends.received.size());  // the simulation has matched them
      for (std::size_t i = 0; i < ends.sent.size(); ++i) {
        add_flow(programs.first, ends.sent[i], programs.second, ends.received[i]);
      }
    }
  }

  const Plan& plan_;
  const Result& result_;
  StepTrace trace_;
  bool has_microbatches_ = false;
  std::size_t first_collective_ = 0;  // in trace_.works
  std::size_t first_transfer_ = 0;
  std::map<std::tuple<std::string_view, std::int32_t, std::int32_t>, std::int32_t> labels_;
  std::map<std::string, std::int32_t> label_texts_;
  std::vector<std::vector<std::int32_t>> slices_;  // by program and task
};

}  // namespace

StepTrace trace_of(const Prediction& prediction) { return Tracer(prediction).run(); }

std::vector<SimTime> exposed_times(const Program& program, const std::vector<TaskTimes>& times) {
  struct Edge {
    SimTime time{0};
    bool starts = false;
    std::size_t task = 0;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].start == times[i].end) continue;
    edges.push_back({times[i].start, true, i});
    edges.push_back({times[i].end, false, i});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.time, a.starts, a.task) < std::tie(b.time, b.starts, b.task);
  });
  std::vector<SimTime> exposed(times.size());
  std::vector<std::size_t> flying;  // the first started first
  std::int64_t kernels = 0;         // running
  SimTime last{0};
  for (const Edge& edge : edges) {
    if (kernels == 0 && !flying.empty()) {
      const auto sharers = static_cast<std::int64_t>(flying.size());
      std::int64_t remainder = (edge.time - last).count() % sharers;
      for (const std::size_t task : flying) {
        exposed[task] += (edge.time - last) / sharers + SimTime(remainder-- > 0 ? 1 : 0);
      }
    }
    last = edge.time;
    if (program.tasks[edge.task].kind == TaskKind::kernel) {
      kernels += edge.starts ? 1 : -1;
    } else if (edge.starts) {
      flying.push_back(edge.task);
    } else {
      flying.erase(std::find(flying.begin(), flying.end(), edge.task));
    }
  }
  return exposed;
}

std::vector<TraceArgument> own_arguments(const TraceSlice& slice) {
  std::vector<TraceArgument> list;
  if (is_communication(slice.kind)) {
    list.push_back({"exposed_us", as_microseconds(to_seconds(slice.exposed))});
  }
  if (slice.layer >= 0) list.push_back({"layer", std::int64_t{slice.layer}});
  if (slice.microbatch >= 0) list.push_back({"microbatch", std::int64_t{slice.microbatch}});
  return list;
}

std::string label_of(const Plan& plan, const Task& task) {
  std::string name = plan.task_name(task);
  switch (task.kind) {
    case TaskKind::kernel:
      return name;
    case TaskKind::collective:
      return fmt::format("{} {}", name_of(plan.collectives[at(task.work)].kind), name);
    case TaskKind::transfer:
      return fmt::format("{} {}", plan.transfers[at(task.work)].sends ? "send" : "receive", name);
    case TaskKind::to_host:
    case TaskKind::from_host:
      return fmt::format("{} {}", name_of(task.kind), name);
  }
  return name;
}

}  // namespace shardsim
