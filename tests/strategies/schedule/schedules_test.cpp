// The table of schedules: small ones written by hand, properties that papers state, refusals.
#include "strategies/schedule/schedules.hpp"

#include <catch2/catch.hpp>

#include "strategies/schedule/accumulation.hpp"
#include "strategies/schedule/dry_run.hpp"
#include "strategies/schedule/messages.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/verify.hpp"

using namespace shardsim;

namespace {

std::string made(const ScheduleRequest& request) {
  return schedule_csv(make_schedule(request, {"a", ""}));
}

std::string refusal(const ScheduleRequest& request) {
  try {
    (void)make_schedule(request, {"a.json", "/strategy/pipeline"});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("The smallest of each, by hand") {
  CHECK(made({.name = "gpipe", .ranks = 2, .microbatches = 2}) ==
        "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  CHECK(made({.name = "looped-bfs", .ranks = 1, .virtual_stages = 2, .microbatches = 2}) ==
        "0F0,0F1,1F0,1F1,1B1,1B0,0B1,0B0\n");
  // Rank 0 has one forward ahead; rank 1 is one W late.
  CHECK(made({.name = "zero-bubble", .ranks = 2, .microbatches = 3}) ==
        "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
}

// Megatron-Core's combined 1F1B (core 0.16): one warm-up forward more than 4 and 2, then pairs in
// the order of its schedule table.
TEST_CASE("A forward and the backward behind it are overlapped where pairs are asked for") {
  CHECK(made({.name = "interleaved-1f1b",
              .ranks = 2,
              .virtual_stages = 2,
              .microbatches = 4,
              .limits = ScheduleLimits::megatron,
              .pairs = true}) ==
        "0F0,0F1,2F0,2F1,0F2,(0F3;2B0)OVERLAP_F_B,(2F2;2B1)OVERLAP_F_B,(2F3;0B0)OVERLAP_F_B,"
        "0B1,2B2,2B3,0B2,0B3\n"
        "1F0,1F1,3F0,(3F1;3B0)OVERLAP_F_B,(1F2;3B1)OVERLAP_F_B,(1F3;1B0)OVERLAP_F_B,"
        "(3F2;1B1)OVERLAP_F_B,(3F3;3B2)OVERLAP_F_B,3B3,1B2,1B3\n");
  const PipelineSchedule alone = accumulation_schedule(3, /*trains=*/true, /*pairs=*/true);
  CHECK(schedule_csv(alone) == "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2,0OPTIMIZER\n");
}

// Megatron-Core without overlap_p2p_comm: send_forward_recv_forward in the warm-up, then one
// exchange for both passes (pipeline_parallel/schedules.py).
TEST_CASE("What a forward and the backward behind it send and receive goes in one exchange") {
  const PipelineSchedule schedule = make_schedule({.name = "interleaved-1f1b",
                                                   .ranks = 2,
                                                   .virtual_stages = 2,
                                                   .microbatches = 4,
                                                   .limits = ScheduleLimits::megatron},
                                                  {"a", ""});
  const CallLists lists =
      with_messages(computations(schedule), schedule.shape, Receives::exchanged);
  std::string text;
  for (std::size_t i = 0; i < 18; ++i) text += call_text(lists[1][i]) + " ";
  CHECK(text ==
        "1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 3RECV_F0 1SEND_F1 3F0 3B0 3RECV_F1 3SEND_B0 "
        "3F1 3B1 1RECV_F2 1RECV_B0 3SEND_B1 1F2 1B0 ");
}

// recv_tensor_from_previous_stage of Megatron's schedules.py: what the last rank makes in its j-th
// forward the first one receives behind its (j + ranks - 1)-th, with groups of more microbatches
// than ranks well before it needs it.
TEST_CASE("The first rank receives what the last one hands on as it comes") {
  const PipelineSchedule schedule = make_schedule({.name = "interleaved-1f1b",
                                                   .ranks = 2,
                                                   .virtual_stages = 2,
                                                   .microbatches = 4,
                                                   .microbatch_group = 4,
                                                   .limits = ScheduleLimits::megatron},
                                                  {"a", ""});
  const CallLists lists =
      with_messages(computations(schedule), schedule.shape, Receives::one_ahead);
  std::string text;
  for (std::size_t i = 0; i < 11; ++i) text += call_text(lists[0][i]) + " ";
  CHECK(text == "0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 0F2 0SEND_F2 2RECV_F1 0F3 0SEND_F3 2RECV_F2 ");
}

TEST_CASE("PyTorch's names are read, in any case") {
  CHECK(made({.name = "GPipe", .ranks = 2, .microbatches = 2}) ==
        made({.name = "gpipe", .ranks = 2, .microbatches = 2}));
  CHECK(schedule_kind("interleavedZeroBubble", {"a", ""}).name == "interleaved-zero-bubble");
}

// arXiv:2401.10241: ZB-H1 keeps 1F1B's memory on every worker; with F, B (our I) and W of the same
// time its bubble is a third of 1F1B's, (p - 1)(T_F + T_B - T_W).
TEST_CASE("zero-bubble has the memory of 1F1B and a third of its bubble") {
  for (const std::int32_t ranks : {2, 3, 4, 8}) {
    const std::int32_t microbatches = 3 * ranks;
    const PipelineSchedule schedule = make_schedule(
        {.name = "zero-bubble", .ranks = ranks, .microbatches = microbatches}, {"a", ""});
    const std::vector<std::int32_t> held(static_cast<std::size_t>(ranks), ranks);
    CHECK(activations_held(schedule).forwards == held);
    CHECK(dry_run(schedule, {}).steps == 3 * microbatches + (ranks - 1));
  }
}

// The same paper: ZB-H2 has no bubble; what the first worker holds is 2p - 1.
TEST_CASE("zero-bubble-2p idles nowhere between a rank's first and last action") {
  for (const std::int32_t ranks : {2, 3, 4, 8}) {
    for (const std::int32_t microbatches : {2 * ranks - 1, 2 * ranks, 3 * ranks + 1}) {
      const PipelineSchedule schedule = make_schedule(
          {.name = "zero-bubble-2p", .ranks = ranks, .microbatches = microbatches}, {"a", ""});
      verify(schedule, {"a", ""});
      const Timetable timetable = dry_run(schedule, {});
      for (std::size_t rank = 0; rank < schedule.of_rank.size(); ++rank) {
        const auto& start = timetable.start[rank];
        CHECK(start.front() == static_cast<std::int64_t>(rank));
        CHECK(start.back() - start.front() + 1 == 3 * microbatches);
      }
      CHECK(activations_held(schedule).forwards[0] == 2 * ranks - 1);
    }
  }
}

// Section 6: V-shaped chunks need 1F1B's memory (p stages of twice p) and have no bubble.
TEST_CASE("zbv keeps the memory of 1F1B on every rank") {
  for (const std::int32_t ranks : {2, 4, 8}) {
    const PipelineSchedule schedule = make_schedule(
        {.name = "zbv", .ranks = ranks, .virtual_stages = 2, .microbatches = 3 * ranks}, {"a", ""});
    const std::vector<std::int32_t> held(static_cast<std::size_t>(ranks), 2 * ranks);
    CHECK(activations_held(schedule).forwards == held);
  }
}

TEST_CASE("A number that a schedule cannot do is an error at its key") {
  CHECK(refusal({.name = "1f1b", .ranks = 4, .microbatches = 2}) ==
        "a.json: /strategy/pipeline/microbatches: PyTorch's 1F1B needs as many microbatches as "
        "ranks: 2 are fewer than 4; 4 or more do, or gpipe");
  CHECK(refusal(
            {.name = "1f1b", .ranks = 4, .microbatches = 2, .limits = ScheduleLimits::megatron}) ==
        "");
  CHECK(refusal({.name = "gpipe", .ranks = 4, .virtual_stages = 2, .microbatches = 2}) ==
        "a.json: /strategy/pipeline/virtual_stages: gpipe runs 1 stage per rank, not 2; "
        "interleaved-1f1b, looped-bfs and interleaved-zero-bubble run several");
  CHECK(refusal({.name = "zbv", .ranks = 4, .virtual_stages = 3, .microbatches = 8}) ==
        "a.json: /strategy/pipeline/virtual_stages: zbv runs exactly 2 stages per rank, not 3");
  CHECK(
      refusal({.name = "dualpipev", .ranks = 4, .virtual_stages = 2, .microbatches = 7}) ==
      "a.json: /strategy/pipeline/microbatches: dualpipev needs as many microbatches as stages: 7 "
      "are fewer than 8, two on each of 4 ranks");
  CHECK(refusal({.name = "interleaved-1f1b", .ranks = 2, .virtual_stages = 2, .microbatches = 5}) ==
        "a.json: /strategy/pipeline/microbatches: interleaved-1f1b of 2 ranks takes its "
        "microbatches in 2 rounds, one for every 2 of them: 5 do not divide by 2, 4 or 6 do");
  CHECK(refusal({.name = "1f2b", .ranks = 2, .microbatches = 5}) ==
        "a.json: /strategy/pipeline/schedule: unknown schedule \"1f2b\", did you mean \"1f1b\"?");
  CHECK(refusal({.name = "gpipe", .ranks = 2, .microbatches = 0}) ==
        "a.json: /strategy/pipeline/microbatches: 0 microbatches: expected 1 to 16777216");
}

TEST_CASE("Megatron's groups of microbatches") {
  ScheduleRequest request{.name = "interleaved-1f1b",
                          .ranks = 4,
                          .virtual_stages = 2,
                          .microbatches = 6,
                          .microbatch_group = 3,
                          .limits = ScheduleLimits::megatron};
  CHECK(refusal(request) ==
        "a.json: /strategy/pipeline/microbatch_group: a group of 3 microbatches; Megatron takes 4 "
        "(ranks) to 6 (all microbatches)");
  request.microbatch_group.reset();
  CHECK(refusal(request) ==
        "a.json: /strategy/pipeline/microbatches: 6 microbatches in groups of 4 leave a last group "
        "of 2, fewer than the 4 ranks; 4 or 8 microbatches do");
}

// Of one stage, 1F1B runs every microbatch forward and backward before the next.
TEST_CASE("accumulation is 1F1B of one stage") {
  for (const std::int32_t microbatches : {1, 2, 7}) {
    const PipelineSchedule expected =
        make_schedule({.name = "1f1b", .ranks = 1, .microbatches = microbatches}, {});
    PipelineSchedule schedule = accumulation_schedule(microbatches, /*trains=*/true);
    CHECK(schedule.shape == expected.shape);
    CHECK(schedule.of_rank.front().back().kind == ActionKind::optimizer);
    schedule.of_rank.front().pop_back();
    CHECK(schedule.of_rank == expected.of_rank);
  }
}
