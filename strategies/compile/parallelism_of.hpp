// Which parallelism a collective is part of: by why it is there where that says it (rows of
// experts, keys of context), else by what its axes split.
//
//   parameters and gradients   data, though over axes that split the sequence as well; tensor where
//                              none of the axes splits the batch or the sequence
//   activations                over the axis of stages pipeline, over those of the sequence
//                              context, over those of the batch data, over all others tensor
#pragma once

#include <string_view>

#include "plan/mesh.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/partition/reason.hpp"

namespace shardsim {

// `stages_axis`: of a pipeline; empty: there is none.
[[nodiscard]] Parallelism parallelism_of(const Reason& reason, const AxisList& axes,
                                         const Mesh& mesh, const Layout& layout,
                                         std::string_view stages_axis);

}  // namespace shardsim
