// Attention over a sequence that is split, its keys and values going round the devices that have
// the parts: of n parts n kernels, the first with the device's own. While one computes, the next
// part is on its way.
//
//   forward    n - 1 messages of keys and values; n - 1 merges of partial results in fp32
//   backward   n - 1 messages of keys and values, n of their gradients, which come home
//
// Each kernel does 1/n of the work: under a causal mask with parts dealt out as pairs from both
// ends (Megatron-Core's balanced order) that is exact.
#pragma once

#include <vector>

#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

struct RingAttention {
  const Op& op;
  AxisList axes;         // over which the sequence is split
  bool balanced = true;  // false: parts in order, planned as the last device, that has most to do
  std::vector<ValueId> reads;    // of the kernels, but for keys and values
  std::vector<ValueId> keys;     // the device's own keys and values
  std::vector<ValueId> results;  // made by the last kernel; backward those of keys and values last
  Kernel whole;                  // all that is computed, with `reads`, one part and `results`
};

void add_ring_attention(SpmdBuilder& builder, const RingAttention& ring, BlockPass& pass);

}  // namespace shardsim
