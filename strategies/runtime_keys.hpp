// The keys of a strategy that say its runtime (runtime/runtime.hpp), but for buffers, offloading
// and experts.
#pragma once

#include "base/json_reader.hpp"
#include "strategies/runtime/runtime.hpp"

namespace shardsim {

void read_runtime_keys(const JsonReader& json, Runtime& runtime);
// Read again it is the same runtime.
[[nodiscard]] Json runtime_keys_to_json(const Runtime& runtime);

}  // namespace shardsim
