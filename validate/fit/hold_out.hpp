// What calibrations are worth where nobody has measured: tables are left out, the calibration is
// made without them, and they are predicted with it.
//
// Example: of tables a, b and c, --holdout a,b fits c alone and predicts a and b; --holdout all
// fits b and c and predicts a, then a and c for b, then a and b for c.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/fit/calibration_tables.hpp"

namespace shardsim {

// Of the table from 64 KiB on, by size, predicted with `calibration` in place of that of its name
// among those of the machine; alone where there is none.
[[nodiscard]] std::map<Bytes, double> errors_with(const Calibration& calibration,
                                                  const CalibrationTable& table);

// The errors that remain of the tables that the calibration was made of, as `collective --against`
// each of them shows. Their curves are fitted already.
void add_errors(Calibration& calibration, const std::vector<CalibrationTable>& tables);

// Each table is predicted without itself, of those that lie in the header's regions.
[[nodiscard]] HeldOut hold_out_each(const Calibration& header,
                                    const std::vector<CalibrationTable>& tables);

// Takes the tables of these ids out of `tables`, and predicts them with what is made of the others.
// Throws InputError, with a suggestion, for an id that no table in the header's regions has, and
// where no table is left.
[[nodiscard]] HeldOut hold_out(const Calibration& header, const std::vector<std::string>& ids,
                               std::vector<CalibrationTable>& tables);

}  // namespace shardsim
