// Laws of schedules, for random numbers of ranks, stages and microbatches, and for random lists.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/messages.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/schedules.hpp"
#include "strategies/schedule/verify.hpp"

using namespace shardsim;

namespace {

const Place random_place{"random", ""};

// Any kind, with numbers that it may refuse: then nothing.
std::optional<PipelineSchedule> random_schedule() {
  const std::vector<ScheduleKind>& kinds = schedule_kinds();
  const ScheduleKind& kind = kinds[*rc::gen::inRange<std::size_t>(0, kinds.size())];
  ScheduleRequest request;
  request.name = kind.name;
  request.ranks = *rc::gen::inRange(1, 9);
  request.microbatches = *rc::gen::inRange(1, 25);
  request.virtual_stages = *rc::gen::inRange(kind.fewest_stages, std::min(kind.most_stages, 4) + 1);
  request.limits = *rc::gen::arbitrary<bool>() ? ScheduleLimits::pytorch : ScheduleLimits::megatron;
  if (*rc::gen::arbitrary<bool>()) request.microbatch_group = *rc::gen::inRange(1, 12);
  try {
    return make_schedule(request, random_place);
  } catch (const InputError&) {
    return {};
  }
}

// Random order on every rank, random halves: runs or not, but never neither.
PipelineSchedule random_list() {
  const auto ranks = *rc::gen::inRange(1, 4);
  const auto microbatches = *rc::gen::inRange(1, 4);
  PipelineSchedule schedule{
      pipeline_shape(ranks, *rc::gen::inRange(1, 3), microbatches, StagePlacement::loop), {}};
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Action>& actions = schedule.of_rank.emplace_back();
    for (const std::int16_t stage : schedule.shape.stages_of(rank)) {
      for (std::int32_t m = 0; m < microbatches; ++m) {
        const auto at =
            static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, actions.size() + 1));
        actions.insert(actions.begin() + at, {ActionKind::forward, false, stage, m});
        const auto after = static_cast<std::ptrdiff_t>(
            *rc::gen::inRange<std::size_t>(static_cast<std::size_t>(at) + 1, actions.size() + 1));
        actions.insert(actions.begin() + after, {ActionKind::backward, false, stage, m});
      }
    }
  }
  return schedule;
}

bool runs(const PipelineSchedule& schedule) {
  try {
    verify(schedule, random_place);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("Whatever is made can run, is read back, and holds what it must") {
  CHECK(rc::check([] {
    const auto schedule = random_schedule();
    RC_PRE(schedule.has_value());
    verify(*schedule, random_place);
    RC_ASSERT(read_schedule_csv(schedule_csv(*schedule), "csv") == *schedule);
    RC_ASSERT(read_schedule_csv(schedule_csv_by_step(*schedule), "csv") == *schedule);
    const ActivationsHeld held = activations_held(*schedule);
    for (std::size_t rank = 0; rank < held.forwards.size(); ++rank) {
      RC_ASSERT(held.microbatches[rank] <= schedule->shape.microbatches);
      RC_ASSERT(held.microbatches[rank] <= held.forwards[rank]);
    }
  }));
}

TEST_CASE("A list with messages runs, and every send has its receive") {
  CHECK(rc::check([] {
    const auto schedule = random_schedule();
    RC_PRE(schedule.has_value());
    const auto posted = *rc::gen::element(Receives::with_sends, Receives::when_needed);
    const auto calls = with_messages(computations(*schedule), schedule->shape, posted);
    const DryRun run = dry_run(schedule->shape, calls, Durations{});
    RC_ASSERT(!run.stuck.has_value());
    std::size_t sends = 0;
    std::size_t receives = 0;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      std::vector<Action> computed;
      for (const Call& call : calls[rank]) {
        sends += call.kind == Call::Kind::send ? 1 : 0;
        receives += call.kind == Call::Kind::receive ? 1 : 0;
        if (call.kind == Call::Kind::compute) computed.push_back(call.action);
      }
      RC_ASSERT(computed == schedule->of_rank[rank]);
    }
    RC_ASSERT(sends == receives);
    // Free messages only make it shorter.
    RC_ASSERT(dry_run(*schedule, Durations{}).steps <= run.timetable.steps);
  }));
}

TEST_CASE("A list is in order on each rank, and runs or is a deadlock") {
  // The judge: run whatever can run, one action at a time, until nothing can.
  CHECK(rc::check([] {
    const PipelineSchedule schedule = random_list();
    std::vector<std::size_t> next(schedule.of_rank.size());
    std::vector<Action> done;
    const auto has = [&](ActionKind kind, int stage, std::int32_t m) {
      return std::find(done.begin(), done.end(),
                       Action{kind, false, static_cast<std::int16_t>(stage), m}) != done.end();
    };
    const int last = static_cast<int>(schedule.shape.stages()) - 1;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        if (next[rank] == schedule.of_rank[rank].size()) continue;
        const Action& a = schedule.of_rank[rank][next[rank]];
        const bool ready = a.kind == ActionKind::forward
                               ? a.stage == 0 || has(a.kind, a.stage - 1, a.microbatch)
                               : a.stage == last || has(a.kind, a.stage + 1, a.microbatch);
        if (!ready) continue;
        done.push_back(a);
        ++next[rank];
        progress = true;
      }
    }
    std::size_t all = 0;
    for (const std::vector<Action>& actions : schedule.of_rank) all += actions.size();
    RC_ASSERT(runs(schedule) == (done.size() == all));
  }));
}

TEST_CASE("An action that is lost, doubled or early is found") {
  CHECK(rc::check([] {
    auto schedule = random_schedule();
    RC_PRE(schedule.has_value());
    std::vector<Action>& actions =
        schedule->of_rank[*rc::gen::inRange<std::size_t>(0, schedule->of_rank.size())];
    const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, actions.size()));
    const Action action = actions[static_cast<std::size_t>(at)];
    if (*rc::gen::arbitrary<bool>()) {
      actions.erase(actions.begin() + at);
    } else {
      actions.push_back(action);
      actions.back().with_next = false;
    }
    RC_ASSERT(!runs(*schedule));
  }));
}
