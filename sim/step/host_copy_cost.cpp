#include "sim/step/host_copy_cost.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace shardsim {

std::int64_t sharers_of(const HostLinkProfile& link, std::int64_t devices) {
  return link.devices ? std::min(link.devices->value, devices) : 1;
}

HostCopyCost host_copy_cost(const Profile& profile, std::int64_t devices, Bytes bytes) {
  const std::optional<HostLinkProfile>& link = profile.device.host_link;
  if (!link) {
    throw InputError({"", "machine " + profile.name},
                     "the step copies to or from the host, and the profile does not say how fast: "
                     "give it a device.host_link");
  }
  const auto sharers = static_cast<double>(sharers_of(*link, devices));
  const double rate = link->bandwidth.value.count() * link->efficiency.value;
  return {link->latency.value, Seconds(static_cast<double>(bytes.count()) * sharers / rate)};
}

Seconds host_work_cost(const Profile& profile, std::int64_t devices, Bytes bytes) {
  const std::optional<HostMemoryProfile>& memory = profile.device.host_memory;
  if (!memory) {
    throw InputError({"", "machine " + profile.name},
                     "the optimizer runs on the host, and the profile does not say how fast its "
                     "memory is: give it a device.host_memory");
  }
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  const std::int64_t on_a_host = cluster != nullptr ? devices_per_host(*cluster) : devices;
  const std::int64_t sharers = std::min(devices, on_a_host);
  const double rate = memory->bandwidth.value.count() * memory->efficiency.value;
  return Seconds(static_cast<double>(bytes.count() * sharers) / rate);
}

}  // namespace shardsim
