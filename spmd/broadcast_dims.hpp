// Along which dimensions a per-device value is the same everywhere, because it was broadcast: tiles
// that differ only there hold the same, and need not be sent.
//
//   %1 = broadcast_in_dim %0, dims = [1] : (16) -> 64x16    dimension 0
//   %2 = tanh %1                                            dimension 0
//   %3 = transpose %2, dims = [1, 0]                        dimension 1
//   %4 = add %3, %argument                                  none
//
// Kept through elementwise ops, transposes, reshapes, slices and pads, as XLA's partitioner keeps
// it (openxla/xla xla/service/spmd/spmd_partitioner.cc, SpmdBuilder). O(rank) per op.
#pragma once

#include <map>

#include "spmd/tiling/tiling.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

class BroadcastDims {
 public:
  // To be told of every op with one result, in order.
  void note(const stablehlo::OpView& op);
  [[nodiscard]] const Dims& of(stablehlo::ValueId value) const;  // ascending

 private:
  std::map<stablehlo::ValueId, Dims> dims_;  // of those that have any
};

}  // namespace shardsim::spmd
