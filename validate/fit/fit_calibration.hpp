// Calibrations (hardware_profiles/calibration.hpp) from measured tables.
//
// Every row of a table is a sample: its measured time over what the model says uncalibrated. For
// each curve, at each power of two, the factor is the median over tables of what each says there:
// the geometric mean of its samples within 3/4 of an octave. Nothing else is fitted: no row or
// table has a parameter of its own, and one odd table among three changes nothing.
//
// Example: three tables say 1.2, 1.25 and 4 at 2 MiB: 1.25.
//
// What remains is told by what is predicted with the calibration, as whoever uses it sees it: no
// curve holds where links would carry more than their bandwidth or larger sizes take less time
// (sim/collectives/calibrated_cost.hpp).
//
// How sure a point is: factor_interval.hpp. The order of rows and tables changes nothing, bit for
// bit, nor does the unit of time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/collective_experiment.hpp"
#include "hardware_profiles/calibration.hpp"

namespace shardsim {

// One row of a table.
struct CalibrationSample {
  CurveKey key;
  Bytes bytes{0};
  Seconds modelled{0};
  Seconds measured{0};
};

struct CalibrationTable {
  std::string id;
  std::string source;
  std::vector<CalibrationSample> samples;
  std::int64_t members_per_node = 0;                    // 0: not known, or not the same
  std::optional<CollectiveExperiment> experiment = {};  // to predict it with other calibrations
  std::vector<Calibration> named = {};                  // that its machine names
};

// Of a measured table: predicted without calibration. Throws InputError for a group that the
// machine cannot have.
[[nodiscard]] CalibrationTable sample_table(const CollectiveExperiment& experiment);

// `header` with curves for its regions, in order of their keys, and with the sources of the tables
// that they came from; without errors. Tables in order of their ids.
[[nodiscard]] Calibration fit_calibration(const Calibration& header,
                                          const std::vector<CalibrationTable>& tables);

// What the calibration makes of a row of a table that it was fitted to.
using PredictedTime =
    std::function<Seconds(const CalibrationTable& table, const CalibrationSample& sample)>;
// Gives the calibration and its curves the errors that remain, from 64 KiB on.
void add_errors(Calibration& calibration, const std::vector<CalibrationTable>& tables,
                const PredictedTime& predicted);

}  // namespace shardsim
