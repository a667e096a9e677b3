// Where a number of a schedule was said: "/strategy/pipeline" and "virtual_stages".
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace shardsim {

[[nodiscard]] Place place_of_key(const Place& place, std::string_view key);

}  // namespace shardsim
