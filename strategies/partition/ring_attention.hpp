// Attention over a sequence that is split, part by part: of n parts n kernels, the first with the
// device's own. While one computes, the next part is on its way, or while the first does, all are.
//
//   forward    n - 1 messages of keys and values, or one gather of both; n - 1 merges of partial
//              results in fp32
//   backward   the same of keys and values, and n messages of their gradients, which come home
//
// Each kernel does 1/n of the work: under a causal mask with parts dealt out as pairs from both
// ends (Megatron-Core's balanced order) that is exact.
#pragma once

#include <vector>

#include "strategies/layout/context_layout.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

struct RingAttention {
  const Op& op;
  AxisList axes;               // over which the sequence is split
  ContextLayout context;       // parts in order are planned as the last device, that has most to do
  std::vector<ValueId> reads;  // of the kernels, but for keys and values
  std::vector<ValueId> keys;   // the device's own keys and values
  std::vector<ValueId> results;  // made by the last kernel; backward those of keys and values last
  Kernel whole;                  // all that is computed, with `reads`, one part and `results`
};

// The label that an attention's keys have for their tokens.
[[nodiscard]] LabelId key_tokens(const Workload& workload, const Op& op);

// Answers what others read of the results. PyTorch's merge of parts from both ends leaves them by
// heads: what comes behind reads a copy by tokens, and both are kept.
std::vector<ValueId> add_ring_attention(SpmdBuilder& builder, const RingAttention& ring,
                                        BlockPass& pass);

}  // namespace shardsim
