// How many operands and results an op has, so that what works on it may take them for granted.
#pragma once

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

// Throws InputError where a known op has more or fewer than it takes; others may have any.
void check_operand_counts(const OpView& op);

}  // namespace shardsim::stablehlo
