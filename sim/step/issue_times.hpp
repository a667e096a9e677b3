// When a host issues the tasks of its devices: one after the other in the order of the program,
// each after what Plan::issued_by takes there (DeviceProfile::host_launch), a kernel of several
// launches as often. The host never waits for the device.
//
// Example: three kernels of one launch, 32 us each: 32, 64 and 96 us into the step.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// Of the tasks of all programs, in their order; empty where nothing is known of the host.
[[nodiscard]] std::vector<SimTime> issue_times(const Plan& plan, const DeviceProfile& device);

}  // namespace shardsim
