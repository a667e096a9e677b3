// What is left out of sequences that are split over devices.
#pragma once

#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Is there an attention that looks at a part of a split sequence alone?
[[nodiscard]] bool has_windows(const Workload& workload);

// Windows, of which a ring sends all keys. Nothing where no ring splits the sequence.
[[nodiscard]] std::vector<std::string> context_warnings(const Workload& workload,
                                                        const Layout& layout);

}  // namespace shardsim
