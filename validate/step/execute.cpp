#include "validate/step/execute.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cassert>
#include <chrono>
#include <cmath>

#include "base/index.hpp"
#include "experiments/collective_experiment.hpp"
#include "validate/exchange/membership.hpp"

namespace shardsim {
namespace {

Seconds median_of(std::vector<double> values) { return Seconds(quantile(std::move(values), 0.5)); }

// What runs the tasks of every program.
std::vector<std::vector<std::int64_t>> devices_of_programs(const Plan& plan) {
  std::vector<std::vector<std::int64_t>> devices(plan.programs.size());
  for (std::int64_t position = 0; position < plan.mesh.devices(); ++position) {
    devices[program_at(plan, position)].push_back(position);
  }
  return devices;
}

class StepTimes {
 public:
  StepTimes(const Plan& plan, const std::vector<std::vector<TaskSpan>>& spans, bool on_one_clock)
      : plan_(plan),
        spans_(spans),
        on_one_clock_(on_one_clock),
        devices_(devices_of_programs(plan)) {}

  [[nodiscard]] Seconds of(std::size_t program, std::size_t task) const {
    const Task& what = plan_.programs[program].tasks[task];
    if (what.kind != TaskKind::collective) {
      std::vector<double> values;
      for (const std::int64_t device : devices_[program]) values.push_back(spent(device, task));
      return median_of(std::move(values));
    }
    Seconds slowest{0};
    for (const auto& group : groups_of(plan_, plan_.collectives[at(what.work)])) {
      if (std::find(devices_[program].begin(), devices_[program].end(), group.front()) ==
          devices_[program].end()) {
        continue;  // of another program
      }
      slowest = std::max(slowest, spent_together(group, task));
    }
    return slowest;
  }

 private:
  [[nodiscard]] double spent(std::int64_t device, std::size_t task) const {
    const TaskSpan& span = spans_[at(device)][task];
    return (span.end - span.start).count();
  }

  // From when all are there.
  [[nodiscard]] Seconds spent_together(const std::vector<std::int64_t>& group,
                                       std::size_t task) const {
    if (!on_one_clock_) return spent_by_last(group, task);
    TaskSpan together = spans_[at(group.front())][task];
    for (const std::int64_t device : group) {
      together.start = std::max(together.start, spans_[at(device)][task].start);
      together.end = std::max(together.end, spans_[at(device)][task].end);
    }
    return together.end - together.start;
  }

  [[nodiscard]] Seconds spent_by_last(const std::vector<std::int64_t>& group,
                                      std::size_t task) const {
    Seconds least = Seconds(spent(group.front(), task));
    for (const std::int64_t device : group) least = std::min(least, Seconds(spent(device, task)));
    return least;
  }

  const Plan& plan_;
  const std::vector<std::vector<TaskSpan>>& spans_;
  bool on_one_clock_;
  std::vector<std::vector<std::int64_t>> devices_;
};

// Spans of all ranks, from those of this one.
std::vector<std::vector<TaskSpan>> exchange_spans(Backend& backend,
                                                  const std::vector<TaskSpan>& mine) {
  std::vector<double> numbers;
  for (const TaskSpan& span : mine) {
    numbers.push_back(span.start.count());
    numbers.push_back(span.end.count());
  }
  std::vector<std::vector<TaskSpan>> all;
  for (const auto& given : exchange_numbers(backend.exchange(), numbers)) {
    std::vector<TaskSpan>& spans = all.emplace_back();
    for (std::size_t i = 0; i + 1 < given.size(); i += 2) {
      spans.push_back({Seconds(given[i]), Seconds(given[i + 1])});
    }
  }
  return all;
}

// From when the first begins to when the last ends.
TaskSpan whole(const std::vector<TaskSpan>& spans) {
  TaskSpan all = spans.empty() ? TaskSpan{} : spans.front();
  for (const TaskSpan& span : spans) {
    all.start = std::min(all.start, span.start);
    all.end = std::max(all.end, span.end);
  }
  return all;
}

double step_time(const std::vector<std::vector<TaskSpan>>& spans, bool on_one_clock) {
  std::vector<TaskSpan> of_ranks;
  Seconds longest{0};
  for (const auto& of_rank : spans) {
    if (of_rank.empty()) continue;
    of_ranks.push_back(whole(of_rank));
    longest = std::max(longest, of_ranks.back().end - of_ranks.back().start);
  }
  const TaskSpan all = whole(of_ranks);
  return (on_one_clock ? all.end - all.start : longest).count();
}

// How many values lie below the 95 % interval of the median, and as many above: the most that each
// have a binomial probability of 2.5 % at most.
std::size_t rank_of_interval(std::size_t count) {
  constexpr double tail = 0.025;
  constexpr double half = 0.5;
  // Quantiles of whole numbers are rounded outwards.
  const boost::math::binomial below(static_cast<double>(count), half);
  return static_cast<std::size_t>(boost::math::quantile(below, tail));
}

Spread spread_of(const std::vector<double>& values) {
  constexpr double low = 0.1;
  constexpr double high = 0.9;
  return {Seconds(quantile(values, low)), median_of(values), Seconds(quantile(values, high))};
}

// All repeats: of the step, and of every task of every program.
struct Samples {
  std::vector<double> steps;
  std::vector<std::vector<std::vector<double>>> tasks;

