#include "strategies/schedule/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/schedule_text.hpp"

namespace shardsim {
namespace {

// What a stage has run of a microbatch.
struct Ran {
  bool forward = false;
  bool input = false;     // I
  bool backward = false;  // B, or W
};

class Order {
 public:
  Order(const PipelineSchedule& schedule, const Place& place)
      : schedule_(schedule),
        place_(place),
        microbatches_(static_cast<std::size_t>(schedule.shape.microbatches)),
        ran_(schedule.shape.stages() * microbatches_),
        stepped_(schedule.shape.stages()) {}

  void check() {
    const PipelineShape& shape = schedule_.shape;
    if (schedule_.of_rank.size() != static_cast<std::size_t>(shape.ranks)) {
      throw InputError(place_, fmt::format("lists of {} ranks for a pipeline of {}",
                                           schedule_.of_rank.size(), shape.ranks));
    }
    for (rank_ = 0; rank_ < schedule_.of_rank.size(); ++rank_) {
      const std::vector<Action>& actions = schedule_.of_rank[rank_];
      for (number_ = 0; number_ < actions.size(); ++number_) {
        check_place(actions[number_]);
        check_pair(actions);
        check_turn(actions[number_]);
      }
    }
    check_complete();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    const Action& action = schedule_.of_rank[rank_][number_];
    throw InputError(place_, fmt::format("rank {}, action {}: {} {}", rank_, number_ + 1,
                                         action_text(action), message));
  }

  void check_place(const Action& a) const {
    const PipelineShape& shape = schedule_.shape;
    if (a.stage < 0 || static_cast<std::size_t>(a.stage) >= shape.stages()) {
      fail(fmt::format("is of no stage: there are {}, from 0", shape.stages()));
    }
    const int on = shape.rank_of_stage[static_cast<std::size_t>(a.stage)];
    if (on != static_cast<int>(rank_)) fail(fmt::format("is of a stage that rank {} holds", on));
    if (a.microbatch < 0 || a.microbatch >= shape.microbatches) {
      fail(fmt::format("is of no microbatch: there are {}, from 0", shape.microbatches));
    }
  }

  void check_pair(const std::vector<Action>& actions) const {
    const Action& a = actions[number_];
    if (!a.with_next) return;
    if (number_ + 1 == actions.size()) fail("is overlapped with the next action; there is none");
    const Action& b = actions[number_ + 1];
    const bool of_one = a.stage == b.stage && a.microbatch == b.microbatch;
    if (a.kind != ActionKind::forward || !makes_input_gradient(b.kind) || b.with_next || of_one) {
      fail(
          fmt::format("cannot overlap {}: a pair is a forward and the backward of another stage "
                      "or microbatch",
                      action_text(b)));
    }
  }

  void check_turn(const Action& a) {
    const auto stage = static_cast<std::size_t>(a.stage);
    Ran& ran = ran_[stage * microbatches_ + static_cast<std::size_t>(a.microbatch)];
    if (stepped_[stage]) fail("comes after the stage's optimizer");
    switch (a.kind) {
      case ActionKind::forward:
        if (ran.forward) fail("a second time");
        ran.forward = true;
        return;
      case ActionKind::backward:
      case ActionKind::backward_input:
        if (!ran.forward) {
          fail(fmt::format("before {}F{}: a backward follows its forward", a.stage, a.microbatch));
        }
        if (ran.backward || ran.input) fail("after a backward of the same stage and microbatch");
        ran.input = a.kind == ActionKind::backward_input;
        ran.backward = !ran.input;
        return;
      case ActionKind::backward_weight:
        if (ran.backward) fail("after a backward of the same stage and microbatch");
        if (!ran.input) {
          fail(fmt::format("before {}I{}: W is the other half of a backward that began with I",
                           a.stage, a.microbatch));
        }
        ran.backward = true;
        return;
      case ActionKind::optimizer:
        for (std::size_t m = 0; m < microbatches_; ++m) {
          if (!ran_[stage * microbatches_ + m].backward) {
            fail(fmt::format("before the backward of microbatch {} is through", m));
          }
        }
        stepped_[stage] = true;
    }
  }

  void check_complete() const {
    for (std::size_t stage = 0; stage < schedule_.shape.stages(); ++stage) {
      for (std::size_t m = 0; m < microbatches_; ++m) {
        const Ran& ran = ran_[stage * microbatches_ + m];
        if (ran.backward) continue;
        const std::string missing = !ran.forward ? fmt::format("{}F{}", stage, m)
                                    : ran.input
                                        ? fmt::format("{}W{}", stage, m)
                                        : fmt::format("{0}B{1}, or {0}I{1} and {0}W{1}", stage, m);
        throw InputError(place_,
                         fmt::format("rank {} lacks {}: every stage runs every microbatch "
                                     "of {} forward and backward",
                                     schedule_.shape.rank_of_stage[stage], missing, microbatches_));
      }
    }
  }

