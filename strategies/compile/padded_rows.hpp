// Rows of experts whose products quantize them: Transformer Engine's products of 8 and 4 bits take
// numbers of rows that are multiples of 16 or 32, and what a router sends an expert is none. So all
// rows are copied to where each expert has some of zeros behind its own before its first product,
// and back behind its last; backward their gradients likewise.
//
//   copied   rows read and written, as wide as the model, once before and once behind
//   by whom  Megatron's TEGroupedMLP with Fp8Padding and Fp8Unpadding
//            (megatron/core/transformer/moe/experts.py, quantization_padding of Megatron-Core 0.16)
//   not by   HybridEP, whose own permutation pads ("pad_multiple", token_dispatcher.py)
//
// Example: 32,768 rows of 7,168 numbers in bf16: 470 MB read and written, 0.94 GB, before and
// behind, in both directions; on H100 forward 0.7 ms. Megatron's own measurements of a layer
// (tests/functional_tests/test_cases/common/moe_perf) have 0.35 ms more of fp8 than of bf16 by
// DeepEP and 0.25 ms less by HybridEP.
#pragma once

#include <vector>

#include "strategies/partition/spmd.hpp"

namespace shardsim {

// Of one pass over a block, behind its casts.
void pad_rows(BlockPass& pass, std::vector<Value>& values);

}  // namespace shardsim
