// What devices send each other for a mixture's experts: rows of tokens, and before them how many
// there will be (layout/expert_layout.hpp).
//
// Example, Megatron-Core, dp 8, tp 2, 8 experts over 4 devices, each split over tp; 2048 tokens a
// device of 4096 in bf16, two experts a token:
//   all-reduce of counts     8 experts x 8 bytes, over tp: of a sequence, for the auxiliary loss
//   all-gather of counts     8 experts x 8 devices x 8 bytes
//   all-to-all of rows       2048 x 2 x 4096 x 2 bytes = 32 MiB
//   all-to-all of weights    2048 x 2 x 2 bytes
//   all-gather of both       over tp
// and behind the experts a reduce-scatter over tp and an all-to-all of rows, back.
#pragma once

#include <vector>

#include "strategies/layout/expert_layout.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// Appends the calls of an op of Function::exchange to the pass: from `operands`, partial sums over
// the devices that an expert is split over or none, to `results`, which are made already.
void exchange_rows(SpmdBuilder& builder, const ExpertLayout& experts, const Op& op,
                   const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
                   BlockPass& pass);

}  // namespace shardsim
