// The pictures of tori and of networks written in place, for machine_picture.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "reports/machine/machine_picture.hpp"

namespace shardsim {

// Of a circle on which `count` things stand `distance` apart; at least `distance`.
[[nodiscard]] double circle_radius(std::int64_t count, double distance);

// Nothing for more than three dimensions.
[[nodiscard]] std::optional<MachinePicture> torus_picture(const TorusShape& torus);
[[nodiscard]] std::optional<MachinePicture> network_picture(const NetworkDescription& network,
                                                            std::int64_t devices,
                                                            const Place& place);

}  // namespace shardsim
