// Products that Megatron-Core has as one linear layer, each pass of which is one kernel: queries,
// keys and values (linear_qkv), both halves of a gated feed-forward layer (linear_fc1;
// registration.hpp says which they are).
//
//   forward            [m, k] x [k, n1 + n2 + ...]: the first product has the work of all
//   inputs' gradient   [m, n1 + n2 + ...] x [n1 + n2 + ..., k]: the last one has it, when all that
//                      it reads is there, and nothing is left to add up
//   weights' gradient  [n1 + n2 + ..., m] x [m, k]: the last one
//
// The others stay where they are and launch nothing: what is read and kept is as it was. Where what
// they make is copied (Megatron-Core on Transformer Engine), of queries, keys and values one copies
// what attention reads in a row, forward, and one puts the gradients side by side, backward.
#pragma once

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

void join_products(SpmdStep& step, const Workload& workload, bool copies);

}  // namespace shardsim
