// One collective of a partitioned program as the plan tells it.
#pragma once

#include "plan/plan.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

[[nodiscard]] bool is_collective(const stablehlo::Op& op);
// Groups as axes of the mesh where they are a product of them. `positions` are the places in the
// mesh of the program's device numbers; empty: the numbers themselves. Throws InputError.
[[nodiscard]] Collective collective_of(const stablehlo::Module& module,
                                       const stablehlo::Function& function, const stablehlo::Op& op,
                                       const Mesh& mesh,
                                       const std::vector<std::int64_t>& positions);

}  // namespace shardsim::spmd
