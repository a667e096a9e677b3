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

// The same within groups, as it lies on all devices; operands and results lie alike.
Many solve_groups(const ScatterTask& outer, const Many& operands, const Sharded& indices,
                  const Many& updates, const GroupedTiling& output, const Shape& slices) {
  const Many made = partition_within({outer.op, outer.access, operands, indices, updates,
                                      output.tiling, slices, outer.may_recurse});
  Many result;
  for (std::size_t i = 0; i < made.size(); ++i) {
    result.push_back(
        {made[i].value, outer.operands[i].shape, ungroup(output), outer.operands[i].context});
  }
  return result;
}

std::optional<Many> over_shared_dims(ScatterTask task, const SharedDims& shared, bool is_counted) {
  if (shared.operand.empty()) return {};
  const IndexedAccess& access = task.access;
  const auto tilings =
      split_alike(task.operands.front().tiling, task.indices.tiling, shared, access);
  if (!tilings) return {};
  task.operands = reshard_all(task.operands, tilings->operand);
  task.indices = reshard(task.indices, tilings->indices);
  Tiling updates = output_from_indices(access, task.indices.tiling);
  const Tiling rest = replicate_dims(tilings->operand, shared.operand);
  if (const auto whole = output_from_operand(access, task.operands.front(), rest, task.slices)) {
    updates = refined_if_possible(updates, *whole);
  }
  task.updates = reshard_all(task.updates, updates);
  Sharded indices =
      is_counted ? relative_to_tiles(access, task.indices, task.operands.front(), shared.operand)
                 : task.indices;
  const GroupedTiling indices_groups = group_by(indices.tiling, shared.indices);
  const GroupedTiling operand_groups =
      align_groups(group_by(tilings->operand, shared.operand), indices_groups);
  const GroupedTiling update_groups =
      align_groups(group_by(updates, shared.output), indices_groups);
  const Many operand_parts = all_within_groups(task.operands, operand_groups);
  const Many update_parts = all_within_groups(task.updates, update_groups);
  const Sharded indices_part = within_groups(indices, indices_groups);
  return reshard_all(
      solve_groups(task, operand_parts, indices_part, update_parts, operand_groups, task.slices),
      task.output);
}

std::optional<Many> over_batch(const ScatterTask& task) {
  return over_shared_dims(task, task.access.batch(), /*is_counted=*/false);
}

std::optional<Many> over_counted(const ScatterTask& task) {
  return over_shared_dims(task, task.access.counted(), /*is_counted=*/true);
}

std::optional<Many> over_whole_slices(const ScatterTask& given) {
  ScatterTask task = given;
  const IndexedAccess& access = task.access;
  const Sharded& operand = task.operands.front();
  if (operand.tiling.is_replicated()) return {};
  auto updates = output_from_operand(access, operand, operand.tiling, task.slices);
  if (!updates) return {};
  const Dims operand_dims = access.whole_slices(task.slices).operand;
  std::int64_t groups = 1;
  for (const std::int64_t dim : operand_dims) groups *= operand.tiles(dim);
  Dims update_dims;
  for (std::size_t i = 0; i < updates->tiles().size(); ++i) {
    if (updates->tiles()[i] != 1) update_dims.push_back(static_cast<std::int64_t>(i));
  }
  Shape slices = task.slices;
  const Shape& local = operand.context->builder().shape(operand.value);
  for (const std::int64_t dim : operand_dims) slices[at(dim)] = local[at(dim)];
  updates = refined_if_possible(*updates, task.updates.front().tiling);
  const GroupedTiling update_groups = group_by(*updates, update_dims);
  const GroupedTiling operand_groups =
      align_groups(group_by(operand.tiling, operand_dims), update_groups);
  const GroupedTiling indices_groups =
      align_groups(group_replicas(task.indices.tiling, groups,
                                  static_cast<std::int64_t>(operand.tiling.devices().size()),
                                  access.indices_rank(), access.indices_by_priority()),
                   update_groups);
  const Many operand_parts = all_within_groups(task.operands, operand_groups);
  const Many update_parts = all_within_groups(task.updates, update_groups);
  const Sharded indices_part = within_groups(task.indices, indices_groups);
  return reshard_all(
      solve_groups(task, operand_parts, indices_part, update_parts, operand_groups, slices),
      task.output);
}

