// Schedules as text, in the form of PyTorch's CSV files.
//
//   0F0,0F1,,0B0,0B1        one line per rank; an empty cell is a step of idling and means nothing
//   1F0,1B0,1F1,1B1
//
//   2F0  stage 2, forward, microbatch 0        likewise 2B0, 2I0, 2W0
//   (0F3;7B1)OVERLAP_F_B    a forward and a backward that are overlapped
//   2OPTIMIZER              the optimizer's step of stage 2; PyTorch's lists have none
//
// What PyTorch writes with schedule._dump_csv(file, format="compute_only") is read, and what is
// written here its _load_csv reads, where no OPTIMIZER is in it.
//
// A file gives ranks (lines), stages, where each lies, and microbatches. It must have every stage
// up to the largest. Bad text is an InputError with line and cell; that what is read can run is
// verify's to say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

[[nodiscard]] std::string_view word_of(ActionKind kind);      // "F", "OPTIMIZER"
[[nodiscard]] std::string action_text(const Action& action);  // "2F0"; without what overlaps it
[[nodiscard]] std::vector<std::string> cells_of(const std::vector<Action>& actions);

// A cell's actions: one, two for an overlapped pair, none for an empty cell.
[[nodiscard]] std::vector<Action> read_cell(std::string_view text, const Place& place);

[[nodiscard]] std::string schedule_csv(const PipelineSchedule& schedule);
// With empty cells where a rank idles when every action takes one step: columns are steps.
[[nodiscard]] std::string schedule_csv_by_step(const PipelineSchedule& schedule);
[[nodiscard]] PipelineSchedule read_schedule_csv(std::string_view text, const std::string& file);

}  // namespace shardsim
