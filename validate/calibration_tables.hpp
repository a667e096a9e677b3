// Measured tables, read for a calibration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/fit_calibration.hpp"

namespace shardsim {

struct CalibrationTables {
  std::vector<CalibrationTable> tables;
  std::vector<std::string> left_out;  // "FILE: why"
  std::vector<std::string> notes;     // "ID: NOTE", of those with a list of them
};

// Files are what load_measured_tables reads; where one names no machine it is `machine`. Left out
// are tables that are not marked healthy and, with `of_class`, those whose machine does not name
// that calibration. Throws InputError for a file that is no table, for tables of one id twice, and
// where none is left.
[[nodiscard]] CalibrationTables read_calibration_tables(
    const std::vector<std::string>& files, const std::optional<std::string>& of_class,
    const std::optional<std::string>& machine = std::nullopt);

}  // namespace shardsim
