// Puts what the backward pass computes again in front of it.
//
//   kept      what the policy names, and always what enters the block; never what is said to be
//             made again (Tensor::remade), which without a policy is all that is not kept
//   needed    forward activations that backward ops read and that are not kept
//   repeated  the forward ops that make what is needed, and what those in turn need; nothing else:
//             under `full`, a decoder layer's last matmul and residual add are not repeated
//
// Only layers are touched: embedding, final norm and loss keep theirs.
#pragma once

#include <string>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Which forward activations the backward pass keeps; the others are computed again from what is
// kept, at the start of the block's backward pass; without a policy, where they are read.
struct Rematerialization {
  enum class Policy { none, full, selective, named };
  Policy policy = Policy::none;   // full: only what enters a repeated block is kept
                                  // selective: also the results of matmuls, attention and scans
  std::vector<std::string> save;  // named: regular expressions (search) on activation names
  friend bool operator==(const Rematerialization&, const Rematerialization&) = default;
};

// `workload` has its backward pass. Throws InputError: an expression that is none, matches no
// activation of a repeated block, or tells instances of one block apart.
void rematerialize(Workload& workload, const Rematerialization& options);

}  // namespace shardsim
