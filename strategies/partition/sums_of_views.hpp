// Gradients that autograd adds up beside the first of them, not in its place: it does so in place
// where nobody else holds that one, and what backward makes as a view of another tensor holds that.
// A linear layer's gradients are such views: of its weights the transposed product, of its input
// the product with the rows seen as batch and sequence again.
//
//   weights' gradient by the head       [vocabulary, hidden], transposed
//   + by the embedding                  a third table, for as long as they are added up
//
// Source: torch/csrc/autograd/input_buffer.cpp (2.15), accumulate and can_accumulate_inplace; a
// profile of the two on CPU tensors has aten::add there, and aten::add_ where the embedding's comes
// first.
#pragma once

#include "strategies/partition/spmd.hpp"

namespace shardsim {

void add_beside_views(const Workload& workload, SpmdStep& step);

}  // namespace shardsim
