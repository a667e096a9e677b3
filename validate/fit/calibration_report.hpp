// What a calibration says, as tables for people: `calibrate` prints them as text,
// docs/calibration-parameters.md holds them as Markdown.
#pragma once

#include "base/text.hpp"
#include "hardware_profiles/calibration.hpp"

namespace shardsim {

// A curve a row, with its residuals.
[[nodiscard]] TextTable curves_table(const Calibration& calibration);

// Its factors at 64 KiB, 1 MiB, ... 4 GiB, as "1.19 (1.10-1.30)".
[[nodiscard]] TextTable factors_table(const Calibration& calibration);
inline constexpr const char* about_factors =
    "Measured over modelled times, and where one more table lies 19 times in 20; with ~ the\n"
    "scatter of a single table, which says nothing of others";

[[nodiscard]] TextTable sizes_table(const std::vector<SizeErrors>& errors);
[[nodiscard]] TextTable held_out_table(const HeldOut& held_out);

}  // namespace shardsim
