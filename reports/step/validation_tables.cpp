#include "reports/step/validation_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"

namespace shardsim {
namespace {

Cell seconds_cell(Seconds time) { return {format_seconds(time), plain_number(time.count())}; }

Cell bytes_cell(Bytes bytes) { return {format_bytes(bytes), std::to_string(bytes.count())}; }

Cell error_cell(const std::optional<double>& error) {
  if (!error) return {"-", ""};
  return {(*error >= 0 ? "+" : "") + format_percent(*error), plain_number(*error)};
}

Cell percent_cell(const std::optional<ErrorSummary>& errors, double ErrorSummary::*which) {
  if (!errors) return {"-", ""};
  return {format_percent((*errors).*which), plain_number((*errors).*which)};
}

std::vector<Cell> summary_row(const std::string& what, const Compared& time,
                              const std::optional<ErrorSummary>& errors) {
  const std::string tasks = errors ? format_count(static_cast<std::int64_t>(errors->rows)) : "-";
  return {{what, ""},
          seconds_cell(time.predicted),
          seconds_cell(time.measured),
          error_cell(time.relative_error()),
          {tasks, errors ? std::to_string(errors->rows) : ""},
          percent_cell(errors, &ErrorSummary::median),
          percent_cell(errors, &ErrorSummary::percentile_90)};
}

std::vector<Cell> memory_row(const std::string& program, const std::string& what,
                             const ComparedBytes& bytes) {
  return {{program, ""},
          {what, ""},
          bytes_cell(bytes.predicted),
          bytes_cell(bytes.measured),
          error_cell(bytes.relative_error())};
}

// What no prediction is for.
std::vector<Cell> measured_row(const std::string& program, const std::string& what, Bytes bytes) {
  return {{program, ""}, {what, ""}, {"-", ""}, bytes_cell(bytes), {"-", ""}};
}

constexpr auto right = TextTable::Align::right;

}  // namespace

std::string validation_title(const StepValidation& validation) {
  return title_of(figures_of(validation.prediction)) + ": predicted beside measured";
}

std::string validation_subject(const StepValidation& validation) {
  const RunOn& on = validation.on;
  return fmt::format("{}, {} on {}, {}", validation.prediction.machine.profile.name,
                     counted(on.processes, "rank"),
                     counted(static_cast<std::int64_t>(on.hosts.size()), "host"), on.library);
}

std::string measured_how(const StepValidation& validation) {
  const std::string precision =
      fmt::format("the median of {}, known to {} of it", counted(validation.repeats, "step"),
                  format_percent(validation.precision));
  return validation.settled ? precision : precision + ", less well than was asked for";
}

Table validation_summary(const StepValidation& validation) {
  Table table{"Predicted beside measured",
              {{""},
               {"predicted", right},
               {"measured", right},
               {"error", right},
               {"tasks", right},
               {"median error", right},
               {"90th percentile", right}},
              {}};
  const auto& tasks = validation.tasks;
  table.rows.push_back(
      summary_row("step", validation.step, errors_of(tasks, StepPart::everything)));
  table.rows.push_back(summary_row("communication", total_of(tasks, StepPart::communication),
                                   errors_of(tasks, StepPart::communication)));
  table.rows.push_back(summary_row("compute", total_of(tasks, StepPart::compute),
                                   errors_of(tasks, StepPart::compute)));
  return table;
}

Table validation_rows(const StepValidation& validation) {
  Table table{"Sums of tasks",
              {{"kind"},
               {"axes"},
               {"group", right},
               {"size", right},
               {"count", right},
               {"predicted", right},
               {"measured", right},
               {"error", right}},
              {}};
  const std::vector<ValidatedRow> rows = rows_of(validation.tasks);
  const bool estimates = std::any_of(
      rows.begin(), rows.end(), [](const ValidatedRow& row) { return row.estimated.has_value(); });
  if (estimates) table.columns.push_back({"by " + validation.on.backend + " itself", right});
  for (const ValidatedRow& row : rows) {
    table.rows.push_back({{row.kind, ""},
                          {fmt::format("{}", fmt::join(row.axes, ",")), ""},
                          {std::to_string(row.group_size), std::to_string(row.group_size)},
                          {format_bytes(row.payload), std::to_string(row.payload.count())},
                          {format_count(row.count), std::to_string(row.count)},
                          seconds_cell(row.time.predicted),
                          seconds_cell(row.time.measured),
                          error_cell(row.time.relative_error())});
    if (!estimates) continue;
    table.rows.back().push_back(row.estimated ? seconds_cell(*row.estimated) : Cell{"-", ""});
  }
  return table;
}

Table validation_memory(const StepValidation& validation) {
  Table table{
      "Allocated memory per device at the peak",
      {{"program"}, {"category"}, {"predicted", right}, {"measured", right}, {"error", right}},
      {}};
  for (const ValidatedMemory& memory : validation.memory) {
    for (const BufferCategory category : categories_in_reports) {
      const ComparedBytes& bytes = memory.by_category[static_cast<std::size_t>(category)];
      if (bytes.predicted == Bytes(0) && bytes.measured == Bytes(0)) continue;
      table.rows.push_back(memory_row(memory.program, category_label(category), bytes));
    }
    if (memory.shared() != Bytes(0)) {
      table.rows.push_back(measured_row(memory.program, "shared granules", memory.shared()));
    }
    table.rows.push_back(memory_row(memory.program, "peak", memory.peak));
    table.rows.push_back(measured_row(memory.program, "reserved", memory.reserved));
  }
  return table;
}

}  // namespace shardsim
