// The values of a parameter: as it is stored and, where these differ, as ops and as look-ups read
// it.
//
//   fsdp   q_proj.weight       stored [fsdp, -] fp32    computed [-, -] bf16    no look-ups
//   fsdp   embed_tokens, tied, "gather_embedding": false
//                              stored [fsdp, -]         computed [-, -]         looked up as stored
#pragma once

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// Adds the values; one where they are the same. A parameter that nothing but look-ups reads has no
// computed value of its own.
[[nodiscard]] ParameterValues add_parameter(SpmdBuilder& builder, const ParameterLayout& layout,
                                            DType step_dtype);

}  // namespace shardsim
