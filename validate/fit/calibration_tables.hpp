// Measured tables, read for a calibration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measurements/measured_tables.hpp"
#include "validate/fit/fit_calibration.hpp"

namespace shardsim {

struct CalibrationTables {
  std::vector<CalibrationTable> tables;
  std::vector<std::string> left_out;     // "FILE: why"
  std::vector<std::string> notes;        // "ID: NOTE", of those with a list of them
  std::vector<std::string> suspicious;   // "FILE: what it shows", of tables that are not left out
  std::vector<std::string> odd;          // the same of single rows
  std::vector<SuspiciousTable> remarks;  // `suspicious`, by id, for the calibration's file
};

struct TableChoice {
  std::optional<std::string> of_class = {};  // a calibration that the machine must name
  std::optional<std::string> machine = {};   // of tables that name none
  bool exclude_suspicious = false;           // health_signs.hpp
};

// Files are what load_measured_tables reads. Left out are tables that are not marked healthy and
// those that `choice` excludes. Throws InputError for a file that is no table, for tables of one id
// twice, and where none is left.
[[nodiscard]] CalibrationTables read_calibration_tables(const std::vector<std::string>& files,
                                                        const TableChoice& choice = {});
// Of tables that have been read.
[[nodiscard]] CalibrationTables calibration_tables_of(const std::vector<MeasuredTable>& tables,
                                                      const TableChoice& choice);

}  // namespace shardsim
