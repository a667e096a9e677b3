// What a stack's kernels leave in memory of what the ops of a block make.
//
//   fused gates      what one kernel makes and reads again is in no memory: the activation of a
//                    gated MLP, which backward computes anew of the gate
//   "qkv" in fused   queries, keys and values are one product's result, of which the values stay
//                    with attention: all of it does
//   "router" in fused    a router casts what it reads to fp32 within its product
//   "fused" loss      as "parallel", in one call less and with a second copy in fp32
//   "parallel" loss  logits in fp32 become probabilities, and these the gradient, in place
//   "compiled" loss  logits are kept in their own type, and nothing is there in fp32 (Inductor: a
//                    row's maximum and sum of exponentials are kept, which are left out here)
//   unfused          attention keeps its probabilities in place of their logarithmic sums
#pragma once

#include "strategies/compile/kernel_lists.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

// `step` as list_kernels left it.
void place_results(SpmdStep& step, const KernelChoice& choice);

// DTensor's loss over a split vocabulary: its gradient is made op by op, and ones at the targets
// are there besides the exponentials, their sum and the logarithms: one tensor of logits more than
// where the vocabulary is whole (torch/distributed/tensor/parallel/loss.py,
// _nll_loss_and_log_softmax_backward). Nothing where no vocabulary is split.
void spread_split_loss(SpmdStep& step);

// Logits of all microbatches stay until the step ends, as they come of the head.
void keep_outputs(SpmdStep& step);

// DTensor's gradient of a table of embeddings of which a device has a part: rows of all of it, of
// which the part is copied then (torch/distributed/tensor/_ops/_embedding_ops.py: of a gradient
// that is whole the operator makes what it is told the number of rows of).
void make_whole_tables(SpmdStep& step);

}  // namespace shardsim
