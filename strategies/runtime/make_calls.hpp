// From what a partitioned step needs to calls, as the runtime makes them: parameters gathered
// before they are read, gradients reduced after they are made, scalars summed, parameters updated.
//
//   part.forward.reads  {wq, wk, wv, wo, ...}   FSDP2: one all-gather of the unit; XLA: one each
//   part.backward.writes {wo, wv, ...}          FSDP2: one reduce-scatter after the unit's backward
#pragma once

#include <string>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/runtime/runtime.hpp"
#include "strategies/runtime/units.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Are gradients clipped? The step says so, or the runtime by itself.
[[nodiscard]] bool clips(const Runtime& runtime, const Step& step);

// `stages_axis`: of the mesh; empty: there is one stage. Of the step: its microbatches and metrics,
// the dtype of gradients, and whether the old state is donated.
[[nodiscard]] SpmdStep make_calls(SpmdStep partitioned, const Workload& workload, const Mesh& mesh,
                                  const Layout& layout, const Units& units,
                                  const std::string& stages_axis, const Runtime& runtime,
                                  const Step& step);

}  // namespace shardsim
