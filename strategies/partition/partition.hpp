// The partitioner: from an op graph and a sharding for every tensor to what one device does.
//
// For each op, in program order:
//   1. its factors are split (factors.hpp) and its operands brought to what that asks for;
//   2. the small tensors of its Statistics are reduced where their factors are split;
//   3. it runs on its shard;
//   4. its results are brought to the sharding that propagation gave them: partial sums are
//      reduced here, unless a linear reader carries them on (partial_sums.hpp).
// What it needs of parameters (to read them as the layout has them computed with) and of gradients
// (that they get to where they are kept) it states: runtime/make_calls.hpp does it. Every
// collective knows why it is there.
#pragma once

#include "strategies/layout/assign.hpp"
#include "strategies/layout/tensor_shardings.hpp"
#include "strategies/partition/partial_sums.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

// Forward and backward passes of every block, without calls for parameters and gradients. What it
// answers points into `workload`.
[[nodiscard]] SpmdStep partition(const Workload& workload, const Mesh& mesh, const Layout& layout,
                                 const TensorShardings& shardings, const PartialSums& sums);

}  // namespace shardsim
