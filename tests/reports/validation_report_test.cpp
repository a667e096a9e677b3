// A validated step in every format: the keys that scripts hang on, a row for a task, nothing of a
// name let loose in a page.
#include "reports/step/validation_report.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::validation_report_test {
namespace {

ValidatedTask validated(TaskKind task_kind, const std::string& kind, double predicted,
                        double measured) {
  ValidatedTask task;
  task.program = "all";
  task.name = "</script><b>layer, \"0\"";
  task.task_kind = task_kind;
  task.kind = kind;
  task.group_size = 4;
  task.payload = Bytes(MiB);
  task.time = {Seconds(predicted), Seconds(measured)};
  task.low = Seconds(measured / 2);
  task.high = Seconds(measured * 2);
  return task;
}

// Of errors +100 %, -50 % and -20 %; in a step that is predicted a tenth too slow.
StepValidation small_validation() {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/validate-tiny-llama.json";
  StepValidation validation;
  validation.prediction = predict(read_experiments(load_json(file), file).front(), {});
  validation.on = {"mpi", "Open MPI v4.1.4", 4, {"here"}};
  validation.repeats = 12;
  validation.precision = 0.015;
  validation.settled = true;
  validation.step = {Seconds(1.1), Seconds(1)};
  validation.tasks = {validated(TaskKind::collective, "all-gather", 2e-3, 1e-3),
                      validated(TaskKind::collective, "all-gather", 2e-3, 4e-3),
                      validated(TaskKind::kernel, "matmul", 8e-3, 1e-2)};
  validation.notes = {"a core computes or communicates"};
  return validation;
}

// 1000 B of parameters, predicted to the byte, and 24 B of others that no category has.
ValidatedMemory small_memory() {
  ValidatedMemory memory;
  memory.program = "<b>all";
  memory.rank = 3;
  memory.peak = {Bytes(1000), Bytes(1024)};
  memory.by_category[static_cast<std::size_t>(BufferCategory::parameters)] = {Bytes(1000),
                                                                              Bytes(1000)};
  memory.reserved = Bytes(4096);
  return memory;
}

StepValidation validation_with_memory() {
  StepValidation validation = small_validation();
  validation.memory = {small_memory()};
  return validation;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// Of the two all-gathers one is estimated, of the all-reduce both are: only their sum is known.
TEST_CASE("what the library expects stands beside what is predicted, where it says so") {
  StepValidation validation = small_validation();
  CHECK_FALSE(has(report_validation(validation, Format::text), "itself"));
  validation.on.backend = "nccl";
  validation.tasks[0].estimated = Seconds(3e-3);
  for (int i = 0; i < 2; ++i) {
    validation.tasks.push_back(validated(TaskKind::collective, "all-reduce", 1e-3, 1e-3));
    validation.tasks.back().estimated = Seconds(2.25e-3);
  }
  const auto rows = rows_of(validation.tasks);
  for (const ValidatedRow& row : rows) {
    if (row.kind == "all-reduce") CHECK(row.estimated.value().count() == Approx(4.5e-3));
    if (row.kind != "all-reduce") CHECK_FALSE(row.estimated.has_value());
  }
  const std::string text = report_validation(validation, Format::text);
  CHECK(has(text, "by nccl itself"));
  CHECK(has(text, "4.50 ms"));
  const Json json = parse_json(report_validation(validation, Format::json), "report");
  CHECK(json["tasks"][0]["library_estimate_s"].get<double>() == Approx(3e-3));
  CHECK_FALSE(json["tasks"][1].contains("library_estimate_s"));
  CHECK(has(report_validation(validation, Format::csv), ",,,0.003\n"));
}

TEST_CASE("a validation as JSON has what scripts ask for") {
  const Json json = parse_json(report_validation(small_validation(), Format::json), "report");
  CHECK(json["schema"] == "shardsim/validation/1");
  CHECK(json["machine"] == "cpu-host");
  REQUIRE(json["tasks"].size() == 3);
  const Json& task = json["tasks"][0];
  for (const char* key : {"name", "kind", "payload_bytes", "predicted_s", "measured_s"}) {
    CHECK(task.contains(key));
  }
  CHECK(task["relative_error"].get<double>() == Approx(1));
  CHECK(json["step"]["relative_error"].get<double>() == Approx(0.1));
  CHECK(json["median_relative_error"].get<double>() == Approx(0.5));
  CHECK(json["communication"]["relative_error"].get<double>() == Approx(-0.2));
  CHECK(json["communication"]["tasks"] == 2);
  CHECK(json["compute"]["median_absolute_relative_error"].get<double>() == Approx(0.2));
  CHECK(json["backend"]["processes"] == 4);
}

TEST_CASE("a validation as CSV has a row for a task, with its name quoted") {
  const std::string csv = report_validation(small_validation(), Format::csv);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK(has(csv, "all,\"</script><b>layer, \"\"0\"\"\",all-gather,"));
}

TEST_CASE("a validation for people says how it was measured, and sums up") {
  for (const Format format : {Format::text, Format::markdown, Format::html}) {
    const std::string text = report_validation(small_validation(), format);
    CHECK(has(text, "the median of 12 steps, known to 1.5 % of it"));
    CHECK(has(text, "+10.0 %"));
    CHECK(has(text, "a core computes or communicates"));
  }
  StepValidation unsettled = small_validation();
  unsettled.settled = false;
  CHECK(has(report_validation(unsettled, Format::text), "less well than was asked for"));
}

TEST_CASE("names do not get out of a validation's page") {
  const std::string page = report_validation(small_validation(), Format::html);
  CHECK_FALSE(has(page, "<b>layer"));
  CHECK(has(page, "predicted-over-measured"));
}

TEST_CASE("memory in JSON: peak and categories, each predicted beside measured") {
  const Json json = parse_json(report_validation(validation_with_memory(), Format::json), "report");
  REQUIRE(json["memory"].size() == 1);
  const Json& memory = json["memory"][0];
  CHECK(memory["program"] == "<b>all");
  CHECK(memory["rank"] == 3);
  CHECK(memory["peak"]["predicted_bytes"] == 1000);
  CHECK(memory["peak"]["measured_bytes"] == 1024);
  CHECK(memory["peak"]["relative_error"].get<double>() == Approx(1000.0 / 1024 - 1));
  CHECK(memory["by_category"].size() == buffer_categories);
  CHECK(memory["by_category"]["parameters"]["measured_bytes"] == 1000);
  CHECK(memory["by_category"]["gathered_parameters"]["relative_error"].is_null());
  CHECK(memory["measured_shared_bytes"] == 24);
  CHECK(memory["measured_reserved_bytes"] == 4096);
  const Json none = parse_json(report_validation(small_validation(), Format::json), "report");
  CHECK(none["memory"] == Json::array());
}

TEST_CASE("memory in CSV: rows of its own, with as many fields as any") {
  const std::string csv = report_validation(validation_with_memory(), Format::csv);
  // Heading, three tasks, categories, shared, peak, reserved.
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 3 + buffer_categories + 3);
  CHECK(has(csv, "\n<b>all,parameters,memory,,,,,,,,0,1000,1000,\n"));
  CHECK(has(csv, "\n<b>all,peak,memory,,,,,,,,-0.0234375,1000,1024,\n"));
  CHECK(has(csv, "\n<b>all,shared,memory,,,,,,,,,,24,\n"));
  CHECK(has(csv, "\n<b>all,reserved,memory,,,,,,,,,,4096,\n"));
  std::istringstream rows(report_validation(validation_with_memory(), Format::csv));
  std::string row;
  std::getline(rows, row);
  const auto commas = std::count(row.begin(), row.end(), ',');
  while (std::getline(rows, row)) {
    if (has(row, "layer")) continue;  // a comma in its name
    CHECK(std::count(row.begin(), row.end(), ',') == commas);
  }
}

TEST_CASE("memory for people is a table, and in a page bars") {
  for (const Format format : {Format::text, Format::markdown, Format::html}) {
    const std::string text = report_validation(validation_with_memory(), format);
    CHECK(has(text, "Allocated memory per device at the peak"));
    CHECK(has(text, "shared granules"));
    CHECK(has(text, "-2.3 %"));
    CHECK(has(text, "4.0 KiB"));
    CHECK_FALSE(has(report_validation(small_validation(), format), "Allocated memory"));
  }
  const std::string page = report_validation(validation_with_memory(), Format::html);
  CHECK(has(page, "id=\"memory-at-the-peak\""));
  CHECK_FALSE(has(page, "<b>all"));
  CHECK_FALSE(has(report_validation(small_validation(), Format::html), "id=\"memory-at-the-peak"));
}

}  // namespace shardsim::validation_report_test
