#include "strategies/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/assign.hpp"
#include "strategies/emit.hpp"
#include "strategies/partition.hpp"

namespace shardsim {
namespace {

double padding_fraction(std::int64_t size, const DimSharding& dim) {
  const std::int64_t padded = shard_size(size, dim) * Mesh::size_of(dim.axes);
  return 1.0 - static_cast<double>(size) / static_cast<double>(padded);
}

// One entry per dimension that its axes do not divide.
void add_padding(const std::string& name, const std::vector<std::int64_t>& shape,
                 const Sharding& sharding, std::int64_t instances, DType dtype,
                 std::vector<Padding>& out) {
  const Bytes shard = shard_elements(shape, sharding) * size_of(dtype);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t shards = Mesh::size_of(sharding.dims[d].axes);
    const std::int64_t padded = shard_size(shape[d], sharding.dims[d]) * shards;
    if (padded == shape[d]) continue;
    const double wasted =
        static_cast<double>(shard.count()) * padding_fraction(shape[d], sharding.dims[d]);
    out.push_back({name, static_cast<int>(d), shape[d], shards, padded, instances,
                   Bytes(std::llround(wasted)) * instances});
  }
}

ParameterSharding describe(const ParameterAssignment& a, const Workload& workload, const Mesh& mesh,
                           DType stored) {
  ParameterSharding p = describe(workload.tensors[static_cast<std::size_t>(a.tensor)].name, a.shape,
                                 a.instances, stored, a.stored, mesh);
  p.assigned_by = a.assigned_by;
  p.rule = a.rule;
  p.reason = a.reason;
  if (a.from_system) {
    p.returned = a.from_system->spec;
    p.dimension_rules = a.from_system->dimension_rules;
    p.by_tactic = !a.from_system->tactic.empty();
  }
  p.compute_spec = spec_of(a.compute, mesh);
  p.gradient_spec = spec_of(a.gradient, mesh);
  p.optimizer_spec = spec_of(a.optimizer, mesh);
  return p;
}

PlanSubject subject_of(const Workload& workload, const StrategyOptions& strategy) {
  return {workload.model, strategy.name, parameter_count(workload), workload.tokens,
          model_flops(workload)};
}

// Work that padding of the inputs adds: every device computes on its padded shard.
void note_padded_inputs(const Plan& plan, const Workload& workload,
                        std::vector<std::string>& notes) {
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.role != TensorRole::input) continue;
    for (const Padding& padding : plan.padding) {
      if (padding.tensor != tensor.name) continue;
      notes.push_back(fmt::format(
          "{} dimension {}: {} over {} shards is padded to {}, {:.1f} % more work", padding.tensor,
          padding.dimension, padding.size, padding.shards, padding.padded_size,
          100.0 *
              (static_cast<double>(padding.padded_size) / static_cast<double>(padding.size) - 1)));
    }
  }
}

}  // namespace

CompiledStep compile(const Workload& workload, const OptimizerOptions& optimizer, const Mesh& mesh,
                     const StrategyOptions& strategy) {
  const Assignment assignment = assign(workload, mesh, strategy, optimizer.parameters);
  const SpmdStep step = partition(workload, mesh, assignment, strategy, optimizer);

  CompiledStep compiled;
  compiled.plan = emit(step, workload, mesh, strategy.prefetch);
  Plan& plan = compiled.plan;
  plan.subject = subject_of(workload, strategy);
  for (const ParameterAssignment& a : assignment.parameters) {
    compiled.parameters.push_back(describe(a, workload, mesh, optimizer.parameters));
    add_padding(compiled.parameters.back().name, a.shape, a.stored, a.instances,
                optimizer.parameters, plan.padding);
  }
  for (const auto& [id, sharding] : assignment.pinned) {
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
    if (tensor.role == TensorRole::input) {
      add_padding(tensor.name, workload.shape(tensor.dims), sharding, 1, tensor.dtype,
                  plan.padding);
    }
  }
  plan.notes.emplace_back(
      "every op writes its result to memory of its own, as eager PyTorch does; no fusion");
  plan.notes.insert(plan.notes.end(), workload.notes.begin(), workload.notes.end());
  note_padded_inputs(plan, workload, plan.notes);
  compiled.warnings = assignment.warnings;
  compiled.rules = assignment.rules;
  verify(plan);
  return compiled;
}

}  // namespace shardsim
