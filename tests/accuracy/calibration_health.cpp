// Prints docs/calibration-health.md: what validate/fit/health_signs.hpp says of every table of
// tests/measurements/collectives, beside what those who measured say of its health.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "validate/fit/health_signs.hpp"

namespace shardsim {
namespace {

enum class Health : std::uint8_t { unhealthy, healthy, unknown };
constexpr int health_count = 3;

struct Table {
  CollectiveMeasurement measurement;
  Health health = Health::unknown;
  std::string unmodelled;  // why, if no model stands beside it
  std::vector<JudgedRow> rows;
  std::vector<Finding> findings;
};

Health health_of(const CollectiveMeasurement& measurement) {
  if (!measurement.healthy) return Health::unknown;
  return *measurement.healthy ? Health::healthy : Health::unhealthy;
}

std::vector<JudgedRow> rows_alone(const CollectiveMeasurement& measurement) {
  std::vector<JudgedRow> rows;
  for (const MeasuredRow& row : measurement.rows) {
    if (row.time) rows.push_back({row.bytes, *row.time});
  }
  return rows;
}

Table read_table(const std::string& file) {
  // Bus bandwidth is the same whatever the collective: that is what it is defined for.
  const MeasuredGroup otherwise{CollectiveKind::all_gather, std::nullopt, std::nullopt};
  Table table;
  table.measurement = read_measurement(load_json(file), file, otherwise);
  table.health = health_of(table.measurement);
  const bool says_kind = read_measurement(load_json(file), file, {}).group.kind.has_value();
  Json asked = {{"against", file}};
  if (!says_kind) asked["kind"] = "all-gather";
  try {
    if (!table.measurement.machine) throw InputError({file, ""}, "names no machine");
    table.rows = judged_rows(read_collective(asked, ""));
  } catch (const InputError& error) {
    table.unmodelled = table.measurement.machine ? "no such slice" : "names no machine";
    table.rows = rows_alone(table.measurement);
  }
  table.findings = find_signs(table.rows);
  return table;
}

// Around suspicious_factor, for what another one would have found.
constexpr std::array looked_at{1.25, 1.5, suspicious_factor, 3.0, 5.0};

std::vector<Table> read_tables() {
  std::set<std::string> files;
  const std::filesystem::path folder = SHARDSIM_SOURCE_DIR "/tests/measurements/collectives";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.insert(entry.path().string());
  }
  std::vector<Table> tables;
  for (const std::string& file : files) tables.push_back(read_table(file));
  return tables;
}

bool shows(const Table& table, Sign sign) {
  return std::any_of(table.findings.begin(), table.findings.end(),
                     [&](const Finding& finding) { return finding.sign == sign; });
}

bool is_suspicious(const Table& table) {
  return std::any_of(table.findings.begin(), table.findings.end(),
                     [](const Finding& finding) { return is_of_table(finding.sign); });
}

using Counts = std::array<int, health_count>;

Counts count(const std::vector<Table>& tables, const std::function<bool(const Table&)>& which) {
  Counts counts{};
  for (const Table& table : tables) {
    if (which(table)) ++counts.at(static_cast<std::size_t>(table.health));
  }
  return counts;
}

void add_counts(TextTable& text, const std::string& what, const Counts& counts) {
  text.add_row(
      {what, std::to_string(counts[0]), std::to_string(counts[1]), std::to_string(counts[2])});
}

TextTable table_of_counts(const char* first) {
  return TextTable({{first},
                    {"not healthy", TextTable::Align::right},
                    {"healthy", TextTable::Align::right},
                    {"not known", TextTable::Align::right}});
}

void print_signs(const std::vector<Table>& tables) {
  TextTable text = table_of_counts("tables");
  add_counts(text, "all", count(tables, [](const Table&) { return true; }));
  add_counts(text, "without a model beside them",
             count(tables, [](const Table& table) { return !table.unmodelled.empty(); }));
  add_counts(text, "**suspicious**", count(tables, is_suspicious));
  for (int i = 0; i < sign_count; ++i) {
    const auto sign = static_cast<Sign>(i);
    const std::string name = fmt::format("{}{}", name_of(sign), is_of_table(sign) ? "" : " (rows)");
    add_counts(text, name, count(tables, [&](const Table& table) { return shows(table, sign); }));
  }
  fmt::print("{}\n", text.markdown());
}

// The slow sign alone, were it told by another factor: the median of measured over modelled times
// of the sizes that are transfer. Nothing is chosen by it; it says what hangs on the choice.
void print_thresholds(const std::vector<Table>& tables) {
  TextTable text = table_of_counts("slow by at least");
  for (const double factor : looked_at) {
    add_counts(text, fmt::format("{}", factor), count(tables, [&](const Table& table) {
                 const auto median = plateau_factor(table.rows);
                 return median && *median >= factor;
               }));
  }
  fmt::print("{}\n", text.markdown());
}

void print_tables(const char* title, const std::vector<Table>& tables,
                  const std::function<bool(const Table&)>& which) {
  fmt::print("## {}\n\n", title);
  bool any = false;
  for (const Table& table : tables) {
    if (!which(table)) continue;
    any = true;
    std::string shown = table.unmodelled.empty() ? "" : "; " + table.unmodelled;
    for (const Finding& finding : table.findings) {
      if (is_of_table(finding.sign)) shown += "; " + describe(finding);
    }
    if (const auto factor = plateau_factor(table.rows); factor && !shows(table, Sign::slow)) {
      shown += fmt::format("; large sizes take {:.2f} times what their links carry", *factor);
    }
    const std::string& reason = table.measurement.healthy_reason;
    fmt::print("- {}{}. They say: \"{}\"\n", table.measurement.id, shown, reason);
  }
  fmt::print("{}\n", any ? "" : "None.\n");
}

void print_document(const std::vector<Table>& tables) {
  print_signs(tables);
  fmt::print("Were *slow* told by another factor:\n\n");
  print_thresholds(tables);
  const auto is = [](Health health, bool suspicious) {
    return [=](const Table& table) {
      return table.health == health && is_suspicious(table) == suspicious;
    };
  };
  print_tables("Not healthy, and shown", tables, is(Health::unhealthy, true));
  print_tables("Not healthy, and missed", tables, is(Health::unhealthy, false));
  print_tables("Healthy, and suspicious", tables, is(Health::healthy, true));
  print_tables("Not known, and suspicious", tables, is(Health::unknown, true));
  print_tables("Not known, and not suspicious", tables, is(Health::unknown, false));
}

constexpr const char* preface =
    R"(# Calibration: tables of machines that are not well

Written by `scripts/accuracy.sh`. Those who measured the tables of tests/measurements/collectives
marked them as healthy, not healthy or not known; `shardsim calibrate` looks at the figures alone,
beside the model without calibrations (validate/fit/health_signs.hpp). A table is suspicious that is
slow, sagging or too fast; what single rows show is no verdict: the last two lines of the first table
say why. Where a table does not say which collective it is of, its bus bandwidth is taken for that of
an all-gather, which it is defined to be the same as.

)";

}  // namespace
}  // namespace shardsim

int main() {
  fmt::print("{}", shardsim::preface);
  shardsim::print_document(shardsim::read_tables());
}
