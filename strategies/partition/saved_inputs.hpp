// Inputs of products that are kept as the device's own part and gathered again where the backward
// pass needs them whole (Megatron-Core's sequence parallelism).
//
//   forward    norm [dp, tp, -]  all-gather  [dp, -, -]  products read it, then it is gone
//   backward   the part of norm  all-gather  [dp, -, -]  before the product's two gradients
//
// PyTorch's tensor parallelism keeps what was gathered, and gathers once.
// Source: megatron/core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strategies/layout/tensor_shardings.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// What the backward passes of blocks read, and what that lies in.
[[nodiscard]] std::set<TensorId> kept_for_backward(const Workload& workload);

// Does its backward pass compute anything of its forward pass again?
[[nodiscard]] bool repeats_forward(const Block& block);

class SavedInputs {
 public:
  // `home`: the value that stands for each tensor, which this changes. Without `shards` nothing is
  // done; `whole`: what is kept as it was gathered.
  SavedInputs(SpmdBuilder& builder, const TensorShardings& shardings, std::vector<ValueId>& home,
              bool shards, std::set<TensorId> whole)
      : builder_(builder),
        shardings_(shardings),
        home_(home),
        shards_(shards),
        whole_(std::move(whole)) {}

  // Of an activation that backward reads: it was made as `made` and then brought home. If that was
  // a gather, the part is kept.
  void keep(TensorId id, ValueId made);
  // Before an op of the backward pass: gathers what it or the product that it belongs to reads.
  // What is computed again gathers its inputs for itself; its backward pass does so once more.
  void gather(const Op& op, const Block& block, BlockPass& pass);

 private:
  void gather_for_repeat(const Op& op, BlockPass& pass);
  void gather_once(TensorId tensor, const Op& op, BlockPass& pass);
  void bring_home(TensorId id, ValueId part, const Op& op, BlockPass& pass);
  // A forward activation that the backward pass makes again.
  [[nodiscard]] bool is_repeated(TensorId tensor) const;

  SpmdBuilder& builder_;
  const TensorShardings& shardings_;
  std::vector<ValueId>& home_;
  bool shards_;
  std::set<TensorId> whole_;
  std::map<TensorId, ValueId> parts_;  // of what backward has not gathered
  std::set<TensorId> gathered_for_repeat_;
};

}  // namespace shardsim
