// What looks wrong with a profile's numbers beside those of known hardware, and what was assumed.
//
//   cluster.scale_out.bandwidth is 200.0 GB/s; of the profiles with H100 SXM5 80 GB it is 12.5 GB/s
//   to 50.0 GB/s: was 200 Gb/s meant, which are 25.0 GB/s?
#pragma once

#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"

namespace shardsim {

// Numbers more than twice as large, or less than half as large, as any of the shipped profiles with
// the same device has, or of all of them, where the device is in none. No verdict: hardware to come
// is not known.
[[nodiscard]] std::vector<std::string> implausible_numbers(const Profile& profile);

// "assumed, given without a source: cluster.devices_per_node 4, ..."; empty where nothing is.
[[nodiscard]] std::string assumed_numbers(const Profile& profile);

}  // namespace shardsim
