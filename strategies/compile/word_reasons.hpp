// Says in words why each collective of a step is there and what would avoid it, and which
// parallelism it is part of: the last thing that is done to a step, from the facts that partitioner
// and runtime have left with it.
#pragma once

#include <string_view>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/partial_sums.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Fills reason, remedy and parallelism of every collective. `stages_axis`: of a pipeline, or empty.
[[nodiscard]] SpmdStep word_reasons(SpmdStep called, const Workload& workload, const Mesh& mesh,
                                    const Layout& layout, const PartialSums& sums,
                                    const Runtime& runtime, const Step& step,
                                    std::string_view stages_axis);

}  // namespace shardsim
