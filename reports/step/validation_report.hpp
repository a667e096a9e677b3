// A step, predicted beside measured, as text, JSON (shardsim/validation/1), CSV, Markdown and as a
// page with a plot.
//
//   { "schema": "shardsim/validation/1", "shardsim": version, "experiment": {...as resolved},
//     "machine": name, "backend": {"name", "library", "processes", "hosts": [s...]},
//     "repeats": n, "precision": n, "settled": b,
//     "tasks": [{"program", "name", "kind", "axes": [s...], "group_size", "payload_bytes",
//                "predicted_s", "measured_s", "measured_low_s", "measured_high_s",
//                "relative_error": n or null, "library_estimate_s": n where it says one}...],
//     "communication": {"predicted_s", "measured_s", "relative_error", "tasks",
//                       "median_absolute_relative_error", "percentile_90_absolute_relative_error"},
//     "compute": {...the same},
//     "step": {"predicted_s", "measured_s", "measured_low_s", "measured_high_s",
//              "relative_error"},
//     "memory": [{"program", "rank", "peak": {"predicted_bytes", "measured_bytes",
//                 "relative_error"}, "by_category": {"parameters": {...the same}, ...},
//                 "measured_shared_bytes", "measured_reserved_bytes"}...],
//     "median_relative_error": n,
//     "notes": [s...] }
//
// Errors are predicted over measured, less 1; "median_relative_error" is the median of the absolute
// errors of all tasks. Low and high are the 10th and 90th percentile over repeats. "precision" is
// half the 95 % interval of the measured step over its median. "memory" is of every program
// (ValidatedMemory), empty where it was not measured. CSV has a row for every task, then, of the
// kind "memory", one for every category, the shared granules, the peak and what was reserved.
#pragma once

#include <string>

#include "experiments/step_validation.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] std::string report_validation(const StepValidation& validation, Format format,
                                            std::size_t width = default_text_width);

}  // namespace shardsim
