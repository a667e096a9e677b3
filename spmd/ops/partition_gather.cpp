// Gathers: there are several ways to do one on tiles; the cheapest is taken, and the rest of the
// problem, within its groups of devices, is solved in the same way again.
#include <array>

#include "base/index.hpp"
#include "spmd/ops/indexed_groups.hpp"
#include "spmd/ops/trial.hpp"
#include "spmd/partitioner.hpp"

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

IndexedTensors tensors_of(const GatherTask& task) {
  return {task.access, task.operand, task.indices.tiling, task.output, task.slices};
}

// The same within groups, and what comes out as it lies on all devices.
Sharded solve_groups(GatherTask task, Sharded indices, const IndexedGroups& groups) {
  const Sharded operand_part = within_groups(task.operand, groups.operand);
  const Sharded indices_part = within_groups(indices, groups.indices);
  const Sharded made = partition_within({task.op, task.access, operand_part, indices_part,
                                         group_shape(groups.output, task.output_shape),
                                         groups.output.tiling, groups.slices, task.may_recurse});
  return {made.value, task.output_shape, ungroup(groups.output), task.operand.context};
}

std::optional<Sharded> over_shared_dims(GatherTask task, const SharedDims& shared,
                                        bool is_counted) {
  const auto split = split_shared(tensors_of(task), shared);
  if (!split) return {};
  task.operand = reshard(task.operand, split->operand);
  task.indices = reshard(task.indices, split->indices);
  const Sharded indices =
      is_counted ? relative_to_tiles(task.access, task.indices, task.operand, shared.operand)
                 : task.indices;
  return reshard(solve_groups(task, indices, split->groups), task.output);
}

std::optional<Sharded> over_batch(const GatherTask& task) {
  return over_shared_dims(task, task.access.batch(), /*is_counted=*/false);
}

std::optional<Sharded> over_counted(const GatherTask& task) {
  return over_shared_dims(task, task.access.counted(), /*is_counted=*/true);
}

std::optional<Sharded> over_whole_slices(const GatherTask& task) {
  const auto groups = split_whole_slices(tensors_of(task));
  if (!groups) return {};
  return reshard(solve_groups(task, task.indices, *groups), task.output);
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
std::optional<Sharded> over_lookups(const GatherTask& given) {
  GatherTask task = given;
  const IndexedAccess& access = task.access;
  const auto dims = access.split_lookups(task.operand.tiling, task.slices);
  if (!dims) return {};
  Context& context = *task.operand.context;
  Builder& builder = context.builder();
  const Tiling operand_tiling = task.operand.tiling;
  const IndexedGroups groups = split_lookups(tensors_of(task), *dims);
  task.indices = reshard(task.indices, ungroup(groups.indices));
  const ValueId first =
      along_indices(access, task.indices, first_indices(access, task.operand, *dims));
  const ValueId last = last_indices(task, task.indices, first, *dims);
  Sharded local_indices = task.indices;
  local_indices.value = builder.binary(
      "stablehlo.subtract",
      builder.add("stablehlo.clamp", {first, task.indices.value, last}, builder.type(first)),
      first);
  Sharded made = solve_groups(task, local_indices, groups);
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
  if (task.indices.tiling.is_replicated()) return {};
  task.indices = reshard(task.indices, refined_indices(tensors_of(task)));
  const auto groups = split_indices(tensors_of(task));
  if (!groups) return {};
  return reshard(solve_groups(task, task.indices, *groups), task.output);
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
  for (const Method method : cheapest_first(methods, [&](Method m) { return cost_of(m, task); })) {
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
