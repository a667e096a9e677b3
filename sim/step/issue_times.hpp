// When a host issues the tasks of its devices: one after the other in the order of the program,
// each after what Plan::issued_by takes there (DeviceProfile::host_launch), a kernel of several
// launches as often. The host waits for the device where Plan::awaits_messages says so, what comes
// behind a receive being issued when it has ended, and for collectives that it awaits, as it needs
// to know how many rows experts get.
//
// Example: three kernels of one launch, 32 us each: 32, 64 and 96 us into the step. A receive, at
// 32 us, and two kernels: these 32 and 64 us behind its end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// Of the tasks of all programs, in their order; empty where nothing is known of the host.
struct IssueTimes {
  std::vector<SimTime> times;        // from the beginning of the step or the end of `behind`
  std::vector<std::int32_t> behind;  // task of all programs' or -1; empty: none is behind any
};

[[nodiscard]] IssueTimes issue_times(const Plan& plan, const DeviceProfile& device);

}  // namespace shardsim
