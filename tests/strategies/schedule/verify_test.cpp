// Whether a schedule can run: by hand, one mistake each.
#include "strategies/schedule/verify.hpp"

#include <catch2/catch.hpp>

#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/schedules.hpp"

using namespace shardsim;

namespace {

std::string verify_error(std::string_view csv) {
  try {
    verify(read_schedule_csv(csv, "a.csv"), {"a.csv", ""});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("What cannot run is said with rank and action") {
  CHECK(verify_error("0F0,0B0\n1F0,1B0\n").empty());
  CHECK(verify_error("0F0,0I0,0W0\n1F0,1I0,1W0\n").empty());
  CHECK(verify_error("0F0,0B0,0OPTIMIZER\n1F0,1B0\n").empty());
  CHECK(verify_error("0B0,0F0\n") ==
        "a.csv: rank 0, action 1: 0B0 before 0F0: a backward follows its forward");
  CHECK(
      verify_error("0F0,0W0,0I0\n") ==
      "a.csv: rank 0, action 2: 0W0 before 0I0: W is the other half of a backward that began with "
      "I");
  CHECK(verify_error("0F0,0F0,0B0\n") == "a.csv: rank 0, action 2: 0F0 a second time");
  CHECK(verify_error("0F0,0I0,0B0\n") ==
        "a.csv: rank 0, action 3: 0B0 after a backward of the same stage and microbatch");
  CHECK(verify_error("0F0,0I0\n") ==
        "a.csv: rank 0 lacks 0W0: every stage runs every microbatch of 1 forward and backward");
  CHECK(verify_error("0F0,0B0\n1F0,1B0,1F1,1B1\n") ==
        "a.csv: rank 0 lacks 0F1: every stage runs every microbatch of 2 forward and backward");
  CHECK(
      verify_error("0F16000000,0B16000000\n") ==
      "a.csv: 2 actions for 1 stages and 16000001 microbatches: every stage runs every microbatch "
      "forward and backward");
  CHECK(verify_error("0F0,0OPTIMIZER,0B0\n") ==
        "a.csv: rank 0, action 2: 0OPTIMIZER before the backward of microbatch 0 is through");
  CHECK(verify_error("(0F0;0B0)OVERLAP_F_B\n") ==
        "a.csv: rank 0, action 1: 0F0 cannot overlap 0B0: a pair is a forward and the backward of "
        "another stage or microbatch");
}

TEST_CASE("A deadlock names who waits for whom") {
  // Rank 0 wants the gradient of microbatch 0 before it makes what rank 1 runs before that.
  CHECK(
      verify_error("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n") ==
      "a.csv: deadlock: 0B0 on rank 0 waits for 1B0 of rank 1, where 1F1 comes first, which waits "
      "for 0F1 of rank 0");
}

TEST_CASE("What a rank holds at most") {
  // 1F1B: min(microbatches, ranks - rank).
  const PipelineSchedule one_each =
      make_schedule({.name = "1f1b", .ranks = 4, .microbatches = 8}, {"a", ""});
  CHECK(activations_held(one_each).forwards == std::vector<std::int32_t>{4, 3, 2, 1});
  // An I frees nothing: both are held until the first W.
  const PipelineSchedule late = read_schedule_csv("0F0,0I0,0F1,0I1,0W0,0W1\n", "a.csv");
  CHECK(activations_held(late).forwards == std::vector<std::int32_t>{2});
  // The pair holds the forward beside what its backward frees.
  const PipelineSchedule pair = read_schedule_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "a.csv");
  CHECK(activations_held(pair).forwards == std::vector<std::int32_t>{2});
  // Two stages of one microbatch.
  const PipelineSchedule both = read_schedule_csv("0F0,1F0,1B0,0B0\n", "a.csv");
  CHECK(activations_held(both).forwards == std::vector<std::int32_t>{2});
  CHECK(activations_held(both).microbatches == std::vector<std::int32_t>{1});
}

TEST_CASE("The bubble of GPipe and of 1F1B is (ranks - 1) x (forward + backward)") {
  // Both idle as long, arXiv:2104.04473, section 2.2; a backward takes two forwards.
  for (const char* name : {"gpipe", "1f1b"}) {
    const PipelineSchedule schedule =
        make_schedule({.name = name, .ranks = 4, .microbatches = 8}, {"a", ""});
    const Timetable timetable = dry_run(schedule, {.forward = 1, .backward = 2});
    CHECK(timetable.steps == 8 * 3 + 3 * 3);
    for (std::size_t rank = 0; rank < 4; ++rank) CHECK(timetable.idle(rank) == 3 * 3);
  }
}

TEST_CASE("With v stages per rank the bubble is 1 / v of it") {
  // arXiv:2104.04473, section 2.3: stages are half as long, so in their time the bubble stays.
  const PipelineSchedule schedule = make_schedule(
      {.name = "interleaved-1f1b", .ranks = 4, .virtual_stages = 2, .microbatches = 8}, {"a", ""});
  CHECK(dry_run(schedule, {.forward = 1, .backward = 2}).steps == 2 * 8 * 3 + 3 * 3);
}
