// What is left out of sequences that are split over devices.
#pragma once

#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// One line for each: states of scans that devices would pass on to each other, and windows, of
// which a ring sends all keys. None where no axis splits the sequence.
[[nodiscard]] std::vector<std::string> context_warnings(const Workload& workload,
                                                        const Layout& layout, const Mesh& mesh);

}  // namespace shardsim
