#include "strategies/schedule/dry_run.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shardsim {
namespace {

class Clock {
 public:
  Clock(const PipelineShape& shape, const std::vector<std::vector<Call>>& calls,
        const Durations& durations)
      : calls_(calls),
        durations_(durations),
        microbatches_(static_cast<std::size_t>(shape.microbatches)),
        last_(static_cast<int>(shape.stages()) - 1),
        forward_(shape.stages() * microbatches_),
        gradient_(forward_.size()),
        input_(forward_.size()),
        sent_forward_(forward_.size()),
        sent_gradient_(forward_.size()) {}

  DryRun run() {
    DryRun result;
    Timetable& timetable = result.timetable;
    timetable.start.resize(calls_.size());
    timetable.busy.resize(calls_.size());
    std::vector<std::int64_t> now(calls_.size());
    std::vector<std::size_t> next(calls_.size());
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
        while (next[rank] < calls_[rank].size() &&
               advance(rank, next[rank], now[rank], timetable)) {
          progress = true;
        }
      }
    }
    timetable.steps = now.empty() ? 0 : *std::max_element(now.begin(), now.end());
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      if (next[rank] < calls_[rank].size()) result.stuck = Stuck{next};
    }
    return result;
  }

 private:
  using Ends = std::vector<std::optional<std::int64_t>>;

  [[nodiscard]] std::size_t at(int stage, std::int32_t microbatch) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(microbatch);
  }

  [[nodiscard]] std::int64_t duration(const Call& call) const {
    if (call.kind != Call::Kind::compute) return durations_.message;
    switch (call.action.kind) {
      case ActionKind::forward:
        return durations_.forward;
      case ActionKind::backward:
        return durations_.backward;
      case ActionKind::backward_input:
        return durations_.backward_input;
      case ActionKind::backward_weight:
        return durations_.backward_weight;
      case ActionKind::optimizer:
        return durations_.optimizer;
    }
    return 0;
  }

  // From when on what the call needs is there; nothing as long as that is not known.
  [[nodiscard]] std::optional<std::int64_t> ready(const Call& call) const {
    const Action& a = call.action;
    const bool forward = a.kind == ActionKind::forward;
    if (call.kind == Call::Kind::receive) {
      return forward ? sent_forward_[at(a.stage - 1, a.microbatch)]
                     : sent_gradient_[at(a.stage + 1, a.microbatch)];
    }
    if (call.kind == Call::Kind::send) {
      return (forward ? forward_ : gradient_)[at(a.stage, a.microbatch)];
    }
    if (forward) return a.stage == 0 ? 0 : forward_[at(a.stage - 1, a.microbatch)];
    if (a.kind == ActionKind::backward_weight) return input_[at(a.stage, a.microbatch)];
    if (a.kind == ActionKind::optimizer) return 0;
    const auto own = forward_[at(a.stage, a.microbatch)];
    if (!own || a.stage == last_) return own;
    const auto after = gradient_[at(a.stage + 1, a.microbatch)];
    if (!after) return {};
    return std::max(*own, *after);
  }

  void finish(const Call& call, std::int64_t start, std::int64_t end) {
    const Action& a = call.action;
    const std::size_t place = at(a.stage, a.microbatch);
    const bool forward = a.kind == ActionKind::forward;
    if (call.kind == Call::Kind::send) {
      (forward ? sent_forward_ : sent_gradient_)[place] = start;
    } else if (call.kind == Call::Kind::compute) {
      if (forward) forward_[place] = end;
      if (makes_input_gradient(a.kind)) gradient_[place] = end;
      if (a.kind == ActionKind::backward_input) input_[place] = end;
    }
  }

  // One call, or an overlapped pair.
  bool advance(std::size_t rank, std::size_t& next, std::int64_t& now, Timetable& timetable) {
    const std::vector<Call>& calls = calls_[rank];
    const bool pair = calls[next].kind == Call::Kind::compute && calls[next].action.with_next;
    const std::size_t end = next + (pair ? 2 : 1);
    std::int64_t start = now;
    for (std::size_t i = next; i < end; ++i) {
      const auto from = ready(calls[i]);
      if (!from) return false;
      start = std::max(start, *from);
    }
    now = start;
    for (std::size_t i = next; i < end; ++i) {
      timetable.start[rank].push_back(now);
      timetable.busy[rank] += duration(calls[i]);
      now += duration(calls[i]);
    }
    for (std::size_t i = next; i < end; ++i) finish(calls[i], start, now);
    next = end;
    return true;
  }

  const std::vector<std::vector<Call>>& calls_;
  const Durations& durations_;
  std::size_t microbatches_;
  int last_;
  Ends forward_, gradient_, input_;    // when done
  Ends sent_forward_, sent_gradient_;  // when begun
};

}  // namespace

DryRun dry_run(const PipelineShape& shape, const std::vector<std::vector<Call>>& calls,
               const Durations& durations) {
  return Clock(shape, calls, durations).run();
}

Timetable dry_run(const PipelineSchedule& schedule, const Durations& durations) {
  const std::vector<std::vector<Call>> calls = computations(schedule);
  DryRun run = dry_run(schedule.shape, calls, durations);
  assert(!run.stuck);
  return std::move(run.timetable);
}

}  // namespace shardsim
