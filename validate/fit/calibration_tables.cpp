#include "validate/fit/calibration_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "validate/fit/health_signs.hpp"

namespace shardsim {
namespace {

bool names(const Profile& profile, const std::string& calibration) {
  return std::any_of(profile.calibrations.begin(), profile.calibrations.end(),
                     [&](const Calibration& named) { return named.name == calibration; });
}

// Empty: nothing speaks against the table.
std::string why_left_out(const CollectiveMeasurement& measurement,
                         const std::optional<std::string>& of_class) {
  if (measurement.healthy != true) return "not marked healthy";
  if (!measurement.group.kind) return "does not say which collective";
  if (!measurement.group.ranks) return "does not say how many ranks";
  if (!measurement.machine) return "names no machine";
  if (!of_class) return {};
  const Profile profile = load_profile(machine_of(measurement), {measurement.file, "/machine"});
  return names(profile, *of_class)
             ? ""
             : fmt::format("{} does not name {}", *measurement.machine, *of_class);
}

// Writes down what the table shows; whether to calibrate with it.
bool keep_by_signs(const CollectiveExperiment& experiment, bool exclude_suspicious,
                   CalibrationTables& result) {
  const std::string& file = experiment.measured->file;
  std::vector<std::string> suspicious;
  std::vector<std::string> odd;
  SuspiciousTable remark{experiment.measured->id, ""};
  const std::vector<JudgedRow> rows = judged_rows(experiment);
  for (const Finding& finding : find_signs(rows)) {
    const std::string shows = describe(finding);
    auto& notes = is_of_table(finding.sign) ? suspicious : odd;
    notes.push_back(fmt::format("{}: {}", file, shows));
    if (is_of_table(finding.sign)) remark.shows += (remark.shows.empty() ? "" : "; ") + shows;
  }
  if (exclude_suspicious && !suspicious.empty()) {
    result.left_out.insert(result.left_out.end(), suspicious.begin(), suspicious.end());
    return false;
  }
  const std::string beyond = beyond_links(rows);
  if (!beyond.empty()) result.notes.push_back(fmt::format("{}: {}", file, beyond));
  if (!remark.shows.empty()) result.remarks.push_back(remark);
  result.suspicious.insert(result.suspicious.end(), suspicious.begin(), suspicious.end());
  result.odd.insert(result.odd.end(), odd.begin(), odd.end());
  return true;
}

// Of a table with a list of them; what the tables of one file have in common is said once.
void take_notes(const Json& table, const std::string& file, const std::string& id,
                CalibrationTables& result, std::set<std::pair<std::string, std::string>>& said) {
  const auto notes = table.find("notes");
  if (notes == table.end() || !notes->is_array()) return;
  for (const Json& note : *notes) {
    const auto text = note.get<std::string>();
    if (said.insert({file, text}).second) result.notes.push_back(fmt::format("{}: {}", id, text));
  }
}

}  // namespace

CalibrationTables read_calibration_tables(const std::vector<std::string>& files,
                                          const TableChoice& choice) {
  const std::optional<std::int64_t> devices_per_node =
      choice.machine ? devices_of_host(*choice.machine, {"command line", "/machine"})
                     : std::nullopt;
  return calibration_tables_of(load_measured_tables(files, devices_per_node), choice);
}

CalibrationTables calibration_tables_of(const std::vector<MeasuredTable>& tables,
                                        const TableChoice& choice) {
  CalibrationTables result;
  std::set<std::string> ids;
  std::set<std::pair<std::string, std::string>> said;
  for (const auto& [file, table] : tables) {
    CollectiveMeasurement measurement = read_measurement(table, file, {});
    std::optional<std::string> given;
    if (!measurement.machine && choice.machine) {
      given = choice.machine;
      measurement.machine = choice.machine;
    }
    const std::string why = why_left_out(measurement, choice.of_class);
    if (!why.empty()) {
      result.left_out.push_back(fmt::format("{}: {}", file, why));
      continue;
    }
    const CollectiveExperiment experiment = experiment_of(measurement, given);
    if (!keep_by_signs(experiment, choice.exclude_suspicious, result)) continue;
    if (!ids.insert(measurement.id).second) {
      throw InputError({file, "/id"},
                       fmt::format("\"{}\" is the id of another table, too", measurement.id));
    }
    result.tables.push_back(sample_table(experiment));
    take_notes(table, file, measurement.id, result, said);
  }
  if (!result.tables.empty()) return result;
  if (tables.empty()) throw InputError({"command line", ""}, "no tables are given");
  const auto others = static_cast<std::int64_t>(result.left_out.size()) - 1;
  throw InputError({"command line", ""},
                   fmt::format("no table is left to calibrate with: {}{}", result.left_out.front(),
                               others > 0 ? fmt::format(", and {} more", others) : ""));
}

}  // namespace shardsim
