// What a copy between the memory of a device and that of its host takes, which is pinned.
//
//   time = latency + bytes * sharers / (bandwidth * efficiency)
//
// All devices run the same program and copy at the same time: those that share a link (two GPUs
// behind one PCIe switch) have their part of it. Of several programs (pipeline stages) it is so,
// too, although they may copy at different times.
//
// Example: 256 MiB of each of two GPUs behind one x16 slot of PCIe 4, 31.5 GB/s, efficiency 0.87:
// 19.6 ms, where one alone takes 9.8 ms.
#pragma once

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

struct HostCopyCost {
  Seconds latency{0};
  Seconds transfer{0};
};

// Throws InputError where the profile does not know the link.
[[nodiscard]] HostCopyCost host_copy_cost(const Machine& machine, Bytes bytes);

}  // namespace shardsim
