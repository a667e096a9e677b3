// The shardings that a strategy gives inputs, constants and activations before anything is
// propagated.
#pragma once

#include "strategies/layout/assign.hpp"

namespace shardsim {

// Inputs and constants enter split over the batch and sequence axes, or as the rule system says:
// axes that then split an input are data axes as well. Throws InputError where the system refuses.
void pin_inputs(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                Layout& layout);
// Activations as the strategy's constraints say, and the residual stream under sequence
// parallelism. Throws InputError: a constraint that matches nothing, does not fit or tells
// instances of a repeated block apart.
void pin_activations(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                     Layout& layout);

}  // namespace shardsim
