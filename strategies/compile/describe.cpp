#include "strategies/compile/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "base/json.hpp"
#include "strategies/compile/context_warnings.hpp"
#include "strategies/compile/kernel_lists.hpp"
#include "strategies/compile/stage_warnings.hpp"
#include "strategies/layout/assign_by_system.hpp"
#include "strategies/layout/context_axes.hpp"
#include "strategies/layout/layout_json.hpp"

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

ParameterSharding describe(const ParameterLayout& a, const Workload& workload, const Mesh& mesh,
                           DType stored) {
  ParameterSharding p = describe(workload.tensors[static_cast<std::size_t>(a.tensor)].name, a.shape,
                                 a.instances(), stored, a.stored, mesh);
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

// The same of one leaf of the workload's view, which lies as the parameter that it is of.
ParameterSharding describe_leaf(const TreeLeaf& leaf, const LeafSpec& given,
                                const ParameterLayout& a, const Layout& layout, const Mesh& mesh,
                                DType stored) {
  ParameterSharding p =
      describe(leaf.leaf.name, leaf.leaf.shape, 1, stored, of_leaf(leaf, a.stored), mesh);
  p.logical_axes = leaf.leaf.logical_axes;
  p.returned = given.spec;
  p.rule = given.rule;
  p.dimension_rules = given.dimension_rules;
  p.by_tactic = !given.tactic.empty();
  p.reason = given.reason;
  p.assigned_by = decided_by(given, layout.rules);
  p.compute_spec = spec_of(of_leaf(leaf, a.compute), mesh);
  p.gradient_spec = spec_of(of_leaf(leaf, a.gradient), mesh);
  p.optimizer_spec = spec_of(of_leaf(leaf, a.optimizer), mesh);
  return p;
}

// Leaves of one tensor, an expert's each, are told apart by their names alone where the rules give
// all the same.
struct LeafOfKind {
  std::size_t leaf = 0;
  std::size_t kind = 0;
};

std::vector<ParameterSharding> describe_leaves(const Workload& workload, const Layout& layout,
                                               const Mesh& mesh, DType stored) {
  std::vector<const ParameterLayout*> of_tensor(workload.tensors.size());
  for (const ParameterLayout& a : layout.parameters) of_tensor[at(a.tensor)] = &a;
  std::vector<ParameterSharding> kinds;
  std::vector<std::vector<LeafOfKind>> of_first(workload.tensors.size());
  std::vector<RowOfKind> rows;
  const std::vector<TreeLeaf> leaves = tree_leaves(workload);
  rows.reserve(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::size_t first = at(leaves[i].holds.front().tensor);
    const LeafSpec& given = layout.leaves[i];
    const auto known =
        std::find_if(of_first[first].begin(), of_first[first].end(), [&](const LeafOfKind& other) {
          return leaves[other.leaf].leaf.shape == leaves[i].leaf.shape &&
                 given == layout.leaves[other.leaf];
        });
    if (known != of_first[first].end()) {
      rows.push_back({leaves[i].leaf.name, known->kind});
      continue;
    }
    of_first[first].push_back({i, kinds.size()});
    rows.push_back({leaves[i].leaf.name, kinds.size()});
    kinds.push_back(describe_leaf(leaves[i], given, *of_tensor[first], layout, mesh, stored));
  }
  return fold_layers(kinds, std::move(rows));
}

PlanSubject subject_of(const Workload& workload, const Step& step, const Strategy& strategy) {
  const ModelFlops flops = model_flops(workload);
  const auto passes = static_cast<double>(step.microbatches);
  return {workload.model,
          strategy.name,
          parameter_count(workload),
          step.microbatches * workload.tokens,
          passes * flops.needed,
          passes * flops.full_attention};
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

// How many heads an attention op has of queries, and of keys and values.
struct HeadCounts {
  std::int64_t queries = 1;
  std::int64_t keys = 1;
};

HeadCounts head_counts(const Workload& workload, const Op& attention) {
  const auto count = [&](const Operand& operand) {
    std::int64_t heads = 1;
    for (const Dim& dim : operand.dims) {
      for (const LabelId id : dim) {
        const Label& label = workload.labels[static_cast<std::size_t>(id)];
        if (label.role == LabelRole::heads || label.role == LabelRole::head_group)
          heads *= label.size;
      }
    }
    return heads;
  };
  return {count(attention.operands[0]), count(attention.operands[1])};
}

// How the block's first attention op leaves its result; nothing where it has none.
const Sharding* attention_sharding(const Block& block, const BlockProgram& program,
                                   const SpmdStep& step, const Op** attention) {
  for (const Op& op : block.forward) {
    if (kind_of(op) != OpKind::attention) continue;
    *attention = &op;
    for (const Item& item : program.forward.body) {
      if (item.kind == TaskKind::kernel && item.name == op.name) {
        return &step.values[static_cast<std::size_t>(item.results.front())].sharding;
      }
    }
  }
  return nullptr;
}

// Heads are not cut: devices of an axis to which they cannot be dealt out evenly do what others do,
// and so do those over which nothing splits attention. (Where only the heads of keys and values are
// too few, these are repeated and nobody's work is.)
std::string repeated_attention(const HeadCounts& heads, const Sharding& sharding, const Mesh& mesh,
                               bool splits_model, const AxisList& idle) {
  const AxisList split = split_axes(sharding);
  std::vector<std::string> names;
  std::int64_t devices = 1;
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    const AxisRef whole = mesh.whole(static_cast<int>(i));
    if (whole.size == 1 || overlaps_any(whole, idle)) continue;
    std::int64_t over = 1;
    for (const AxisRef& axis : split) {
      if (overlaps_any(axis, {whole})) over *= axis.size;
    }
    if (over == whole.size) continue;
    names.push_back(fmt::format("\"{}\"", mesh.axes()[i].name));
    devices *= whole.size;
    parts *= over;
  }
  if (names.empty()) return "";
  const std::string axes =
      fmt::format("{} {}", names.size() == 1 ? "axis" : "axes", fmt::join(names, " and "));
  const double times = static_cast<double>(devices) / static_cast<double>(parts);
  if (heads.keys % devices == 0) {
    return fmt::format(
        "attention is computed {:.1f} times: nothing splits it over {}, whose {} devices repeat "
        "each other's work",
        times, axes, devices);
  }
  const std::string keys =
      heads.keys != heads.queries ? fmt::format(" ({} of keys and values)", heads.keys) : "";
  return fmt::format(
      "{} heads{} do not go evenly over the {} devices of {}: attention is computed {:.1f} times, "
      "by devices that repeat each other's work{}",
      heads.queries, keys, devices, axes, times,
      splits_model ? "; Megatron and torchtitan refuse it" : "");
}

// Under a causal mask the last of n contiguous shards of the queries reads keys of all, twice the
// mean but for its own: (2n - 1) / n.
std::string balanced_causal_attention(const Workload& workload, const Op& op,
                                      const Sharding& sharding, const Mesh& mesh) {
  if (op.work_fraction == 1) return "";
  const std::vector<Dim>& dims = op.results.front().dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto shards = static_cast<double>(Mesh::size_of(sharding.dims[d].axes));
    const Label& label = workload.labels[static_cast<std::size_t>(dims[d].front())];
    if (label.role != LabelRole::sequence || shards == 1) continue;
    return fmt::format(
        "causal attention over {} parts of the sequence ({}) is counted as if balanced, as zigzag "
        "ring attention is; of contiguous parts the last has {:.2f} times the mean",
        shards, fmt::join(mesh.names_of(sharding.dims[d].axes), ", "), (2 * shards - 1) / shards);
  }
  return "";
}