// Groups of devices have different rows: each writes what falls into its own, as places outside of
// a tensor are not written.
std::optional<Many> over_lookups(const ScatterTask& given) {
  ScatterTask task = given;
  const IndexedAccess& access = task.access;
  const Tiling tiling = task.operands.front().tiling;
  const auto dims = access.split_lookups(tiling, task.slices);
  if (!dims) return {};
  std::int64_t groups = 1;
  for (const std::int64_t dim : *dims) groups *= tiling.tiles(dim);
  const auto devices = static_cast<std::int64_t>(tiling.devices().size());
  const GroupedTiling operand_groups = group_by(tiling, *dims);
  const auto of_indices = [&](const Tiling& of) {
    return align_groups(
        group_replicas(of, groups, devices, access.indices_rank(), access.indices_by_priority()),
        operand_groups);
  };
  const auto of_updates = [&](const Tiling& of) {
    return align_groups(group_replicas(of, groups, devices, access.output_rank(),
                                       access.output_by_priority(task.slices)),
                        operand_groups);
  };
  const Tiling update_tiling = task.updates.front().tiling;
  GroupedTiling indices_groups = of_indices(task.indices.tiling);
  GroupedTiling update_groups = of_updates(update_tiling);
  const bool indices_whole = indices_groups.tiling.is_replicated();
  const bool updates_whole = update_groups.tiling.is_replicated();
  if (!indices_whole && updates_whole) {
    update_groups = of_updates(output_from_indices(access, task.indices.tiling));
  } else if (indices_whole && !updates_whole) {
    indices_groups = of_indices(indices_from_output(access, update_tiling));
  }
  task.indices = reshard(task.indices, ungroup(indices_groups));
  Sharded local_indices = relative_to_tiles(access, task.indices, task.operands.front(), *dims);
  const Many operand_parts = all_within_groups(task.operands, operand_groups);
  const Many update_parts = all_within_groups(task.updates, update_groups);
  const Sharded indices_part = within_groups(local_indices, indices_groups);
  return reshard_all(
      solve_groups(task, operand_parts, indices_part, update_parts, operand_groups, task.slices),
      task.output);
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
  const IndexedAccess& access = task.access;
  const SharedDims passing = access.passing();
  const Tiling update_tiling = task.updates.front().tiling;
  const Tiling from_updates =
      tiling_along(update_tiling, passing.output, passing.indices, access.indices_rank());
  task.indices = reshard(task.indices, refined_if_possible(task.indices.tiling, from_updates));
  Tiling updates =
      tiling_along(task.indices.tiling, passing.indices, passing.output, access.output_rank());
  if (updates.is_replicated() || task.operands.size() != 1) return {};
  updates = refined_if_possible(updates, update_tiling);
  const auto reduction = reduction_of(
      task.op, task.operands.front().context->builder().type(task.operands.front().value));
  if (!reduction) return {};
  const GroupedTiling update_groups = group_by(updates, passing.output);
  std::int64_t groups = 1;
  for (const std::int64_t dim : passing.indices) groups *= task.indices.tiles(dim);
  const Tiling operand_tiling = task.operands.front().tiling;
  const GroupedTiling operand_groups = align_groups(
      group_replicas(
          operand_tiling, groups, static_cast<std::int64_t>(task.indices.tiling.devices().size()),
          access.operand_rank(), access.operand_by_priority(operand_tiling, task.slices)),
      update_groups);
  const GroupedTiling indices_groups =
      align_groups(group_by(task.indices.tiling, passing.indices), update_groups);
  const Tiling indices_tiling = task.indices.tiling;
  const Sharded operand =
      only_on_first(task, within_groups(task.operands.front(), operand_groups), *reduction);
  const Many update_parts = all_within_groups(task.updates, update_groups);
  const Sharded indices_part = within_groups(task.indices, indices_groups);
  Many made =
      solve_groups(task, {operand}, indices_part, update_parts, operand_groups, task.slices);
  made.front().value = all_reduce_along(*task.operands.front().context, made.front().value,
                                        indices_tiling, passing.indices, reduction->op);
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
  std::vector<std::pair<TrialCost, Method>> by_cost;
  for (const Method method : methods) by_cost.emplace_back(cost_of(method, task), method);
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [cost, method] : by_cost) {
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
