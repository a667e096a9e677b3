// Values that blocks hand on to blocks.
#pragma once

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// A value that enters a block and in which a parameter has a part is read there or handed on, and
// so it is where it is handed to: in the end somebody reads it. Else nobody would have a gradient
// for it. Throws std::logic_error, for it is no user's mistake: "layers.{} is handed "keys", which
// nothing in it reads and which it does not hand on".
void check_carried(const Workload& workload);

}  // namespace shardsim
