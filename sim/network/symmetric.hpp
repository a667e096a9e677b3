// The folded traffic of algorithms that do the same from every device on networks that look the
// same from every device, without the network: rings, tori that wrap, full meshes, switches. Time
// and memory do not depend on the number of devices.
//
//   symmetric_traffic(ring, n, {n}, {n}, ring_all_reduce(n))    one stream, one class of links
//
// It has the time of fold(traffic_of(...)) to the femtosecond, whatever the payload, but perhaps
// other classes.
#pragma once

#include <optional>

#include "hardware_profiles/network/network_text.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {

// `shape`: that of the lanes. `dimensions`: those of a ring or torus that the group fills,
// row-major; groups of a torus that fill some of them all run at once. On other networks the group
// is all devices. Nothing where the symmetry is not whole: targets by rank, shapes that are not the
// dimensions, and shifts half round a ring, which go one way from some devices and the other way
// from others.
[[nodiscard]] std::optional<Traffic> symmetric_traffic(const NetworkDescription& network,
                                                       std::int64_t devices,
                                                       const Shape& dimensions, const Shape& shape,
                                                       const Lanes& lanes);

}  // namespace shardsim::network
