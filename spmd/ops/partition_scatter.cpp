// Scatters, in the same ways as gathers (partition_gather.cpp); operands and updates come in
// tuples that lie alike.
#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "spmd/ops/indexed_groups.hpp"
#include "spmd/ops/trial.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

using Many = std::vector<Sharded>;

struct ScatterTask {
  const OpView& op;
  const IndexedAccess& access;
  Many operands;
  Sharded indices;
  Many updates;
  Tiling output;
  Shape slices;
  bool may_recurse = true;
};

Many partition_within(const ScatterTask& task);

Many reshard_all(const Many& values, const Tiling& tiling) {
  Many result;
  for (const Sharded& value : values) result.push_back(reshard(value, tiling));
  return result;
}

// Equal values stay one value.
Many all_within_groups(Many& values, const GroupedTiling& grouped) {
  Many result;
  for (Sharded& value : values) result.push_back(within_groups(value, grouped));
  return result;
}

IndexedTensors tensors_of(const ScatterTask& task) {
  return {task.access, task.operands.front(), task.indices.tiling, task.updates.front().tiling,
          task.slices};
}

// The same within groups, as it lies on all devices; operands and results lie alike.
Many solve_groups(ScatterTask task, const Many& operand_parts, Sharded indices,
                  const IndexedGroups& groups) {
  const Many update_parts = all_within_groups(task.updates, groups.output);
  const Sharded indices_part = within_groups(indices, groups.indices);
  const Many made =
      partition_within({task.op, task.access, operand_parts, indices_part, update_parts,
                        groups.operand.tiling, groups.slices, task.may_recurse});
  Many result;
  for (std::size_t i = 0; i < made.size(); ++i) {
    result.push_back(
        {made[i].value, task.operands[i].shape, ungroup(groups.operand), task.operands[i].context});
  }
  return result;
}

Many solve_groups(ScatterTask task, const Sharded& indices, const IndexedGroups& groups) {
  const Many operand_parts = all_within_groups(task.operands, groups.operand);
  return reshard_all(solve_groups(task, operand_parts, indices, groups), task.output);
}

std::optional<Many> over_shared_dims(ScatterTask task, const SharedDims& shared, bool is_counted) {
  const auto split = split_shared(tensors_of(task), shared);
  if (!split) return {};
  task.operands = reshard_all(task.operands, split->operand);
  task.indices = reshard(task.indices, split->indices);
  task.updates = reshard_all(task.updates, split->output);
  const Sharded indices = is_counted ? relative_to_tiles(task.access, task.indices,
                                                         task.operands.front(), shared.operand)
                                     : task.indices;
  return solve_groups(task, indices, split->groups);
}

std::optional<Many> over_batch(const ScatterTask& task) {
  return over_shared_dims(task, task.access.batch(), /*is_counted=*/false);
}

std::optional<Many> over_counted(const ScatterTask& task) {
  return over_shared_dims(task, task.access.counted(), /*is_counted=*/true);
}

std::optional<Many> over_whole_slices(const ScatterTask& task) {
  const auto groups = split_whole_slices(tensors_of(task));
  if (!groups) return {};
  return solve_groups(task, task.indices, *groups);
}

// Groups of devices have different rows: each writes what falls into its own, as places outside of
// a tensor are not written.
std::optional<Many> over_lookups(const ScatterTask& given) {
  ScatterTask task = given;
  const Sharded& operand = task.operands.front();
  const auto dims = task.access.split_lookups(operand.tiling, task.slices);
  if (!dims) return {};
  const IndexedGroups groups = split_lookups(tensors_of(task), *dims);
  task.indices = reshard(task.indices, ungroup(groups.indices));
  return solve_groups(task, relative_to_tiles(task.access, task.indices, operand, *dims), groups);
}

// What leaves a value unchanged when it is combined with it; nothing for reducers that are no
// simple sum, product, minimum or maximum.
struct Reduction {
  std::string op;
  std::string identity;
};

