// Calibrations by name, by path and in place, and a profile that has them.
//
//   "calibration": ["h100-nvswitch", "measured/our-network.json"]
#pragma once

#include <vector>

#include "hardware_profiles/calibration.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

// What "calibration" holds, in a list or a single one: calibrations in place, names of shipped
// ones, and paths, which end in .json, relative to the file that names them. Throws InputError.
[[nodiscard]] std::vector<Calibration> read_calibrations(const JsonReader& json);

// Puts these in place of the profile's own. Throws InputError where collectives are not corrected:
// on tori and networks.
void set_calibrations(Profile& profile, std::vector<Calibration> calibrations, const Place& place);

}  // namespace shardsim
