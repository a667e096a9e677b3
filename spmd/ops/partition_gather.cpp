// Gathers: there are several ways to do one on tiles; the cheapest is taken, and the rest of the
// problem, within its groups of devices, is solved in the same way again.
#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "spmd/ops/indexed_groups.hpp"
#include "spmd/ops/trial.hpp"
#include "spmd/partitioner.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

// One gather, of the program or within groups.
struct GatherTask {
  const OpView& op;
  const IndexedAccess& access;
  Sharded operand;
  Sharded indices;
  Shape output_shape;
  Tiling output;
  Shape slices;
  bool may_recurse = true;
};

Sharded partition_within(const GatherTask& task);

// The same within groups, and what comes out as it lies on all devices.
Sharded solve_groups(const GatherTask& outer, const Sharded& operand, const Sharded& indices,
                     const GroupedTiling& output, const Shape& slices) {
  const Sharded made = partition_within({outer.op, outer.access, operand, indices,
                                         group_shape(output, outer.output_shape), output.tiling,
                                         slices, outer.may_recurse});
  return {made.value, outer.output_shape, ungroup(output), outer.operand.context};
}

// Operand and indices share dimensions: every device looks up only its own part.
std::optional<Sharded> over_shared_dims(GatherTask task, const SharedDims& shared,
                                        bool is_counted) {
  if (shared.operand.empty()) return {};
  const IndexedAccess& access = task.access;
  const auto tilings = split_alike(task.operand.tiling, task.indices.tiling, shared, access);
  if (!tilings) return {};
  task.operand = reshard(task.operand, tilings->operand);
  task.indices = reshard(task.indices, tilings->indices);
  Tiling output = output_from_indices(access, task.indices.tiling);
  const Tiling rest = replicate_dims(task.operand.tiling, shared.operand);
  if (const auto whole = output_from_operand(access, task.operand, rest, task.slices)) {
    output = refined_if_possible(output, *whole);
  }
  Sharded indices = is_counted
                        ? relative_to_tiles(access, task.indices, task.operand, shared.operand)
                        : task.indices;
  const GroupedTiling indices_groups = group_by(indices.tiling, shared.indices);
  const GroupedTiling operand_groups =
      align_groups(group_by(task.operand.tiling, shared.operand), indices_groups);
  const GroupedTiling output_groups = align_groups(group_by(output, shared.output), indices_groups);
  const Sharded operand_part = within_groups(task.operand, operand_groups);
  const Sharded indices_part = within_groups(indices, indices_groups);
  return reshard(solve_groups(task, operand_part, indices_part, output_groups, task.slices),
                 task.output);
}

std::optional<Sharded> over_batch(const GatherTask& task) {
  return over_shared_dims(task, task.access.batch(), /*is_counted=*/false);
}

std::optional<Sharded> over_counted(const GatherTask& task) {
  return over_shared_dims(task, task.access.counted(), /*is_counted=*/true);
}

// Dimensions that slices take whole stay split: operand and output lie alike.
std::optional<Sharded> over_whole_slices(const GatherTask& given) {
  GatherTask task = given;
  const IndexedAccess& access = task.access;
  auto output = output_from_operand(access, task.operand, task.operand.tiling, task.slices);
  if (task.operand.tiling.is_replicated() || !output) return {};
  const Dims operand_dims = access.whole_slices(task.slices).operand;
  std::int64_t groups = 1;
  for (const std::int64_t dim : operand_dims) groups *= task.operand.tiles(dim);
  Dims output_dims;
  for (std::size_t i = 0; i < output->tiles().size(); ++i) {
    if (output->tiles()[i] != 1) output_dims.push_back(static_cast<std::int64_t>(i));
  }
  Shape slices = task.slices;
  const Shape& local = task.operand.context->builder().shape(task.operand.value);
  for (const std::int64_t dim : operand_dims) slices[at(dim)] = local[at(dim)];
  output = refined_if_possible(*output, task.output);
  const GroupedTiling output_groups = group_by(*output, output_dims);
  const GroupedTiling operand_groups =
      align_groups(group_by(task.operand.tiling, operand_dims), output_groups);
  const GroupedTiling indices_groups =
      align_groups(group_replicas(task.indices.tiling, groups,
                                  static_cast<std::int64_t>(task.operand.tiling.devices().size()),
                                  access.indices_rank(), access.indices_by_priority()),
                   output_groups);
  const Sharded operand_part = within_groups(task.operand, operand_groups);
  const Sharded indices_part = within_groups(task.indices, indices_groups);
  return reshard(solve_groups(task, operand_part, indices_part, output_groups, slices),
                 task.output);
}

