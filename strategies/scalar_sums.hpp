// Scalars that a training step adds up over all devices that saw different data, once a step, each
// in an all-reduce of its own:
//
//   metrics       of each a sum and a count, as the FSDP tutorial does it
//                 (phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py at 0da8037)
//   reduce_loss   the loss, which a JAX program returns as one number
#pragma once

#include "strategies/spmd_builder.hpp"

namespace shardsim {

// Appends an fp32 all-reduce over `data_axes` for each scalar to `pass`, after its last reductions;
// they wait for `loss`. Nothing when no axis splits the data.
void add_scalar_sums(SpmdBuilder& builder, const AxisList& data_axes, bool reduce_loss,
                     ValueId loss, BlockPass& pass);

}  // namespace shardsim
