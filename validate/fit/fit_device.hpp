// A profile's device from the kernels and copies of a sweep (kernel_terms.hpp).
#pragma once

#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/fitted_numbers.hpp"

namespace shardsim {

// Throws InputError for records that do not tell the rate of matmuls or the memory's bandwidth. Of
// classes and types that have none the profile's numbers stay.
void fit_device(const DeviceSweep& sweep, DeviceProfile& device, FittedNumbers& numbers);

}  // namespace shardsim