// Models have one kind of attention: what the first does, all do. `others`: axes that are not for
// splitting it.
void tell_of_attention(const Workload& workload, const SpmdStep& step, const Mesh& mesh,
                       const Layout& layout, const AxisList& others, CompiledStep& compiled) {
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    const Op* op = nullptr;
    const Sharding* sharding = attention_sharding(workload.blocks[b], step.blocks[b], step, &op);
    if (sharding == nullptr) continue;
    std::string warning = repeated_attention(head_counts(workload, *op), *sharding, mesh,
                                             !layout.model_axes.empty(), others);
    if (!warning.empty()) compiled.warnings.push_back(std::move(warning));
    if (!ring_axes(layout).empty()) return;  // which says itself who has how much
    std::string note = balanced_causal_attention(workload, *op, *sharding, mesh);
    if (!note.empty()) compiled.plan.notes.push_back(std::move(note));
    return;
  }
}

// Who issues them, and of the optimizer's, which no block lists, who launches them. Engines that
// serve issue theirs from C++ or as graphs: of steps without gradients nothing is said.
bool names_kernels(const Compilation& c) {
  return !c.strategy.kernels.is_null() && has_gradients(c.step);
}

void describe_kernels(Compilation& c) {
  if (!names_kernels(c)) return;
  const Json& kernels = *c.strategy.kernels;
  Plan& plan = c.compiled.plan;
  plan.issued_by = issuer(kernels);
  const Json graphs = kernels.is_object() ? kernels.value("graphs", Json()) : Json();
  plan.layers_are_graphs = graphs == "layer";
  // Of a list the whole of attention: routers' few kernels alone change little.
  plan.parts_are_graphs = std::find(graphs.begin(), graphs.end(), "attn") != graphs.end();
  plan.awaits_messages = c.strategy.pipeline && c.strategy.pipeline->host_awaits_messages;
  for (Kernel& kernel : plan.kernels) {
    if (kernel.op == c.step.optimizer.kind) kernel.implementation = kernel_choice(kernels).stack;
  }
}

