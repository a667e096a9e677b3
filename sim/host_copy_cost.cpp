#include "sim/host_copy_cost.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace shardsim {

HostCopyCost host_copy_cost(const Machine& machine, Bytes bytes) {
  const Profile& profile = machine.profile;
  const std::optional<HostLinkProfile>& link = profile.device.host_link;
  if (!link) {
    throw InputError({"", "machine " + profile.name},
                     "the step copies to or from the host, and the profile does not say how fast: "
                     "give it a device.host_link");
  }
  const std::int64_t sharers = link->devices ? std::min(link->devices->value, machine.devices) : 1;
  const double rate = link->bandwidth.value.count() * link->efficiency.value;
  const double through_link = static_cast<double>(bytes.count()) * static_cast<double>(sharers);
  return {link->latency.value, Seconds(through_link / rate)};
}

}  // namespace shardsim
