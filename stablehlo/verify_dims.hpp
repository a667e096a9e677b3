// Whether the dimensions and bounds that an op names are those of its tensors, each as the op's
// constraints in the StableHLO specification ask: used by verify().
//
// Example: slice %x [0:4:1, 2:9:1] of a tensor<4x8xf32> ends behind dimension 1.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

// Whether a result is as large as operands and attributes make it; of dimensions that an op names,
// whether they are there. Ops of other kinds pass. Throws InputError.
void verify_dims(const OpView& op);

// Each of `dims` once, and a dimension of a tensor of `rank`. Throws InputError with `name`.
void check_dims(const OpView& op, const std::vector<std::int64_t>& dims, std::size_t rank,
                std::string_view name);

}  // namespace shardsim::stablehlo
