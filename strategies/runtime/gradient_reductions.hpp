// Gradients from where ops leave them to where the optimizer finds them: reduced with their unit or
// one by one, in every microbatch or once, and added up over the microbatches.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/compile/parameter_reasons.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

class GradientReductions {
 public:
  GradientReductions(SpmdBuilder& builder, const Layout& layout, const Reductions& runtime,
                     const OptimizerOptions& optimizer, const ParameterReasons& reasons);

  // Takes the finished gradient of a parameter, a partial sum over some axes; it is reduced with
  // its unit, or at once where gradients travel one by one.
  void reduce_later(TensorId parameter, ValueId gradient, BlockPass& pass);
  // To be called at the end of a block's backward pass.
  void reduce_unit(std::size_t block, BlockPass& pass);
  // The reduced gradient.
  [[nodiscard]] ValueId gradient(TensorId parameter) const { return gradients_.at(parameter); }

 private:
  struct Pending {
    TensorId parameter;
    ValueId gradient;
  };

  void reduce_together(const std::vector<Pending>& pending, const std::string& unit,
                       BlockPass& pass, std::vector<Item>& items);
  // How a gradient that is made so lies when it is added up: reduced as far as it is in every
  // microbatch. Mean-scattered over data and whole over replicas, it is a sum over these until the
  // last.
  [[nodiscard]] Sharding reduced_each_time(const Sharding& made, const Sharding& target) const;
  // Was it made in a wider type than the op computes with, and than gradients are kept in?
  [[nodiscard]] bool is_wide(ValueId gradient) const;
  // Those that are wide, or those that are not, in the gradient dtype; the others as they are.
  [[nodiscard]] std::vector<ValueId> cast_gradients(std::vector<ValueId> gradients,
                                                    const std::vector<Sharding>& to, bool wide,
                                                    std::string_view unit,
                                                    std::vector<Item>& items);
  // The sums over the microbatches of what each of them leaves in `summands`.
  [[nodiscard]] std::vector<ValueId> accumulate(const std::vector<ValueId>& summands,
                                                std::string_view unit, BlockPass& pass);

  SpmdBuilder& builder_;
  const Reductions& runtime_;
  const ParameterReasons& reasons_;
  DType gradient_dtype_;
  std::map<TensorId, Sharding> targets_;  // how gradients are kept
  std::map<TensorId, ValueId> gradients_;
  std::vector<Pending> pending_root_;
  std::vector<Pending> pending_block_;
};

}  // namespace shardsim
