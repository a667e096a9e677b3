// Parameters on their way to the ops and gradients on their way home, unit by unit.
//
// A unit is what FSDP2 wraps: every repeated block is one, everything outside them is the root.
//   gather unit, forward    all-gather of the unit's shards, in one call; in the compute dtype or,
//                           as the FSDP tutorial does it, as they are stored, cast afterwards
//   gather unit, backward   again, unless the strategy keeps what it gathered; or from slices that
//                           forward kept over part of the shard axis (FSDP2's number)
//   reduce unit             gradients in one call per kind and axes, in the gradient dtype; with
//                           microbatches in each of them or, the sum of all, after the last
// With the grain of tensors there is one call per tensor, at its own first use (XLA's way).
// A table that look-ups read in its shards is gathered only where other ops read it as well.
// Gradients that an op makes in a wider type than it computes with (norms in fp32) are reduced in
// that type and cast afterwards.
#pragma once

#include <map>
#include <vector>

#include "strategies/compile/parameter_reasons.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

class ParameterGathers {
 public:
  ParameterGathers(SpmdBuilder& builder, const Layout& layout, const Gathers& runtime,
                   const OptimizerOptions& optimizer, const ParameterReasons& reasons);

  [[nodiscard]] const ParameterLayout& layout_of(TensorId parameter) const {
    return *by_tensor_.at(parameter);
  }
  [[nodiscard]] ValueId stored(TensorId parameter) const { return stored_.at(parameter); }

  // Fills pass.gathers (and pass.held) for the parameters that `block` needs in this pass.
  void gather(std::size_t block, Phase phase, BlockPass& pass);
  // To be called at the end of a block's forward pass: keeps its slices, where the strategy asks.
  void keep_slices(std::size_t block, BlockPass& pass);
  // The value that `op` reads: gathered, or stored where the two are the same.
  [[nodiscard]] ValueId readable(const Op& op, TensorId parameter) const;

 private:
  // A parameter on its way from a value to another.
  struct Gathered {
    TensorId parameter = no_tensor;
    ValueId from = no_value;
    ValueId to = no_value;
  };

  [[nodiscard]] std::vector<TensorId> read_in(std::size_t block, Phase phase) const;
  [[nodiscard]] std::vector<TensorId> unit_parameters(std::size_t block) const;
  // The type in which look-ups read a table.
  [[nodiscard]] DType look_up_type(TensorId parameter) const;
  // Does `op` look up in a table that it sees otherwise than other ops do?
  [[nodiscard]] bool looks_up(const Op& op, TensorId parameter) const;
  [[nodiscard]] bool is_read_whole(TensorId parameter) const;
  [[nodiscard]] Gathered whole(TensorId parameter, Phase phase) const;
  void gather_tables(std::size_t block, std::vector<Item>& items);
  [[nodiscard]] bool keeps_gathered(std::size_t block) const;
  void gather_together(const std::vector<Gathered>& wanted, const std::string& unit, Phase phase,
                       std::vector<Item>& items);
  void fulfil(const std::vector<ValueId>& promised, const std::vector<ValueId>& arrived,
              const std::string& unit, std::vector<Item>& items);

  SpmdBuilder& builder_;
  const Gathers& runtime_;
  const ParameterReasons& reasons_;
  std::map<TensorId, const ParameterLayout*> by_tensor_;
  std::map<TensorId, ValueId> stored_;
  std::map<TensorId, ValueId> gathered_;   // only those that differ from stored
  std::map<TensorId, ValueId> slices_;     // kept between forward and backward
  std::map<TensorId, ValueId> looked_up_;  // as look-ups read tables, where other ops do not
};

}  // namespace shardsim
