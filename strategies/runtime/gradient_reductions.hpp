// Gradients from where ops leave them (BlockPass::writes) to where the optimizer finds them:
// reduced with their unit or one by one, in every microbatch or once, and added up over the
// microbatches.
//   unit     a layer's in one call per kind and axes after its backward pass, in the gradient
//            dtype; the root's after the last
//   tensor   each in a call of its own, as soon as it is made (XLA's way)
//   bucket   added up in a buffer, which is reduced part by part (gradient_buffers.hpp)
// Gradients that an op makes in a wider type than it computes with (norms in fp32) are reduced in
// that type and cast afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/gradient_buffers.hpp"
#include "strategies/runtime/loss_chunks.hpp"
#include "strategies/runtime/runtime.hpp"
#include "strategies/runtime/units.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

class GradientReductions {
 public:
  // `to_host`: what is reduced is kept there (host_shards.hpp).
  GradientReductions(SpmdBuilder& builder, const Units& units, const Layout& layout,
                     const Reductions& runtime, const Step& step, bool to_host);

  // To be called for the backward passes of all blocks, the last first.
  void reduce(std::size_t block, BlockPass& pass);
  // Before these: what the forward pass of that block makes of the head, behind its body.
  void reduce_chunked(const ChunkedLoss& loss, BlockPass& pass);
  // The reduced gradient.
  [[nodiscard]] ValueId gradient(TensorId parameter) const { return gradients_.at(parameter); }

  // Other axes than the data's over which it was a partial sum.
  [[nodiscard]] AxisList model_axes(TensorId parameter) const;

 private:
  void reduce_one_by_one(BlockPass& pass);
  void reduce_inner(BlockPass& pass);
  // Reduced group by group.
  [[nodiscard]] std::vector<std::vector<Write>> groups_of(const std::vector<Write>& writes,
                                                          const Unit& unit) const;
  void reduce_unit(const std::vector<Write>& writes, const Unit& unit, std::size_t block,
                   BlockPass& pass);
  void reduce_together(const std::vector<Write>& writes, const std::string& unit, BlockPass& pass,
                       std::vector<Item>& items);
  // Whole until the last microbatch (whole_gradients.cpp).
  [[nodiscard]] bool adds_up_as_made() const;
  void add_up_as_made(BlockPass& pass);
  [[nodiscard]] Item added_as_made(Write& write, Item* maker);
  void reduce_sums(const std::vector<Write>& writes, const std::string& unit,
                   std::vector<Item>& items);
  void copy_sums(std::vector<ValueId>& sums, const std::vector<TensorId>& parameters,
                 const std::vector<Sharding>& targets, std::string_view unit,
                 std::vector<Item>& items);
  struct Together {  // gradients that are reduced in one go, one for each parameter
    std::vector<ValueId> gradients;
    std::vector<Sharding> targets;
    std::vector<TensorId> parameters;
  };
  // Notes the model axes over which they are partial sums.
  [[nodiscard]] Together together(const std::vector<Write>& writes);
  // How a gradient that is made so lies when it is added up: reduced as far as it is in every
  // microbatch. Mean-scattered over data and whole over replicas, it is a sum over these until the
  // last.
  [[nodiscard]] Sharding reduced_each_time(const Sharding& made, const Sharding& target) const;
  // Was it made in a wider type than the op computes with, and than gradients are reduced in?
  [[nodiscard]] bool is_wide(ValueId gradient) const;
  void add_over_model(std::vector<ValueId>& gradients, const std::vector<Sharding>& to,
                      const GradientsReduced& reason, std::vector<Item>& items);
  // Gradients to where they are kept, in one call per kind and axes; where the runtime says so,
  // sums over other axes than the data's parameter by parameter before.
  [[nodiscard]] std::vector<ValueId> bring_home(std::vector<ValueId> gradients,
                                                const std::vector<Sharding>& to,
                                                const GradientsReduced& reason,
                                                std::vector<Item>& items);
  // Before they are reduced: those that are not wide, in the dtype for that.
  [[nodiscard]] std::vector<ValueId> cast_to_reduce(std::vector<ValueId> gradients,
                                                    const std::vector<Sharding>& to,
                                                    std::string_view unit,
                                                    std::vector<Item>& items);
  [[nodiscard]] bool goes_through_arrays() const;
  [[nodiscard]] bool reduces_now() const;  // anything, in a microbatch that is not the last
  // Behind: all, in the dtype that they are kept in.
  void copy_in(std::vector<ValueId>& cast, const std::vector<BufferCategory>& categories,
               std::string_view unit, std::size_t begin, std::vector<Item>& items);
  void copy_to_sum(std::vector<ValueId>& gradients, const std::vector<Sharding>& to,
                   std::string_view unit, std::vector<Item>& items);
  // Takes out, and adds up, those of parameters that have a gradient already.
  void add_to_kept(std::vector<TensorId>& owners, std::vector<ValueId>& reduced,
                   std::string_view unit, std::vector<Item>& items);
  // Where they are kept, in the type for that.
  [[nodiscard]] std::vector<ValueId> kept(std::vector<ValueId> gradients, const std::string& unit,
                                          std::vector<Item>& items);
  void keep(const std::vector<TensorId>& owners, const std::vector<ValueId>& gradients);
  [[nodiscard]] std::vector<ValueId> cast_gradients(std::vector<ValueId> gradients, DType dtype,
                                                    const std::vector<BufferCategory>& categories,
                                                    std::string_view unit,
                                                    std::vector<Item>& items);
  // The sums over the microbatches of what each of them leaves in `summands`.
  [[nodiscard]] std::vector<ValueId> accumulate(const std::vector<ValueId>& summands,
                                                std::string_view unit, BlockPass& pass);

  SpmdBuilder& builder_;
  const Units& units_;
  const Reductions& runtime_;
  std::optional<GradientBuffers> buffers_;
  AxisList data_axes_;
  DType gradient_dtype_;  // as they are kept
  DType reduce_dtype_;    // as they are reduced
  std::int64_t microbatches_;
  bool to_host_;
  std::map<TensorId, Sharding> targets_;  // how gradients are kept
  std::map<TensorId, ValueId> gradients_;
  std::map<TensorId, AxisList> model_axes_;
  std::map<TensorId, ValueId> others_;  // rows of a table that are other devices' in the end
  std::map<const Unit*, std::vector<Write>> of_unit_;  // so far
};

}  // namespace shardsim
