// The place of a key in the object at a place: "/strategy/pipeline" and "virtual_stages".
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace shardsim {

[[nodiscard]] inline Place place_of_key(const Place& place, std::string_view key) {
  return {place.file, place.pointer + "/" + std::string(key)};
}

}  // namespace shardsim
