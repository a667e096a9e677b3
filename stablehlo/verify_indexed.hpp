// Whether the numbers of a gather or a scatter fit its tensors (StableHLO specification, gather and
// scatter): used by verify().
#pragma once

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

// `op`: stablehlo.gather or stablehlo.scatter. Throws InputError.
void verify_indexed_access(const OpView& op);

}  // namespace shardsim::stablehlo