std::optional<Reduction> reduction_of(const OpView& op, const TensorType& type) {
  const stablehlo::Function& function = op.function();
  const auto& region = function.regions[at(op.op().regions.front())];
  if (region.ops.size() != 2 || region.arguments.size() != 2) return {};
  const Op& only = function.op(region.ops.front());
  const bool is_boolean = type.element == "i1";
  const bool is_floating = type.element.find('f') != std::string::npos;
  const auto limit = [&](bool largest) -> std::string {
    if (is_boolean) return largest ? "true" : "false";
    if (is_floating) return largest ? "inf" : "-inf";
    const bool is_unsigned = type.element.rfind("ui", 0) == 0;
    const int bits = type.dtype ? bits_of(*type.dtype) : 32;
    if (is_unsigned && !largest) return "0";
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
    if (is_unsigned) return std::to_string(all);
    return largest ? std::to_string(all / 2) : "-" + std::to_string(all / 2 + 1);
  };
  if (only.name == "stablehlo.add") return Reduction{only.name, is_boolean ? "false" : "0"};
  if (only.name == "stablehlo.multiply") return Reduction{only.name, is_boolean ? "true" : "1"};
  if (only.name == "stablehlo.minimum") return Reduction{only.name, limit(true)};
  if (only.name == "stablehlo.maximum") return Reduction{only.name, limit(false)};
  if (is_boolean && only.name == "stablehlo.and") return Reduction{only.name, "true"};
  if (is_boolean && only.name == "stablehlo.or") return Reduction{only.name, "false"};
  return {};
}

// The operand on the first device of every group that the indices split, the identity elsewhere: so
// that adding up over the groups counts it once.
Sharded only_on_first(const ScatterTask& task, const Sharded& operand, const Reduction& reduction) {
  Builder& builder = operand.context->builder();
  const Tiling& tiling = task.indices.tiling;
  std::vector<std::int64_t> place(at(task.indices.context->devices()), 0);
  std::int64_t next = 0;
  tiling.each([&](const Dims& index, int device) {
    if (!tiling.is_partial()) {
      place[at(device)] = device == 0 ? 0 : 1;
    } else {
      if (index.back() == 0) ++next;
      place[at(device)] = next - 1;
    }
  });
  const TensorType scalar{true, {}, "i32", DType::i32, ""};
  const ValueId number = scalar_by_device(*task.indices.context, place, scalar);
  const ValueId is_other = builder.compare("NE", number, builder.constant("0", scalar));
  const Shape shape = builder.shape(operand.value);
  TensorType element = builder.type(operand.value);
  element.dims.clear();
  const ValueId identity =
      builder.broadcast_scalar(builder.constant(reduction.identity, element), shape);
  Sharded result = operand;
  result.value = builder.select(builder.broadcast_scalar(is_other, shape), identity, operand.value);
  return result;
}

// Every device writes its part of the updates; all results are combined.
std::optional<Many> over_indices(const ScatterTask& given) {
  ScatterTask task = given;
  task.indices = reshard(task.indices, refined_indices(tensors_of(task)));
  const auto groups = split_indices(tensors_of(task));
  if (!groups || task.operands.size() != 1) return {};
  Sharded& operand = task.operands.front();
  const auto reduction = reduction_of(task.op, operand.context->builder().type(operand.value));
  if (!reduction) return {};
  const Sharded operand_part =
      only_on_first(task, within_groups(operand, groups->operand), *reduction);
  Many made = solve_groups(task, {operand_part}, task.indices, *groups);
  made.front().value = all_reduce_along(*operand.context, made.front().value, task.indices.tiling,
                                        task.access.passing().indices, reduction->op);
  return reshard_all(made, task.output);
}

using Method = std::optional<Many> (*)(const ScatterTask&);
// The first two cost nothing and come first.
constexpr std::array<Method, 5> methods = {over_batch, over_counted, over_whole_slices,
                                           over_lookups, over_indices};

