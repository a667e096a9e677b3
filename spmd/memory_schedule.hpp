// In which order the kernels of a region run.
#pragma once

#include <vector>

#include "spmd/memory_kernels.hpp"

namespace shardsim::spmd {

// dependencies[k]: the kernels that must run before kernel k.
[[nodiscard]] std::vector<std::vector<int>> dependencies_of(const KernelGraph& graph,
                                                            stablehlo::RegionId region);

[[nodiscard]] std::vector<int> deepest_first(const std::vector<std::vector<int>>& dependencies,
                                             int policy);
[[nodiscard]] std::vector<int> list_order(const KernelGraph& graph, stablehlo::RegionId region,
                                          const std::vector<std::vector<int>>& dependencies,
                                          bool loops_first = false);

[[nodiscard]] std::vector<int> hybrid_order(const KernelGraph& graph, stablehlo::RegionId region,
                                            const std::vector<std::vector<int>>& dependencies,
                                            const std::vector<int>& base, bool eager_dots,
                                            const std::vector<bool>& is_dot,
                                            const std::vector<bool>& is_reduce);
}  // namespace shardsim::spmd
