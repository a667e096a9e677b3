// Rows on their way to experts and back that variables of the module hold until it has made its
// result, though nothing reads them any more: those that leave, and those that have arrived, which
// are sorted once more where a device has several experts.
//
//   rows | all-to-all | arrived | sorted | experts | back | combined
//   `-- held -------------------------------------------------^
//
// What is computed again holds them as well; gradients are autograd's, which lets them go.
// Source: megatron/core/transformer/moe/moe_layer.py (0.16.1), custom_forward: hidden_states and
// dispatched_input.
#pragma once

#include "strategies/partition/spmd.hpp"

namespace shardsim {

void hold_rows_in_scope(SpmdStep& step);

}  // namespace shardsim
