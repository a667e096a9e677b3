// The pass of the optimizer over a block: one fused kernel updates all its parameters; each device
// updates the shards whose state it holds, and what others need is gathered.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/gradient_reductions.hpp"
#include "strategies/runtime/shared_gradients.hpp"

namespace shardsim {

class OptimizerPass {
 public:
  OptimizerPass(SpmdBuilder& builder, const Units& units, const Layout& layout,
                const GradientReductions& gradients, const SharedGradients& shared, bool donates,
                const Runtime& runtime, bool clips);

  // Nothing where the block owns no parameter. Of a flat optimizer what stages share alone: its
  // update is of buckets, not of blocks.
  void add(std::size_t block);

 private:
  // Of shards of units: parameters, gradients and states (host_shards.hpp).
  [[nodiscard]] bool is_on_host() const {
    return runtime_.parameters_on_host && !runtime_.flat_parameters;
  }
  // Where the new state goes: the place of the old one or, if that is not donated, one of its own,
  // which a program of jit has from its start.
  ValueId new_state(ValueId old);
  void require_flat_states(const Block& block) const;
  [[nodiscard]] TensorId parameter_of(const Op& op) const;
  // State, gradient or parameter as the optimizer's shard has it.
  void add_up_shared(const Block& block, std::vector<Item>& items);
  void clip(const Block& block, std::vector<ClippedGradient>& clipped) const;
  [[nodiscard]] std::vector<AxisList> sums_of(TensorId parameter, const AxisList& axes) const;
  ValueId read(TensorId tensor, const ParameterLayout& a, BlockPass& pass);
  // The parameter's, along the dimensions that the state has.
  [[nodiscard]] Sharding sharding_of_state(TensorId state, const ParameterLayout& a) const;
  void gather_updated(const std::string& unit, const std::vector<ValueId>& updated,
                      const std::vector<Sharding>& stored, const std::vector<ValueId>& homes,
                      BlockPass& pass);

  SpmdBuilder& builder_;
  const Units& units_;
  const Layout& layout_;
  std::map<TensorId, const ParameterLayout*> layouts_;
  const GradientReductions& gradients_;
  const SharedGradients& shared_;
  bool donates_;
  const Runtime& runtime_;
  bool clips_;
  std::map<TensorId, ValueId> added_up_;  // gradients that stages share, before they are clipped
};

}  // namespace shardsim