// Where an index falls beyond the device's tiles; one truth value per index vector.
ValueId outside_of_tiles(const GatherTask& task, const Sharded& indices, ValueId first,
                         ValueId last, const Tiling& output) {
  Builder& builder = task.operand.context->builder();
  Sharded outside = indices;
  outside.value = builder.binary("stablehlo.or", builder.compare("LT", indices.value, first),
                                 builder.compare("GT", indices.value, last));
  outside = reshard(outside, indices_from_output(task.access, output));
  if (!task.access.has_index_vector()) return outside.value;
  TensorType type = builder.type(outside.value);
  type.dims.erase(type.dims.begin() + task.access.index_vector_dim());
  const ValueId none = builder.constant("false", {true, {}, "i1", DType::boolean, ""});
  return builder.add("stablehlo.reduce", {outside.value, none}, type,
                     {{"applies", text_attribute("stablehlo.or")},
                      {"dimensions", integers_attribute({task.access.index_vector_dim()})}});
}

ValueId last_indices(const GatherTask& task, const Sharded& indices, ValueId first,
                     const Dims& dims) {
  Builder& builder = task.operand.context->builder();
  const TensorType scalar{true, {}, "i32", DType::i32, ""};
  std::vector<ValueId> sizes;
  for (const std::int64_t dim : task.access.index_map()) {
    const bool is_split = holds(dims, dim) && task.operand.tiles(dim) > 1;
    const std::int64_t size =
        is_split ? builder.shape(task.operand.value)[at(dim)] - 1 : task.operand.shape[at(dim)];
    sizes.push_back(builder.constant(std::to_string(size), scalar));
  }
  return builder.binary("stablehlo.add", first, along_indices(task.access, indices, sizes));
}

// Groups of devices have different rows of the operand: each looks up what it has, puts zero
// elsewhere, and all add up.
struct LookupGroups {
  GroupedTiling operand;
  GroupedTiling indices;
  GroupedTiling output;
};

LookupGroups lookup_groups(const GatherTask& task, const Dims& dims) {
  const IndexedAccess& access = task.access;
  std::int64_t groups = 1;
  for (const std::int64_t dim : dims) groups *= task.operand.tiles(dim);
  const auto devices = static_cast<std::int64_t>(task.operand.tiling.devices().size());
  LookupGroups result;
  result.operand = group_by(task.operand.tiling, dims);
  const auto of_indices = [&](const Tiling& tiling) {
    return align_groups(group_replicas(tiling, groups, devices, access.indices_rank(),
                                       access.indices_by_priority()),
                        result.operand);
  };
  const auto of_output = [&](const Tiling& tiling) {
    return align_groups(group_replicas(tiling, groups, devices, access.output_rank(),
                                       access.output_by_priority(task.slices)),
                        result.operand);
  };
  result.indices = of_indices(task.indices.tiling);
  result.output = of_output(task.output);
  // Where only one of indices and output is split, the other follows.
  const bool indices_whole = result.indices.tiling.is_replicated();
  const bool output_whole = result.output.tiling.is_replicated();
  if (!indices_whole && output_whole) {
    result.output = of_output(output_from_indices(access, task.indices.tiling));
  } else if (indices_whole && !output_whole) {
    result.indices = of_indices(indices_from_output(access, task.output));
  }
  return result;
}

std::optional<Sharded> over_lookups(const GatherTask& given) {
  GatherTask task = given;
  const IndexedAccess& access = task.access;
  const auto dims = access.split_lookups(task.operand.tiling, task.slices);
  if (!dims) return {};
  Context& context = *task.operand.context;
  Builder& builder = context.builder();
  const Tiling operand_tiling = task.operand.tiling;
  const LookupGroups groups = lookup_groups(task, *dims);
  task.indices = reshard(task.indices, ungroup(groups.indices));
  const ValueId first =
      along_indices(access, task.indices, first_indices(access, task.operand, *dims));
  const ValueId last = last_indices(task, task.indices, first, *dims);
  Sharded local_indices = task.indices;
  local_indices.value = builder.binary(
      "stablehlo.subtract",
      builder.add("stablehlo.clamp", {first, task.indices.value, last}, builder.type(first)),
      first);
  const Sharded operand_part = within_groups(task.operand, groups.operand);
  const Sharded indices_part = within_groups(local_indices, groups.indices);
  Sharded made = solve_groups(task, operand_part, indices_part, groups.output, task.slices);
  ValueId outside = outside_of_tiles(task, task.indices, first, last, made.tiling);
  TensorType mask = builder.type(made.value);
  mask.element = "i1";
  mask.dtype = DType::boolean;
  outside = builder.add("stablehlo.broadcast_in_dim", {outside}, mask,
                        {{"dims", integers_attribute(access.connected().output)}});
  const ValueId zeros = builder.broadcast_scalar(builder.zero(builder.type(made.value)), mask.dims);
  made.value = all_reduce_along(context, builder.select(outside, zeros, made.value), operand_tiling,
                                *dims, "add");
  return reshard(made, task.output);
}

