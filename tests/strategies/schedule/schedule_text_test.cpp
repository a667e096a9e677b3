// The text form of schedules: PyTorch's of torch/distributed/pipelining/schedules.py.
#include <catch2/catch.hpp>

#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/schedules.hpp"

using namespace shardsim;

namespace {

std::string text_error(std::string_view csv) {
  try {
    (void)read_schedule_csv(csv, "a.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A schedule is printed as PyTorch prints it, and read back") {
  const PipelineSchedule schedule =
      make_schedule({.name = "1f1b", .ranks = 2, .microbatches = 3}, {"a", ""});
  CHECK(schedule_csv(schedule) == "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  CHECK(read_schedule_csv(schedule_csv(schedule), "a.csv") == schedule);
  // Empty cells, spaces and the carriage returns of PyTorch's csv module mean nothing.
  CHECK(read_schedule_csv("0F0, 0F1,,0B0,0F2,0B1,0B2\r\n,1F0,1B0,1F1,1B1,1F2,1B2,\r\n", "a.csv") ==
        schedule);
}

TEST_CASE("By steps a rank that waits has empty cells") {
  // Every action a step: 1F0 waits for 0F0 (step 0), 0B0 for 1B0 (step 2), 0B1 for 1B1 (step 4).
  const PipelineSchedule schedule =
      make_schedule({.name = "1f1b", .ranks = 2, .microbatches = 2}, {"a", ""});
  CHECK(schedule_csv_by_step(schedule) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
}

TEST_CASE("An overlapped pair is one cell, a stage's optimizer has no microbatch") {
  const std::vector<Action> pair = read_cell("(0F3;7B1)OVERLAP_F_B", {"a", ""});
  const Action forward{ActionKind::forward, /*with_next=*/true, 0, 3};
  const Action backward{ActionKind::backward, /*with_next=*/false, 7, 1};
  REQUIRE(pair == std::vector<Action>{forward, backward});
  CHECK(cells_of(pair) == std::vector<std::string>{"(0F3;7B1)OVERLAP_F_B"});
  const std::vector<Action> step = read_cell("2OPTIMIZER", {"a", ""});
  CHECK(cells_of(step) == std::vector<std::string>{"2OPTIMIZER"});
}

TEST_CASE("Bad text is an error with its line and cell") {
  CHECK(text_error("0F0,0B0\n1F0,1X0\n") ==
        "a.csv: line 2, cell 2: \"1X0\" is no action; expected stage, F, B, I or W, and microbatch "
        "(\"2F0\"), or a stage's \"2OPTIMIZER\"");
  CHECK(
      text_error("0F0,0SEND_F0\n") ==
      "a.csv: line 1, cell 2: \"0SEND_F0\" is communication, which follows from the computations: "
      "write the list with format=\"compute_only\"");
  CHECK(text_error("(0F0;0W0)OVERLAP_F_B\n") ==
        "a.csv: line 1, cell 1: \"(0F0;0W0)OVERLAP_F_B\" is no overlapped pair; expected a forward "
        "and a backward, as in \"(0F3;7B1)OVERLAP_F_B\"");
  CHECK(text_error("0F0\n0B0\n") ==
        "a.csv: line 2, cell 1: \"0B0\": stage 0 is rank 0's already (line 1); a stage lies on one "
        "rank");
  CHECK(text_error("0F0\n2F0\n") ==
        "a.csv: no rank has stage 1; stages are counted from 0 to 2, the largest here");
  CHECK(text_error("0F0\n\n1F0\n") ==
        "a.csv: line 2: rank 1 has no action: a schedule has one line per rank");
  CHECK(text_error("") == "a.csv: a schedule has one line per rank, this has none");
  CHECK(text_error("0F99999999999\n").find("is no action") != std::string::npos);
}
