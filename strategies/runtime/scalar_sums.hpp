// Scalars that a training step adds up over all devices that saw different data, each in an
// all-reduce of its own:
//
//   metrics       of each a sum and a count, once a step, as the FSDP tutorial does it
//                 (phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py at 0da8037). The count of
//                 a step of one microbatch is a Python number, whose sum over devices JAX computes
//                 while it traces; added up over microbatches it is an array
//   reduce_loss   the loss, which a JAX program returns as one number; in every microbatch where
//                 all gradients are reduced in every microbatch, as such a program does it
#pragma once

#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Appends an fp32 all-reduce over `data_axes` for each scalar to `pass`, after its reductions; they
// wait for the loss. Nothing when no axis splits the data.
void add_scalar_sums(SpmdBuilder& builder, const AxisList& data_axes, const Runtime& runtime,
                     const Step& step, BlockPass& pass);

}  // namespace shardsim
