// Shardy's propagation: from the shardings that a program gives to one for every value.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what prepare() made. Afterwards every tensor value has closed axes in
// Value::sharding. Throws InputError: axes that the mesh does not have, an axis used twice.
void propagate(stablehlo::Module& program);

}  // namespace shardsim::spmd
