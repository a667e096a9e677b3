// Which axes of the mesh a strategy uses for what: what is said, else what their roles suggest;
// then what the recipe cannot do without.
#pragma once

#include "base/json_reader.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

// Fills batch_axes, sequence_axes, shard_axis and model_axis; name and flags are read already.
// Throws InputError: an unknown axis, one with two uses, one that a recipe needs and has not.
void read_strategy_axes(const JsonReader& json, const Mesh& mesh, const AxisRoles& given,
                        Strategy& options);

}  // namespace shardsim