  const PipelineSchedule& schedule_;
  const Place& place_;
  std::size_t microbatches_;
  std::vector<Ran> ran_;
  std::vector<bool> stepped_;
  std::size_t rank_ = 0;
  std::size_t number_ = 0;
};

// Before anything is allocated for every stage and microbatch that a short file may name.
void check_size(const PipelineSchedule& schedule, const Place& place) {
  std::size_t actions = 0;
  for (const std::vector<Action>& of_rank : schedule.of_rank) actions += of_rank.size();
  const std::size_t stages = schedule.shape.stages();
  const auto microbatches = static_cast<std::size_t>(schedule.shape.microbatches);
  if (stages > 0 && microbatches <= actions / stages) return;
  throw InputError(place, fmt::format("{} actions for {} stages and {} microbatches: every stage "
                                      "runs every microbatch forward and backward",
                                      actions, stages, microbatches));
}

// Why ranks that are in order each do not come to their end together.
class Deadlock {
 public:
  Deadlock(const PipelineSchedule& schedule, const Stuck& stuck)
      : schedule_(schedule), stuck_(stuck) {
    for (std::size_t rank = 0; rank < schedule.of_rank.size(); ++rank) {
      const std::vector<Action>& actions = schedule.of_rank[rank];
      for (std::size_t i = stuck.next[rank]; i < actions.size(); ++i) {
        const Action& a = actions[i];
        const bool forward = a.kind == ActionKind::forward;
        if (forward || makes_input_gradient(a.kind)) to_come_[{forward, a.stage, a.microbatch}] = a;
      }
    }
  }

  // From any rank that is stuck the way leads into a circle.
  [[nodiscard]] std::string text() const {
    std::size_t rank = 0;
    while (!waits(rank)) ++rank;
    for (std::size_t hop = 0; hop < schedule_.of_rank.size(); ++hop) rank = waits(rank)->rank;
    const Wait first = *waits(rank);
    const Wait second = *waits(first.rank);
    std::string result = fmt::format(
        "deadlock: {} on rank {} waits for {} of rank {}, where {} comes first, which waits for "
        "{} of rank {}",
        action_text(first.action), rank, action_text(first.needs), first.rank,
        action_text(second.action), action_text(second.needs), second.rank);
    if (second.rank != rank) result += ", and so on back to the first";
    return result;
  }

 private:
  struct Wait {
    Action action;
    Action needs;
    std::size_t rank;  // of what is needed
  };

  // What the rank stands at, where that is why it is stuck.
  [[nodiscard]] std::optional<Wait> waits(std::size_t rank) const {
    const std::vector<Action>& actions = schedule_.of_rank[rank];
    std::size_t at = stuck_.next[rank];
    if (at == actions.size()) return {};
    for (const std::size_t end = at + (actions[at].with_next ? 2 : 1); at < end; ++at) {
      const Action& a = actions[at];
      const bool forward = a.kind == ActionKind::forward;
      const auto stage = static_cast<std::int16_t>(a.stage + (forward ? -1 : 1));
      const auto found = to_come_.find({forward, stage, a.microbatch});
      if (found == to_come_.end()) continue;
      const auto on = schedule_.shape.rank_of_stage[static_cast<std::size_t>(stage)];
      return Wait{a, found->second, static_cast<std::size_t>(on)};
    }
    return {};
  }

  using Key = std::tuple<bool, std::int16_t, std::int32_t>;  // forward, stage, microbatch
  const PipelineSchedule& schedule_;
  const Stuck& stuck_;
  std::map<Key, Action> to_come_;
};

// Most of the spans at a time; spans that share a position overlap.
std::int32_t most_at_once(const std::vector<std::pair<std::size_t, std::size_t>>& spans,
                          std::size_t positions) {
  std::vector<std::int32_t> change(positions + 2);
  for (const auto& [first, last] : spans) {
    ++change[first];
    --change[last + 1];
  }
  std::int32_t held = 0;
  std::int32_t most = 0;
  for (const std::int32_t step : change) most = std::max(most, held += step);
  return most;
}

}  // namespace

void verify(const PipelineSchedule& schedule, const Place& place) {
  check_size(schedule, place);
  Order(schedule, place).check();
  const auto calls = computations(schedule);
  const DryRun run = dry_run(schedule.shape, calls, Durations{});
  if (run.stuck) throw InputError(place, Deadlock(schedule, *run.stuck).text());
}

ActivationsHeld activations_held(const PipelineSchedule& schedule) {
  ActivationsHeld held;
  const auto microbatches = static_cast<std::size_t>(schedule.shape.microbatches);
  using Span = std::pair<std::size_t, std::size_t>;
  for (const std::vector<Action>& actions : schedule.of_rank) {
    std::map<std::pair<std::int16_t, std::int32_t>, std::size_t> begun;
    std::vector<Span> forwards;
    std::vector<std::optional<Span>> whole(microbatches);
    std::size_t position = 0;
    for (const Action& a : actions) {
      const auto microbatch = static_cast<std::size_t>(a.microbatch);
      if (a.kind == ActionKind::forward) {
        begun[{a.stage, a.microbatch}] = position;
        if (!whole[microbatch]) whole[microbatch] = Span{position, position};
      } else if (releases_activations(a.kind)) {
        forwards.emplace_back(begun.at({a.stage, a.microbatch}), position);
        whole[microbatch]->second = position;
      }
      if (!a.with_next) ++position;
    }
    std::vector<Span> of_microbatches;
    for (const auto& span : whole) {
      if (span) of_microbatches.push_back(*span);
    }
    held.forwards.push_back(most_at_once(forwards, position));
    held.microbatches.push_back(most_at_once(of_microbatches, position));
  }
  return held;
}

}  // namespace shardsim
