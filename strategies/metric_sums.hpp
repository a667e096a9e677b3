// Metrics of a training step: of each a sum and a count, fp32 scalars, are added up over all
// devices that saw different data, once a step, as the FSDP tutorial does it
// (phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py at 0da8037).
#pragma once

#include "strategies/spmd_builder.hpp"

namespace shardsim {

// Appends one all-reduce over `data_axes` for each scalar to `pass`, after its last reductions;
// they wait for `loss`. Nothing when no axis splits the data.
void add_metric_sums(SpmdBuilder& builder, const AxisList& data_axes, ValueId loss,
                     BlockPass& pass);

}  // namespace shardsim
