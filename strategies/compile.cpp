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
  const ModelFlops flops = model_flops(workload);
  return {workload.model,  strategy.name, parameter_count(workload),
          workload.tokens, flops.needed,  flops.full_attention};
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

std::int64_t label_size(const Workload& workload, std::string_view name) {
  for (const Label& label : workload.labels) {
    if (label.name == name) return label.size;
  }
  return 0;
}

// Operations of an op on all devices over what it asks for: above 1 where devices repeat each
// other's work or compute padding. 1 where the step has no such kernel.
double repetition(const Workload& workload, std::size_t block, const Op& op, const SpmdStep& step,
                  const Mesh& mesh) {
  double points = 1;
  for (const LabelId label : factors(op)) {
    points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
  }
  for (const Item& item : step.blocks[block].forward.body) {
    if (item.kind != TaskKind::kernel || item.name != op.name) continue;
    return item.kernel.flops.count() * static_cast<double>(mesh.devices()) /
           (points * op.flops_per_point * op.work_fraction);
  }
  return 1;
}

// Heads are not cut: devices of a model axis to which they cannot be dealt out evenly do what
// others do. (Where only those of keys and values are too few, these are repeated and nobody's work
// is.)
void warn_about_heads(const Workload& workload, const SpmdStep& step, const Mesh& mesh,
                      const StrategyOptions& strategy, std::vector<std::string>& warnings) {
  constexpr double worth_a_word = 1.01;
  const std::int64_t kv_heads = label_size(workload, "kv_heads");
  const std::int64_t heads =
      kv_heads > 0 ? kv_heads * label_size(workload, "group") : label_size(workload, "heads");
  if (!strategy.splits_model() || heads == 0) return;
  const std::int64_t devices = mesh.whole(*mesh.find(strategy.model_axis)).size;
  if ((kv_heads > 0 ? kv_heads : heads) % devices == 0) return;
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    for (const Op& op : workload.blocks[b].forward) {
      if (op.kind != OpKind::attention) continue;
      const double times = repetition(workload, b, op, step, mesh);
      if (times < worth_a_word) return;
      const std::string keys = kv_heads > 0 && kv_heads != heads
                                   ? fmt::format(" ({} of keys and values)", kv_heads)
                                   : "";
      warnings.push_back(fmt::format(
          "{} heads{} do not go evenly over the {} devices of axis \"{}\": attention is "
          "computed {:.1f} times, by devices that repeat each other's work; Megatron and "
          "torchtitan refuse it",
          heads, keys, devices, strategy.model_axis, times));
      return;
    }
  }
}

}  // namespace

CompiledStep compile(const Workload& workload, const OptimizerOptions& optimizer, const Mesh& mesh,
                     const StrategyOptions& strategy) {
  const Assignment assignment = assign(workload, mesh, strategy, optimizer.parameters);
  const SpmdStep step = partition(workload, mesh, assignment, strategy, optimizer);

  CompiledStep compiled;
  compiled.plan = emit(step, workload, mesh, strategy.prefetch, {strategy.place.file, "/workload"});
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
  warn_about_heads(workload, step, mesh, strategy, compiled.warnings);
  compiled.rules = assignment.rules;
  verify(plan);
  return compiled;
}

}  // namespace shardsim
