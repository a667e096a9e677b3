// What a copy between the memory of a device and that of its host takes, which is pinned.
//
//   time = latency + bytes * sharers / (bandwidth * efficiency)
//
// All devices run the same program and copy at the same time: those that share a link (two GPUs
// behind one PCIe switch) have their part of it. Of several programs (pipeline stages) it is so,
// too, although they may copy at different times.
//
// Example: 256 MiB of each of two GPUs of a DGX A100, behind one x16 slot of PCIe 4, 31.5 GB/s at
// an efficiency of 0.70: 24.3 ms, where one alone takes 12.2 ms.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

struct HostCopyCost {
  Seconds latency{0};
  Seconds transfer{0};
};

// Of `devices` on a host as many as share a link.
[[nodiscard]] std::int64_t sharers_of(const HostLinkProfile& link, std::int64_t devices);

// Of one of `devices` on a host, or on all. Throws InputError where the profile does not know the
// link.
[[nodiscard]] HostCopyCost host_copy_cost(const Profile& profile, std::int64_t devices,
                                          Bytes bytes);

// Work of each of `devices` on a host by the host's processors, that its memory bounds: bytes of
// them all over what its memory reaches. Throws InputError where the profile does not know it.
//
// Example: 12 GB of each of 8 devices of a DGX H100, 614 GB/s at an efficiency of 0.46: 340 ms.
[[nodiscard]] Seconds host_work_cost(const Profile& profile, std::int64_t devices, Bytes bytes);

}  // namespace shardsim
