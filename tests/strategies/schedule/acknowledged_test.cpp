#include "strategies/schedule/acknowledged.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/schedule/schedules.hpp"

using namespace shardsim;

namespace {

// "0SEND_F0 before 0B0" of every send of a rank that something tells of.
std::vector<std::string> told(const ScheduleRequest& request, std::size_t rank) {
  const PipelineSchedule schedule = make_schedule(request, {"test", ""});
  const CallLists calls =
      with_messages(computations(schedule), schedule.shape, Receives::when_needed);
  std::vector<std::string> result;
  const auto all = acknowledged_sends(calls, schedule.shape);
  for (const Acknowledged& one : all[rank]) {
    result.push_back(call_text(calls[rank][one.send]) + " before " +
                     call_text(calls[rank][one.at]));
  }
  return result;
}

}  // namespace

TEST_CASE("What has been sent is there when its answer is") {
  const ScheduleRequest request{.name = "1f1b", .ranks = 3, .microbatches = 3};
  // rank 0: 0F0 0F1 0F2 0B0 0B1 0B2, rank 1: 1F0 1F1 1B0 1F2 1B1 1B2, rank 2: 2F0 2B0 2F1 ...
  // 1B0 follows 1F1, so that its gradient tells of 0F0 and 0F1.
  CHECK(told(request, 0) == std::vector<std::string>{"0SEND_F0 before 0B0", "0SEND_F1 before 0B0",
                                                     "0SEND_F2 before 0B1"});
  // Of gradients for rank 0 only a forward that 0 computes behind the backward tells: none does.
  CHECK(told(request, 1) == std::vector<std::string>{"1SEND_F0 before 1B0", "1SEND_F1 before 1B1",
                                                     "1SEND_F2 before 1B2"});
  // 1F2 follows 1B0.
  CHECK(told(request, 2) == std::vector<std::string>{"2SEND_B0 before 2F2"});
}

TEST_CASE("Nothing is told of before it is sent") {
  for (const ScheduleKind& kind : schedule_kinds()) {
    const ScheduleRequest request{.name = std::string(kind.name),
                                  .ranks = 4,
                                  .virtual_stages = kind.usual_stages(),
                                  .microbatches = 16};
    const PipelineSchedule schedule = make_schedule(request, {"test", ""});
    const CallLists calls = with_messages(computations(schedule), schedule.shape, kind.receives);
    for (const auto& of_rank : acknowledged_sends(calls, schedule.shape)) {
      for (const Acknowledged& one : of_rank) CHECK(one.send < one.at);
    }
  }
}
