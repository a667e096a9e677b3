// The walk over a program: which op is next, what its operands have become, and what regions mean.
#pragma once

#include <memory>

#include "spmd/partition.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/axis_tiling.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Region;

class ProgramPartitioner final : public Partitioner {
 public:
  ProgramPartitioner(const Module& program, const PartitionOptions& options);
  Module run();

  Context& context() override { return *scopes_.back().context; }
  Builder& builder() override { return *builder_; }
  Sharded operand(const OpView& op, std::size_t index) override;
  Tiling tiling_of_result(const OpView& op, std::size_t index) override;
  void set_result(const OpView& op, std::size_t index, const Sharded& value) override;
  int users_of_result(const OpView& op, std::size_t index) override;
  std::vector<ValueId> clone(const OpView& op, const std::vector<ValueId>& operands,
                             const std::vector<TensorType>& types) override;
  void replicated(const OpView& op) override;

 private:
  // The devices that ops are partitioned over: all, or within a manual computation those that share
  // the manual axes.
  struct Scope {
    DeviceMesh mesh;
    std::unique_ptr<Context> context;
  };

  void visit(const Region& region);
  void visit(const Op& op);
  void loop(const OpView& op);
  void branches(const OpView& op);
  void manual_computation(const OpView& op);
  void barrier(const OpView& op);
  void in_place(const OpView& op);
  void push_scope(DeviceMesh mesh, std::unique_ptr<Context> context);
  // The same devices, with nothing remembered of what was resharded before.
  void push_scope();
  Tiling tiling_of(ValueId value) const;
  TensorType local_type(ValueId value, const Tiling& tiling) const;
  void bind_arguments(RegionId from, RegionId to, const std::vector<Tiling>& tilings);
  // A region of `op` in a scope of its own; it returns values that lie as `results`.
  RegionId partition_region(const OpView& op, RegionId region, const std::vector<TensorType>& types,
                            const std::vector<Tiling>& arguments,
                            const std::vector<Tiling>& results);
  [[nodiscard]] Sharded value_in_scope(ValueId value);

  const Module& program_;
  const Function& function_;
  bool like_xla_;
  Module local_;
  std::unique_ptr<Builder> builder_;
  std::vector<Scope> scopes_;
  std::vector<Sharded> values_;  // by value of the program
  std::vector<int> users_;
};

}  // namespace shardsim::spmd