TrialCost cost_of(Method method, const ScatterTask& task) {
  if (method == over_batch || method == over_counted) return {0, 0};
  Trial trial(task.indices.context->devices());
  ScatterTask scratch = task;
  for (Sharded& operand : scratch.operands) operand = trial.argument(operand);
  scratch.indices = trial.argument(task.indices);
  for (Sharded& update : scratch.updates) update = trial.argument(update);
  scratch.may_recurse = false;
  const auto made = method(scratch);
  return made ? trial.cost("stablehlo.scatter", *made) : TrialCost{};
}

Many scatter_whole(const ScatterTask& task) {
  Context& context = *task.indices.context;
  Builder& builder = context.builder();
  std::vector<ValueId> operands;
  std::vector<TensorType> types;
  for (const Sharded& operand : task.operands) {
    operands.push_back(replicate(operand).value);
    types.push_back(builder.type(operands.back()));
  }
  operands.push_back(replicate(task.indices).value);
  for (const Sharded& update : task.updates) operands.push_back(replicate(update).value);
  AttributeList attributes;
  for (const auto& attribute : task.op.op().attributes) {
    if (attribute.name.rfind("sdy.", 0) != 0) attributes.push_back(attribute);
  }
  const RegionId region = builder.copy_region(task.op.function(), task.op.op().regions.front());
  const std::vector<ValueId> made =
      builder.add_many("stablehlo.scatter", operands, types, std::move(attributes), {region});
  Many result;
  for (std::size_t i = 0; i < made.size(); ++i) {
    result.push_back(reshard({made[i], task.operands[i].shape, Tiling(), &context}, task.output));
  }
  return result;
}

Many partition_within(const ScatterTask& task) {
  if (!task.may_recurse) return scatter_whole(task);
  for (const Method method : cheapest_first(methods, [&](Method m) { return cost_of(m, task); })) {
    if (auto made = method(task)) return *made;
  }
  return scatter_whole(task);
}

// Values that lie alike, so that one answer fits all.
void make_alike(Many& values) {
  std::vector<Tiling> tilings;
  for (const Sharded& value : values) tilings.push_back(value.tiling);
  if (std::all_of(tilings.begin(), tilings.end(),
                  [&](const Tiling& tiling) { return tiling == tilings.front(); })) {
    return;
  }
  values = reshard_all(values, common_tiling(tilings));
}

// Padding of uneven indices is -1: nothing is written there.
Sharded with_void_padding(const Sharded& indices) {
  if (indices.tiling.is_replicated() || divides_evenly(indices.shape, indices.tiling)) {
    return indices;
  }
  Builder& builder = indices.context->builder();
  Sharded whole = replicate(indices);
  Shape high;
  for (std::size_t i = 0; i < whole.shape.size(); ++i) {
    const std::int64_t size = whole.shape[i];
    high.push_back(round_up(size, indices.tiling.tiles()[i]) - size);
    whole.shape[i] += high.back();
  }
  TensorType element = builder.type(whole.value);
  element.dims.clear();
  const Shape none(high.size(), 0);
  whole.value = builder.pad(whole.value, builder.constant("-1", element), none, high, none);
  Sharded result = reshard(whole, indices.tiling);
  result.shape = indices.shape;
  return result;
}

}  // namespace

void partition_scatter(Partitioner& p, const OpView& op) {
  const IndexedAccess access(op);
  const std::size_t count = access.inputs();
  Many operands;
  Many updates;
  for (std::size_t i = 0; i < count; ++i) {
    operands.push_back(p.operand(op, i));
    updates.push_back(p.operand(op, count + 1 + i));
  }
  make_alike(operands);
  make_alike(updates);
  const ScatterTask task{op,
                         access,
                         operands,
                         with_void_padding(p.operand(op, count)),
                         updates,
                         p.tiling_of_result(op, 0),
                         access.slice_sizes()};
  const Many made = partition_within(task);
  for (std::size_t i = 0; i < count; ++i) {
    p.set_result(op, i, reshard(made[i], p.tiling_of_result(op, i)));
  }
}

}  // namespace shardsim::spmd
