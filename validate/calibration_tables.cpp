#include "validate/calibration_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "experiments/measured_tables.hpp"

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
  const Profile profile = load_profile(*measurement.machine, {measurement.file, "/machine"});
  return names(profile, *of_class)
             ? ""
             : fmt::format("{} does not name {}", *measurement.machine, *of_class);
}

}  // namespace

CalibrationTables read_calibration_tables(const std::vector<std::string>& files,
                                          const std::optional<std::string>& of_class,
                                          const std::optional<std::string>& machine) {
  const std::optional<std::int64_t> devices_per_node =
      machine ? devices_of_host(*machine, {"command line", "/machine"}) : std::nullopt;
  CalibrationTables result;
  std::set<std::string> ids;
  std::set<std::pair<std::string, std::string>> said;
  for (const auto& [file, table] : load_measured_tables(files, devices_per_node)) {
    CollectiveMeasurement measurement = read_measurement(table, file, {});
    std::optional<std::string> given;
    if (!measurement.machine && machine) {
      given = machine;
      measurement.machine = machine;
    }
    const std::string why = why_left_out(measurement, of_class);
    if (!why.empty()) {
      result.left_out.push_back(fmt::format("{}: {}", file, why));
      continue;
    }
    if (!ids.insert(measurement.id).second) {
      throw InputError({file, "/id"},
                       fmt::format("\"{}\" is the id of another table, too", measurement.id));
    }
    result.tables.push_back(sample_table(experiment_of(measurement, given)));
    const auto notes = table.find("notes");
    if (notes == table.end() || !notes->is_array()) continue;
    for (const Json& note : *notes) {
      const auto text = note.get<std::string>();
      if (!said.insert({file, text}).second) continue;
      result.notes.push_back(fmt::format("{}: {}", measurement.id, text));
    }
  }
  if (!result.tables.empty()) return result;
  if (files.empty()) throw InputError({"command line", ""}, "no tables are given");
  const auto others = static_cast<std::int64_t>(result.left_out.size()) - 1;
  throw InputError({"command line", ""},
                   fmt::format("no table is left to calibrate with: {}{}", result.left_out.front(),
                               others > 0 ? fmt::format(", and {} more", others) : ""));
}

}  // namespace shardsim
