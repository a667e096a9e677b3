// Memory of rows that go to experts unevenly: kernels and calls are those of each layer's busiest
// device, which is another from layer to layer, buffers those of the device that gets most of all
// layers together (layout/expert_shares.hpp).
#pragma once

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Takes as much of each value's bytes as Label::held says. Once kernels and calls have their own.
void hold_rows(const Workload& workload, SpmdStep& step);

}  // namespace shardsim
