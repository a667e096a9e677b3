#include "reports/step/validation_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>

#include "base/json.hpp"
#include "base/version.hpp"
#include "reports/step/json_report.hpp"
#include "reports/step/validation_html.hpp"
#include "reports/step/validation_tables.hpp"

namespace shardsim {
namespace {

std::string validation_text(const StepValidation& validation, std::size_t width) {
  std::string out = fmt::format("{} ({})\nmeasured: {}\n\n", validation_title(validation),
                                validation_subject(validation), measured_how(validation));
  out += to_text(validation_summary(validation), "  ", width);
  const Table memory = validation_memory(validation);
  if (!memory.rows.empty()) out += "\n" + memory.caption + "\n" + to_text(memory, "  ", width);
  out += "\n" + to_text(validation_rows(validation), "  ", width);
  return out + text_remarks("Notes", validation.notes, width);
}

std::string validation_markdown(const StepValidation& validation) {
  std::string out = fmt::format(
      "## {}\n\n{}; measured: {}\n\n", markdown_escape(validation_title(validation)),
      markdown_escape(validation_subject(validation)), markdown_escape(measured_how(validation)));
  out += to_markdown(validation_summary(validation));
  const Table memory = validation_memory(validation);
  if (!memory.rows.empty()) {
    out += fmt::format("\n### {}\n\n{}", memory.caption, to_markdown(memory));
  }
  out += "\n" + to_markdown(validation_rows(validation));
  if (!validation.notes.empty()) out += "\n### Notes\n\n";
  for (const std::string& note : validation.notes) {
    out += fmt::format("- {}\n", markdown_escape(note));
  }
  return out;
}

// Times stay empty.
std::string memory_csv(const ValidatedMemory& memory) {
  const auto row = [&](const std::string& name, const std::string& predicted, Bytes measured,
                       const std::optional<double>& error) {
    return fmt::format("{},{},memory,,,,,,,,{},{},{},\n", csv_field(memory.program), name,
                       error ? plain_number(*error) : "", predicted, measured.count());
  };
  const auto compared = [&](const std::string& name, const ComparedBytes& bytes) {
    return row(name, std::to_string(bytes.predicted.count()), bytes.measured,
               bytes.relative_error());
  };
  std::string out;
  for (const BufferCategory category : categories_in_reports) {
    const ComparedBytes& bytes = memory.by_category[static_cast<std::size_t>(category)];
    out += compared(category_key(category), bytes);
  }
  out += row("shared", "", memory.shared(), std::nullopt);
  out += compared("peak", memory.peak);
  return out + row("reserved", "", memory.reserved, std::nullopt);
}

std::string validation_csv(const StepValidation& validation) {
  std::string out =
      "program,name,kind,axes,group_size,payload_bytes,predicted_s,measured_s,measured_low_s,"
      "measured_high_s,relative_error,predicted_bytes,measured_bytes,library_estimate_s\n";
  for (const ValidatedTask& task : validation.tasks) {
    const auto error = task.time.relative_error();
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},,,{}\n", csv_field(task.program),
                       csv_field(task.name), task.kind,
                       csv_field(fmt::format("{}", fmt::join(task.axes, ","))), task.group_size,
                       task.payload.count(), plain_number(task.time.predicted.count()),
                       plain_number(task.time.measured.count()), plain_number(task.low.count()),
                       plain_number(task.high.count()), error ? plain_number(*error) : "",
                       task.estimated ? plain_number(task.estimated->count()) : "");
  }
  for (const ValidatedMemory& memory : validation.memory) out += memory_csv(memory);
  return out;
}

Json error_json(const Compared& time) {
  const auto error = time.relative_error();
  return error ? Json(*error) : Json(nullptr);
}

Json compared_json(const Compared& time) {
  return {{"predicted_s", time.predicted.count()},
          {"measured_s", time.measured.count()},
          {"relative_error", error_json(time)}};
}

Json part_json(const std::vector<ValidatedTask>& tasks, StepPart part) {
  Json json = compared_json(total_of(tasks, part));
  const auto errors = errors_of(tasks, part);
  json["tasks"] = errors ? errors->rows : 0;
  json["median_absolute_relative_error"] = errors ? Json(errors->median) : Json(nullptr);
  json["percentile_90_absolute_relative_error"] =
      errors ? Json(errors->percentile_90) : Json(nullptr);
  return json;
}

Json task_json(const ValidatedTask& task) {
  Json json = {{"program", task.program},
               {"name", task.name},
               {"kind", task.kind},
               {"axes", task.axes},
               {"group_size", task.group_size},
               {"payload_bytes", task.payload.count()},
               {"predicted_s", task.time.predicted.count()},
               {"measured_s", task.time.measured.count()},
               {"measured_low_s", task.low.count()},
               {"measured_high_s", task.high.count()}};
  json["relative_error"] = error_json(task.time);
  if (task.estimated) json["library_estimate_s"] = task.estimated->count();
  return json;
}

Json bytes_json(const ComparedBytes& bytes) {
  const auto error = bytes.relative_error();
  return {{"predicted_bytes", bytes.predicted.count()},
          {"measured_bytes", bytes.measured.count()},
          {"relative_error", error ? Json(*error) : Json(nullptr)}};
}

Json memory_json(const ValidatedMemory& memory) {
  Json by_category = Json::object();
  for (const BufferCategory category : categories_in_reports) {
    const ComparedBytes& bytes = memory.by_category[static_cast<std::size_t>(category)];
    by_category[category_key(category)] = bytes_json(bytes);
  }
  return {{"program", memory.program},
          {"rank", memory.rank},
          {"peak", bytes_json(memory.peak)},
          {"by_category", std::move(by_category)},
          {"measured_shared_bytes", memory.shared().count()},
          {"measured_reserved_bytes", memory.reserved.count()}};
}

std::string validation_json(const StepValidation& validation) {
  const RunOn& on = validation.on;
  Json json;
  json["schema"] = "shardsim/validation/1";
  json["shardsim"] = program_version;
  json["experiment"] = *validation.prediction.experiment.resolved;
  json["machine"] = validation.prediction.machine.profile.name;
  json["backend"] = {{"name", on.backend},
                     {"library", on.library},
                     {"processes", on.processes},
                     {"hosts", on.hosts}};
  json["repeats"] = validation.repeats;
  json["precision"] = validation.precision;
  json["settled"] = validation.settled;
  json["tasks"] = Json::array();
  for (const ValidatedTask& task : validation.tasks) json["tasks"].push_back(task_json(task));
  json["communication"] = part_json(validation.tasks, StepPart::communication);
  json["compute"] = part_json(validation.tasks, StepPart::compute);
  json["step"] = compared_json(validation.step);
  json["step"]["measured_low_s"] = validation.step_low.count();
  json["step"]["measured_high_s"] = validation.step_high.count();
  json["memory"] = Json::array();
  for (const ValidatedMemory& memory : validation.memory) {
    json["memory"].push_back(memory_json(memory));
  }
  const auto errors = errors_of(validation.tasks, StepPart::everything);
  json["median_relative_error"] = errors ? Json(errors->median) : Json(nullptr);
  json["notes"] = validation.notes;
  return json_text(json);
}

}  // namespace

std::string report_validation(const StepValidation& validation, Format format, std::size_t width) {
  switch (format) {
    case Format::text:
      return validation_text(validation, width);
    case Format::json:
      return validation_json(validation);
    case Format::csv:
      return validation_csv(validation);
    case Format::html:
      return validation_html(validation);
    case Format::markdown:
      return validation_markdown(validation);
  }
  assert(false);
  return {};
}

}  // namespace shardsim
