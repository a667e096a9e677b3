// What is left out of sequences that are split over devices.
#pragma once

#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Windows, of which a ring sends all keys. Nothing where no ring splits the sequence.
[[nodiscard]] std::vector<std::string> context_warnings(const Workload& workload,
                                                        const Layout& layout);

}  // namespace shardsim
