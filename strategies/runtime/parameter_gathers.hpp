// Parameters on their way to the ops, unit by unit: the needs of passes (BlockPass::reads) as
// calls.
//
// A unit is what FSDP2 wraps (units.hpp).
//   gather unit, forward    all-gather of the unit's shards, in one call; in the compute dtype or,
//                           as the FSDP tutorial does it, as they are stored, cast afterwards
//   gather unit, backward   again, unless the strategy keeps what it gathered; or from slices that
//                           forward kept over part of the shard axis (FSDP2's number)
// With the grain of tensors there is one call per tensor, at its own first use (XLA's way).
// A table that look-ups read in its shards is gathered only where other ops read it as well.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/loss_chunks.hpp"
#include "strategies/runtime/runtime.hpp"
#include "strategies/runtime/units.hpp"

namespace shardsim {

class ParameterGathers {
 public:
  ParameterGathers(SpmdBuilder& builder, const Units& units, const Gathers& runtime,
                   const std::optional<ChunkedLoss>& chunked = std::nullopt)
      : builder_(builder), units_(units), runtime_(runtime), chunked_(chunked) {}

  // Fills pass.gathers (and pass.held) for the parameters that `block` needs in this pass.
  void gather(std::size_t block, Phase phase, BlockPass& pass) const;
  // To be called when the body has its order: where it reads what is within the block's unit.
  void find_inner(std::size_t block, BlockPass& pass) const;
  // To be called at the end of a block's forward pass: keeps its slices, where the runtime asks.
  void keep_slices(std::size_t block, BlockPass& pass);

 private:
  // A parameter on its way from a value to another.
  struct Gathered {
    TensorId parameter = no_tensor;
    ValueId from = no_value;
    ValueId to = no_value;
  };

  [[nodiscard]] const ParameterValues& values_of(TensorId parameter) const {
    return builder_.step.parameters.at(parameter);
  }
  [[nodiscard]] std::vector<TensorId> gathered_of(const Unit& unit) const;
  void gather_unit(const Unit& unit, std::size_t block, Phase phase, BlockPass& pass) const;
  [[nodiscard]] Gathered whole(TensorId parameter, Phase phase) const;
  // Of the head's unit: for the chunks of the loss, if it has been read before.
  void gather_for_chunks(const std::vector<TensorId>& parameters, const Unit& unit,
                         std::size_t block, BlockPass& pass) const;
  void put_other_groups_first(std::vector<Gathered>& all) const;
  void gather_tables(std::size_t block, std::vector<Item>& items) const;
  [[nodiscard]] bool keeps_gathered(const Unit& unit) const;
  void gather_together(const std::vector<Gathered>& wanted, const std::string& unit, Phase phase,
                       std::size_t block, std::vector<Item>& items) const;
  void fulfil(const std::vector<ValueId>& promised, const std::vector<ValueId>& arrived,
              const std::string& unit, std::vector<Item>& items) const;

  SpmdBuilder& builder_;
  const Units& units_;
  const Gathers& runtime_;
  std::optional<ChunkedLoss> chunked_;
  std::map<TensorId, ValueId> slices_;  // kept between forward and backward
};

}  // namespace shardsim