// How uneven the routing is said to be, and what comes of it.
void describe_experts(Compilation& c) {
  if (!c.layout.experts || c.layout.experts->shares.of_layer.empty()) return;
  const ExpertLayout& experts = *c.layout.experts;
  const auto loads = loads_of(experts.shares, Mesh::size_of(experts.parallel), experts.capacity);
  std::vector<std::string>& notes = c.compiled.plan.notes;
  if (!experts.pads) {
    for (std::string& words : words_of(loads)) notes.push_back(std::move(words));
  }
  const double dropped = mean_dropped(loads);
  if (dropped > 0) {
    notes.push_back(fmt::format("experts have no place for {:.1f} % of the rows: these are dropped",
                                100 * dropped));
  }
}

void describe_outputs(Compilation& c) {
  const Workload& workload = c.workload;
  for (const ValueId id : c.spmd.outputs) {
    const Value& output = c.spmd.values[static_cast<std::size_t>(id)];
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(output.tensor)];
    ParameterSharding row = describe(tensor.name, workload.shape(tensor.dims), 1, tensor.dtype,
                                     without_unit_axes(output.sharding), c.mesh);
    const bool is_whole = c.layout.leaving.contains(output.tensor);
    row.assigned_by = is_whole ? "whole" : "as made";
    if (is_whole) row.returned = {};
    row.by_tactic = true;
    c.compiled.outputs.push_back(std::move(row));
  }
}

// Over which no tensor of a program is split: idle ones, and that of stages.
AxisList axes_without_shards(const Compilation& c) {
  AxisList axes = c.layout.idle_axes;
  for (const std::string& name : {c.strategy.pipeline ? c.strategy.pipeline->axis : "",
                                  c.strategy.shifting ? c.strategy.shifting->axis : ""}) {
    if (!name.empty()) axes.push_back(c.mesh.whole(*c.mesh.find(name)));
  }
  return axes;
}

}  // namespace

void describe(Compilation& c) {
  const Workload& workload = c.workload;
  const Layout& layout = c.layout;
  const SpmdStep& spmd = c.spmd;
  const Mesh& mesh = c.mesh;
  const Step& step = c.step;
  CompiledStep& compiled = c.compiled;
  Plan& plan = compiled.plan;
  plan.subject = subject_of(c.given, step, c.strategy);
  describe_kernels(c);
  for (const ParameterLayout& a : layout.parameters) {
    compiled.parameters.push_back(describe(a, workload, mesh, step.optimizer.parameters));
    add_padding(compiled.parameters.back().name, a.shape, a.stored, a.instances(),
                step.optimizer.parameters, plan.padding);
  }
  if (!layout.leaves.empty()) {
    compiled.parameters = describe_leaves(workload, layout, mesh, step.optimizer.parameters);
  }
  describe_outputs(c);
  for (const auto& [id, sharding] : layout.pinned) {
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
    if (tensor.role == TensorRole::input) {
      add_padding(tensor.name, workload.shape(tensor.dims), sharding, 1, tensor.dtype,
                  plan.padding);
    }
  }
  if (!names_kernels(c)) {
    plan.notes.emplace_back(
        "every op writes its result to memory of its own, as eager PyTorch does; no fusion");
  }
  plan.notes.insert(plan.notes.end(), workload.notes.begin(), workload.notes.end());
  describe_experts(c);
  note_padded_inputs(plan, workload, plan.notes);
  compiled.warnings = layout.warnings;
  compiled.warnings.insert(compiled.warnings.end(), c.strategy.notes.begin(),
                           c.strategy.notes.end());
  for (std::string& warning : context_warnings(workload, layout)) {
    compiled.warnings.push_back(std::move(warning));
  }
  for (std::string& warning : stage_warnings(c)) compiled.warnings.push_back(std::move(warning));
  const std::optional<DType>& reduced_in = step.optimizer.reduce;
  if (c.strategy.runtime.reductions.buffer && reduced_in &&
      *reduced_in != step.optimizer.gradients) {
    compiled.warnings.push_back(
        fmt::format("gradients in a buffer are reduced as they are kept, in {}: in {} is not "
                    "modelled",
                    name_of(step.optimizer.gradients), name_of(*reduced_in)));
  }
  for (const AxisRef& axis : layout.idle_axes) {
    compiled.warnings.push_back(
        fmt::format("axis \"{}\" is used by nothing: its {} devices all do the same",
                    mesh.names_of({axis}).front(), axis.size));
  }
  tell_of_attention(workload, spmd, mesh, layout, axes_without_shards(c), compiled);
  compiled.rules = layout.rules;
  *compiled.layout = layout_to_json(layout, workload, mesh);
}

}  // namespace shardsim
