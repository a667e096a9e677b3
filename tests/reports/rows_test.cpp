// No report drops a row: everything here has a dozen of them, one more than any table shows at
// once, and every format names each, or says how many are left out.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "fixture.hpp"
#include "reports/collective/collective_report.hpp"
#include "reports/format/html.hpp"
#include "reports/format/tables.hpp"
#include "reports/hlo/hlo_diff_report.hpp"
#include "reports/specs/specs_report.hpp"
#include "reports/step/explain_report.hpp"

namespace shardsim {
namespace {

constexpr std::size_t dozen = 12;
constexpr std::size_t beyond = dozen - default_row_limit;
const std::vector<Format> for_people = {Format::text, Format::markdown, Format::html};

// "collective.a" to "collective.l": numbers are masked where texts that differ in them are one row.
std::string nth(const std::string& what, std::size_t i) {
  return what + "." + std::string(1, static_cast<char>('a' + i));
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Of the first `shown` names every one stands in the text, of the others none.
void check_names(const std::string& text, const std::string& what, std::size_t shown = dozen) {
  for (std::size_t i = 0; i < dozen; ++i) {
    INFO(nth(what, i));
    CHECK((times(text, nth(what, i)) > 0) == (i < shown));
  }
}

// A step with a dozen of everything that is listed.
Prediction long_run() {
  Prediction p = fixture::fsdp();
  const CommunicationRow row = p.result.communication.front();
  const Padding padding = p.step.plan.padding.front();
  const ProgramResult one = p.result.programs.front();
  p.result.communication.clear();
  p.step.plan.padding.clear();
  p.result.programs.clear();
  for (std::size_t i = 0; i < dozen; ++i) {
    p.result.communication.push_back(row);
    p.result.communication.back().what = nth("collective", i);
    p.step.plan.padding.push_back(padding);
    p.step.plan.padding.back().tensor = nth("padded", i);
    p.result.programs.push_back(one);
    p.result.programs.back().name = nth("class", i);
    p.step.warnings.push_back(nth("warning", i));
    p.step.plan.notes.push_back(nth("remark", i));
  }
  std::vector<PeakBuffer>& buffers = p.result.programs.front().peak_buffers;
  buffers.clear();
  for (std::size_t i = 0; i < dozen; ++i) {
    buffers.push_back({nth("buffer", i), BufferCategory::optimizer, 3, Bytes(MiB)});
  }
  p.step.plan.programs.resize(dozen, p.step.plan.programs.front());
  return p;
}

TEST_CASE("a table has all its rows in every form") {
  Table table{"caption", {{"name"}, {"last"}}, {}};
  for (std::size_t i = 0; i < dozen; ++i) {
    table.rows.push_back({{nth("name", i), ""}, {nth("last", i), ""}});
  }
  for (const std::string& text : {to_text(table), to_markdown(table), to_html(table)}) {
    for (const char* column : {"name", "last"}) check_names(text, column);
  }
}

TEST_CASE("a run's reports have every collective, class, warning and note, and say what they cut") {
  for (const Format format : for_people) {
    const std::string text = report_run(long_run(), format);
    for (const char* what : {"collective", "class", "warning", "remark"}) check_names(text, what);
    check_names(text.substr(0, text.find("<script")), "buffer", default_row_limit);
    check_names(text.substr(0, text.find("<script")), "padded", default_row_limit);
    CHECK(times(text, "all others") == 2);
  }
  // What is left out together: 3 buffers each of 1 MiB, 1 KiB of padding each.
  const Figures figures = figures_of(long_run());
  const auto buffers = peak_buffer_table(figures).rows;
  REQUIRE(buffers.size() == default_row_limit + 1);
  CHECK(buffers.back()[2].value == std::to_string(3 * beyond));
  CHECK(buffers.back()[3].value == std::to_string(beyond * MiB));
  const auto padding = padding_table(figures).rows;
  REQUIRE(padding.size() == default_row_limit + 2);
  CHECK(padding[default_row_limit].back().value == std::to_string(beyond * KiB));
  CHECK(padding.back().back().value == std::to_string(dozen * KiB));
}

TEST_CASE("a table of exactly as many rows as it shows has no rest") {
  Figures figures = figures_of(long_run());
  figures.peak_buffers.resize(default_row_limit);
  figures.padding.resize(default_row_limit);
  CHECK(peak_buffer_table(figures).rows.size() == default_row_limit);
  CHECK(padding_table(figures).rows.size() == default_row_limit + 1);  // and the sum
}

TEST_CASE("a run's JSON has every row") {
  const Json json = parse_json(report_run(long_run(), Format::json), "run");
  for (const char* list : {"communication", "padding", "peak_buffers"}) {
    CHECK(json[list].size() == dozen);
  }
  CHECK(json["warnings"].size() == dozen);
  CHECK(json["notes"].size() == dozen + 2);  // the fixture's own
  CHECK(json["memory"]["per_device_class"].size() == dozen);
  CHECK(json["communication"][dozen - 1]["what"] == nth("collective", dozen - 1));
}

TEST_CASE("a comparison has a row per configuration in every format") {
  std::vector<Prediction> all;
  for (std::size_t i = 0; i < dozen; ++i) {
    all.push_back(i % 2 == 0 ? fixture::dp() : fixture::fsdp());
    all.back().experiment.name = nth("configuration", i);
  }
  for (const Format format : for_people) {
    const std::string text = report_comparison(all, format);
    check_names(text, "configuration");
    // dp does not fit, which is said of each.
    if (format != Format::html) CHECK(times(text, "does not fit: needs") == dozen / 2);
  }
  const std::string csv = report_comparison(all, Format::csv);
  check_names(csv, "configuration");
  CHECK(times(csv, "\r\n") == dozen + 1);
  CHECK(parse_json(report_comparison(all, Format::json), "all")["results"].size() == dozen);
}

TEST_CASE("a collective has a row per size in every format") {
  CollectivePrediction made;
  made.experiment.devices = 2;
  made.machine.profile.name = "machine";
  for (std::size_t i = 0; i < dozen; ++i) {
    CollectivePoint point;
    point.bytes = Bytes(static_cast<std::int64_t>(1'000'000 + i));
    point.cost.algorithm = "ring";
    made.points.push_back(point);
    made.notes.push_back(nth("note", i));
  }
  for (const Format format : for_people) {
    const std::string text = report_collective(made, format);
    check_names(text, "note");
    for (const CollectivePoint& point : made.points) {
      CHECK(times(text, std::to_string(point.bytes.count())) > 0);
    }
  }
  const std::string csv = report_collective(made, Format::csv);
  CHECK(times(csv, "\n10000") == dozen);
  CHECK(parse_json(report_collective(made, Format::json), "made")["rows"].size() == dozen);
}

TEST_CASE("an explanation has every collective") {
  Plan plan;
  plan.mesh = Mesh({{"fsdp", 4}});
  plan.names = {"layers.{}"};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (std::size_t i = 0; i < dozen; ++i) {
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.axes = {plan.mesh.whole(0)};
    collective.payload = Bytes(4);
    collective.reason = nth("reason", i);
    plan.collectives.push_back(collective);
    Task task;
    task.kind = TaskKind::collective;
    task.work = static_cast<std::int32_t>(i);
    (void)program.add_task(task, {});
  }
  plan.programs = {program};
  const Explanation explanation = explain(plan, nullptr);
  CHECK(explanation.count == dozen);
  CHECK(explanation.wire_bytes == Bytes(3 * dozen));
  for (const std::string& text :
       {explain_text(explanation), explain_markdown(explanation), explain_json(explanation)}) {
    check_names(text, "reason");
  }
}

TEST_CASE("a table of specs has every parameter and every rule in every format") {
  const Mesh mesh({{"x", 2}});
  SpecTable table;
  table.mesh = mesh;
  const Sharding split = to_sharding(parse_partition_spec("x", {}), 1, mesh, {});
  for (std::size_t i = 0; i < dozen; ++i) {
    // Sizes differ, so that no two are alike.
    const auto size = static_cast<std::int64_t>(2 * i + 2);
    table.parameters.push_back(describe(nth("parameter", i), {size}, 1, DType::f32, split, mesh));
    table.parameters.back().assigned_by = "a rule";
    table.rules.push_back({nth("rule", i), {}, 1, 1});
  }
  for (const Format format : for_people) {
    const std::string text = report_specs(table, Json::object(), format);
    for (const char* what : {"parameter", "rule"}) check_names(text, what);
  }
  check_names(report_specs(table, Json::object(), Format::csv), "parameter");
  const Json json = parse_json(report_specs(table, Json::object(), Format::json), "specs");
  CHECK(json["parameters"].size() == dozen);
}

// Work and collectives that only the second program has.
TEST_CASE("a difference of programs shows as many rows as it says") {
  HloDiff diff;
  for (std::size_t i = 0; i < dozen; ++i) {
    CollectiveChange change;
    change.after = {
        {{CollectiveKind::all_gather, Bytes(static_cast<std::int64_t>(4 + i)), "x", 2, DType::bf16},
         1}};
    change.reasons = {nth("reason", i)};
    diff.collectives.push_back(change);
    diff.opcodes.push_back({nth("opcode", i), 0, 1});
    diff.work.push_back({nth("operation", i), {}, {Flops(1), Bytes(1)}});
  }
  for (const std::string& text : {hlo_diff_text(diff), hlo_diff_markdown(diff)}) {
    for (const char* what : {"reason", "opcode", "operation"}) {
      check_names(text, what, default_row_limit);
    }
    CHECK(times(text, std::to_string(beyond) + " more") == 3);
  }
  const std::string csv = hlo_diff_csv(diff);
  for (const char* what : {"reason", "opcode", "operation"}) check_names(csv, what);
  const Json json = parse_json(hlo_diff_json(diff), "diff");
  CHECK(json["collectives"].size() == dozen);
}

}  // namespace
}  // namespace shardsim
