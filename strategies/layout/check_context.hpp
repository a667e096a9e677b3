// What a sequence that is split over devices asks of a model.
#pragma once

#include "base/error.hpp"
#include "strategies/layout/assign.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Throws InputError, at the strategy's key: a sequence whose parts are not all alike, heads that
// are no multiple of the devices that they are split over, a layer whose state goes along the
// sequence where nothing hands it on (StateMethod).
void check_context(const Workload& workload, const Layout& layout, const Place& strategy);

}  // namespace shardsim
