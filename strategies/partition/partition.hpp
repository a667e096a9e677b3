// The partitioner: from an op graph and a sharding for every tensor to what one device does.
//
// For each op, in program order:
//   1. its factors are split (factors.hpp) and its operands brought to what that asks for;
//   2. the small tensors of its Statistics are reduced where their factors are split;
//   3. it runs on its shard;
//   4. its results are brought to the sharding that propagation gave them: partial sums are
//      reduced here, unless a linear reader carries them on (partial_sums.hpp).
// Parameters are gathered before and their gradients reduced after, unit by unit
// (parameter_gathers.hpp, gradient_reductions.hpp). Every collective says why it is there.
#pragma once

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

[[nodiscard]] SpmdStep partition(const Workload& workload, const Mesh& mesh, const Layout& layout,
                                 const Strategy& strategy, const OptimizerOptions& optimizer);

}  // namespace shardsim
