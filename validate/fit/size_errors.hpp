// Errors of predicted times, by size: ranges by factors of 16 from 64 KiB on, below which launches
// are measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/collective_experiment.hpp"
#include "hardware_profiles/calibration.hpp"

namespace shardsim {

// From this size on errors are told.
inline constexpr Bytes smallest_judged{64 * KiB};

// Where its range begins: 1 MiB for 15 MiB. `bytes` is at least 64 KiB.
[[nodiscard]] Bytes range_of(Bytes bytes);
// "1.0 MiB to 16.0 MiB"
[[nodiscard]] std::string range_text(Bytes from);

// Absolute relative errors, by where the ranges begin.
using ErrorsByRange = std::map<Bytes, std::vector<double>>;

// Rounded to 1 in 10,000. Ranges without rows are left out.
[[nodiscard]] std::vector<SizeErrors> summarize(const ErrorsByRange& errors);
[[nodiscard]] ErrorSummary summarize(const std::vector<double>& errors);

// Of what a table measured from 64 KiB on, by size.
[[nodiscard]] std::map<Bytes, double> errors_of(const CollectiveExperiment& experiment);

}  // namespace shardsim
