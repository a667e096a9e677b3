// A profile's "device".
#pragma once

#include "base/json_reader.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

// Throws InputError with the place in the file.
[[nodiscard]] DeviceProfile read_device(const JsonReader& reader);

}  // namespace shardsim
