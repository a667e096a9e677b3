// The values of a parameter: as it is stored and, where these differ, as ops and as look-ups read
// it.
//
//   fsdp   q_proj.weight       stored [fsdp, -] fp32    computed [-, -] bf16    no look-ups
//   fsdp   embed_tokens, tied, "gather_embedding": false
//                              stored [fsdp, -]         computed [-, -]         looked up as stored
#pragma once

#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// Adds the values of all to the builder's step; one where they are the same. A parameter that
// nothing but look-ups reads has no computed value of its own, one that no op reads is as it is
// stored.
void add_parameters(SpmdBuilder& builder, const Layout& layout);

// Of every tensor: does an op of a forward pass read it?
[[nodiscard]] std::vector<bool> read_by_ops(const Workload& workload);

}  // namespace shardsim
