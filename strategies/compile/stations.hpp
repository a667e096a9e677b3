// Stations of a step on its way to a plan, as JSON to look at and to compare.
#pragma once

#include "base/json_reader.hpp"
#include "strategies/compile/passes.hpp"

namespace shardsim {

// Of each parameter, by name, how it lies; inputs, activations and outputs that are told where to
// lie; what axes are for.
[[nodiscard]] Json layout_station(const Compilation& compilation);
// "name [sharding]" of every tensor, by block.
[[nodiscard]] Json shardings_station(const Compilation& compilation);
// The passes over each block, item by item, with needs or the calls made of them.
[[nodiscard]] Json step_station(const Compilation& compilation);
// A list of actions per rank, as text (schedule_text.hpp).
[[nodiscard]] Json schedule_station(const Compilation& compilation);

}  // namespace shardsim