// Every device looks up for its part of the indices.
std::optional<Sharded> over_indices(const GatherTask& given) {
  GatherTask task = given;
  const IndexedAccess& access = task.access;
  if (task.indices.tiling.is_replicated()) return {};
  const SharedDims passing = access.passing();
  const Tiling from_output =
      tiling_along(task.output, passing.output, passing.indices, access.indices_rank());
  task.indices = reshard(task.indices, refined_if_possible(task.indices.tiling, from_output));
  Tiling output =
      tiling_along(task.indices.tiling, passing.indices, passing.output, access.output_rank());
  if (output.is_replicated()) return {};
  output = refined_if_possible(output, task.output);
  const GroupedTiling output_groups = group_by(output, passing.output);
  const GroupedTiling indices_groups =
      align_groups(group_by(task.indices.tiling, passing.indices), output_groups);
  std::int64_t groups = 1;
  for (const std::int64_t dim : passing.indices) groups *= task.indices.tiles(dim);
  const GroupedTiling operand_groups =
      align_groups(group_replicas(task.operand.tiling, groups,
                                  static_cast<std::int64_t>(task.indices.tiling.devices().size()),
                                  access.operand_rank(),
                                  access.operand_by_priority(task.operand.tiling, task.slices)),
                   output_groups);
  const Sharded operand_part = within_groups(task.operand, operand_groups);
  const Sharded indices_part = within_groups(task.indices, indices_groups);
  return reshard(solve_groups(task, operand_part, indices_part, output_groups, task.slices),
                 task.output);
}

using Method = std::optional<Sharded> (*)(const GatherTask&);
// The first two cost nothing and come first.
constexpr std::array<Method, 5> methods = {over_batch, over_counted, over_whole_slices,
                                           over_lookups, over_indices};

TrialCost cost_of(Method method, const GatherTask& task) {
  if (method == over_batch || method == over_counted) return {0, 0};
  Trial trial(task.operand.context->devices());
  GatherTask scratch = task;
  scratch.operand = trial.argument(task.operand);
  scratch.indices = trial.argument(task.indices);
  scratch.may_recurse = false;
  const auto made = method(scratch);
  return made ? trial.cost("stablehlo.gather", {*made}) : TrialCost{};
}

Sharded gather_whole(const GatherTask& task) {
  Builder& builder = task.operand.context->builder();
  TensorType type = builder.type(task.operand.value);
  type.dims = task.output_shape;
  AttributeList attributes;
  for (const auto& attribute : task.op.op().attributes) {
    if (attribute.name == "slice_sizes" || attribute.name.rfind("sdy.", 0) == 0) continue;
    attributes.push_back(attribute);
  }
  attributes.push_back({"slice_sizes", integers_attribute(task.slices)});
  const ValueId operand = replicate(task.operand).value;
  const ValueId indices = replicate(task.indices).value;
  const ValueId made =
      builder.add("stablehlo.gather", {operand, indices}, std::move(type), std::move(attributes));
  return reshard({made, task.output_shape, Tiling(), task.operand.context}, task.output);
}

Sharded partition_within(const GatherTask& task) {
  if (!task.may_recurse) return gather_whole(task);
  std::vector<std::pair<TrialCost, Method>> by_cost;
  for (const Method method : methods) by_cost.emplace_back(cost_of(method, task), method);
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [cost, method] : by_cost) {
    if (auto made = method(task)) return *made;
  }
  return gather_whole(task);
}

}  // namespace

void partition_gather(Partitioner& p, const OpView& op) {
  const IndexedAccess access(op);
  GatherTask task{op,
                  access,
                  p.operand(op, 0),
                  p.operand(op, 1),
                  op.result(0),
                  p.tiling_of_result(op, 0),
                  access.slice_sizes()};
  if (task.operand.value == task.indices.value) {
    task.indices.value = p.builder().copy(task.indices.value);
  }
  p.set_result(op, 0, partition_within(task));
}

}  // namespace shardsim::spmd