  void add(const Plan& plan, const std::vector<std::vector<TaskSpan>>& spans, bool on_one_clock) {
    steps.push_back(step_time(spans, on_one_clock));
    const auto times = task_times(plan, spans, on_one_clock);
    tasks.resize(times.size());
    for (std::size_t p = 0; p < times.size(); ++p) {
      tasks[p].resize(times[p].size());
      for (std::size_t i = 0; i < times[p].size(); ++i) tasks[p][i].push_back(times[p][i].count());
    }
  }
};

// The same on all ranks: by the clock of the first.
bool time_is_up(Backend& backend, std::chrono::steady_clock::time_point begin, Seconds longest) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return exchange_numbers(backend.exchange(), {elapsed.count()}).front().front() >= longest.count();
}

}  // namespace

std::vector<std::vector<Seconds>> task_times(const Plan& plan,
                                             const std::vector<std::vector<TaskSpan>>& spans,
                                             bool on_one_clock) {
  const StepTimes times(plan, spans, on_one_clock);
  std::vector<std::vector<Seconds>> all(plan.programs.size());
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (std::size_t i = 0; i < plan.programs[p].tasks.size(); ++i) {
      all[p].push_back(times.of(p, i));
    }
  }
  return all;
}

double precision_of_median(std::vector<double> values) {
  assert(values.size() >= least_repeats);
  std::sort(values.begin(), values.end());
  const std::size_t low = rank_of_interval(values.size());
  const double median = median_of(values).count();
  return median > 0 ? (values[values.size() - 1 - low] - values[low]) / 2 / median : 0;
}

MeasuredStep execute(const Plan& plan, Backend& backend, const Repeats& repeats,
                     const std::function<void(int)>& begun) {
  assert(repeats.least >= least_repeats);
  backend.prepare(plan);
  MeasuredStep measured;
  Samples samples;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats.warm_ups + repeats.most; ++i) {
    if (begun) begun(i);
    const auto spans = exchange_spans(backend, backend.run_step());
    if (i < repeats.warm_ups) continue;
    samples.add(plan, spans, backend.shares_clock());
    const bool up = time_is_up(backend, begin, repeats.longest);
    if (samples.steps.size() < least_repeats) continue;
    measured.precision = precision_of_median(samples.steps);
    const bool enough = static_cast<int>(samples.steps.size()) >= repeats.least;
    measured.settled = enough && measured.precision <= repeats.precision;
    if (measured.settled || up) break;
  }
  measured.repeats = static_cast<int>(samples.steps.size());
  measured.step = spread_of(samples.steps);
  for (const auto& program : samples.tasks) {
    auto& tasks = measured.tasks.emplace_back();
    for (const auto& values : program) tasks.push_back(spread_of(values));
  }
  return measured;
}

}  // namespace shardsim
