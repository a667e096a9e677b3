// A program as it is brought before propagation: one function, calls inlined, what nobody reads
// gone, equal constants one.
//
//   call @silu(%0)  ->  the ops of @silu in its place, values renamed
//
// The result holds @main only. Annotations by mhlo.sharding are rewritten over a mesh whose axes
// are recovered from the tiles.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// Throws InputError: no @main, functions that call themselves, shardings that no mesh explains.
[[nodiscard]] stablehlo::Module prepare(const stablehlo::Module& program);

}  // namespace shardsim::spmd
