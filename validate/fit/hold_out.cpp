#include "validate/fit/hold_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/error.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

// The machine's calibrations with this one for that of its name; alone where it names none such.
std::vector<Calibration> calibrations_with(const Calibration& calibration,
                                           const CalibrationTable& table) {
  std::vector<Calibration> calibrations = table.named;
  const auto replaced =
      std::find_if(calibrations.begin(), calibrations.end(),
                   [&](const Calibration& named) { return named.name == calibration.name; });
  if (replaced == calibrations.end()) return {calibration};
  *replaced = calibration;
  return calibrations;
}

// The others' rows are corrected by another calibration, which knows them.
bool is_of_regions(const Calibration& calibration, const CalibrationTable& table) {
  const auto& regions = calibration.regions;
  return std::any_of(
      table.samples.begin(), table.samples.end(), [&](const CalibrationSample& sample) {
        return std::find(regions.begin(), regions.end(), sample.key.region) != regions.end();
      });
}

class Tally {
 public:
  void add(const Calibration& calibration, const CalibrationTable& table) {
    std::vector<double> errors;
    for (const auto& [bytes, error] : errors_with(calibration, table)) {
      errors.push_back(error);
      by_range_[range_of(bytes)].push_back(error);
    }
    const ErrorSummary summary = summarize(errors);
    result_.tables.push_back(
        {table.id, static_cast<std::int64_t>(summary.rows), summary.median, summary.percentile_90});
  }

  HeldOut result() {
    result_.by_size = summarize(by_range_);
    return result_;
  }

 private:
  ErrorsByRange by_range_;
  HeldOut result_;
};

// Of a table's sizes.
std::map<Bytes, Seconds> times_with(const Calibration& calibration, const CalibrationTable& table) {
  assert(table.experiment);
  CollectiveExperiment experiment = *table.experiment;
  experiment.calibrations = calibrations_with(calibration, table);
  std::map<Bytes, Seconds> times;
  for (const CollectivePoint& point : predict_collective(experiment).points) {
    times[point.bytes] = point.cost.total();
  }
  return times;
}

}  // namespace

std::map<Bytes, double> errors_with(const Calibration& calibration, const CalibrationTable& table) {
  assert(table.experiment);
  CollectiveExperiment experiment = *table.experiment;
  experiment.calibrations = calibrations_with(calibration, table);
  return errors_of(experiment);
}

void add_errors(Calibration& calibration, const std::vector<CalibrationTable>& tables) {
  std::map<std::string, std::map<Bytes, Seconds>> times;
  for (const CalibrationTable& table : tables) {
    if (is_of_regions(calibration, table)) times[table.id] = times_with(calibration, table);
  }
  add_errors(calibration, tables,
             [&](const CalibrationTable& table, const CalibrationSample& sample) {
               return times.at(table.id).at(sample.bytes);
             });
}

HeldOut hold_out_each(const Calibration& header, const std::vector<CalibrationTable>& tables) {
  Tally tally;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!is_of_regions(header, tables[i])) continue;
    std::vector<CalibrationTable> others = tables;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    tally.add(fit_calibration(header, others), tables[i]);
  }
  return tally.result();
}

HeldOut hold_out(const Calibration& header, const std::vector<std::string>& ids,
                 std::vector<CalibrationTable>& tables) {
  const Place place{"command line", "/holdout"};
  std::vector<CalibrationTable> out;
  for (const std::string& id : ids) {
    const auto found = std::find_if(tables.begin(), tables.end(),
                                    [&](const CalibrationTable& table) { return table.id == id; });
    if (found == tables.end() || !is_of_regions(header, *found)) {
      std::vector<std::string> known;
      for (const CalibrationTable& table : tables) {
        if (is_of_regions(header, table)) known.push_back(table.id);
      }
      throw InputError(place, fmt::format("no table of its regions has the id \"{}\"", id),
                       closest(id, known));
    }
    out.push_back(std::move(*found));
    tables.erase(found);
  }
  if (tables.empty()) throw InputError(place, "no table is left to calibrate with");
  const Calibration calibration = fit_calibration(header, tables);
  Tally tally;
  for (const CalibrationTable& table : out) tally.add(calibration, table);
  return tally.result();
}

}  // namespace shardsim
