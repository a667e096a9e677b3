// Why a strategy's collectives are there and what would avoid them, in words for people: the
// `reason` and `remedy` of the plan's collectives. A reason names what in the strategy asks for the
// collective (a rule, a recipe, an axis list), a remedy what to write there instead and its price.
//
//   reason   parameters of model.layers.{} are stored over fsdp (fsdp: dimension 0 over fsdp) and
//            read whole in the forward pass, as fsdp splits the batch
//   remedy   take fsdp off their specs: a device holds 91.0 GiB more (with gradients and optimizer
//            state), and their gradients are all-reduced
//
// Prices are bytes on one device, of all layers together. Where no change of the strategy is known
// to help, the remedy is empty.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// Of a collective: why it is there, and what would avoid it (empty: nothing is known).
struct Words {
  std::string reason;
  std::string remedy;
};

// Of parameters, on their way to ops and back as gradients.
class ParameterReasons {
 public:
  ParameterReasons(const SpmdBuilder& builder, const Layout& layout, const Runtime& runtime,
                   const Step& step);

  [[nodiscard]] Words words(const UnitGathered& fact, const Collective& call) const;
  [[nodiscard]] Words words(const GradientsReduced& fact, const Collective& call) const;
  [[nodiscard]] Words words(const OptimizerReads& fact, const Collective& call) const;
  [[nodiscard]] Words words(const UnitUpdated& fact, const Collective& call) const;
  [[nodiscard]] Words words(const SharedAddedUp& fact, const Collective& call) const;
  [[nodiscard]] Words words(const LossAveraged& fact, const Collective& call) const;
  [[nodiscard]] Words words(const MetricSummed& fact, const Collective& call) const;

  // " (fsdp: dimension 0 over fsdp)": what gave `axes` to those of the parameters that have them.
  [[nodiscard]] std::string assigned_by(const std::vector<TensorId>& parameters,
                                        const AxisList& axes) const;
  [[nodiscard]] std::string names_of(const std::vector<TensorId>& parameters) const;
  // What a device would hold more without `axes` in the specs of these parameters.
  [[nodiscard]] Bytes price_without(const std::vector<TensorId>& parameters,
                                    const AxisList& axes) const;

 private:
  [[nodiscard]] const ParameterLayout& layout_of(TensorId parameter) const {
    return *by_tensor_.at(parameter);
  }
  // "splits the batch", "splits the sequence", ...: what the inputs are split along.
  [[nodiscard]] std::string splits_inputs(const AxisList& axes) const;
  [[nodiscard]] Bytes gathered_bytes(const std::vector<TensorId>& parameters) const;
  [[nodiscard]] Words slices_gathered(const UnitGathered& fact, const AxisList& axes) const;

  const SpmdBuilder& builder_;
  const Layout& layout_;
  const Runtime& runtime_;
  DType gradient_dtype_;
  std::int64_t microbatches_;
  bool trains_;
  std::map<TensorId, const ParameterLayout*> by_tensor_;
  std::map<TensorId, std::vector<DType>> states_;  // of the optimizer, by parameter
};

}  // namespace shardsim
