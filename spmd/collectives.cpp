#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/index.hpp"
#include "spmd/sharded.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Attribute;

Attribute groups_attribute(const DeviceGroups& groups) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::list;
  for (const std::vector<int>& group : groups) {
    attribute.items.push_back(
        integers_attribute(std::vector<std::int64_t>(group.begin(), group.end())));
  }
  return attribute;
}

// What write_reasons() makes words of.
AttributeList with_origin(const Builder& builder, ValueId operand, AttributeList attributes) {
  attributes.push_back({"spmd.origin", integer_attribute(builder.origin())});
  attributes.push_back({"spmd.moved", integer_attribute(builder.held_by(operand))});
  return attributes;
}

std::vector<ValueId> offsets_where(Context& context, const Shape& shape, const Tiling& tiling,
                                   const Dims* dims) {
  const TensorType scalar{true, {}, "i32", DType::i32, ""};
  const Shape shard = shard_shape(shape, tiling);
  std::vector<ValueId> offsets;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (tiling.tiles(dim) == 1 || (dims != nullptr && !holds(*dims, dim))) {
      offsets.push_back(context.builder().constant("0", scalar));
      continue;
    }
    std::vector<std::int64_t> by_device(at(context.devices()));
    tiling.each(
        [&](const Dims& index, int device) { by_device[at(device)] = index[i] * shard[i]; });
    offsets.push_back(scalar_by_device(context, by_device, scalar));
  }
  return offsets;
}

}  // namespace

Context::Context(Builder& builder, int devices) : builder_(&builder), groups_(1) {
  groups_.front().resize(at(devices));
  std::iota(groups_.front().begin(), groups_.front().end(), 0);
}

Context::Context(Builder& builder, DeviceGroups groups)
    : builder_(&builder), groups_(std::move(groups)) {}

DeviceGroups Context::to_program(const DeviceGroups& local) const {
  DeviceGroups result;
  result.reserve(groups_.size() * local.size());
  for (const std::vector<int>& devices : groups_) {
    for (const std::vector<int>& group : local) {
      std::vector<int>& mapped = result.emplace_back();
      for (const int device : group) mapped.push_back(devices[at(device)]);
    }
  }
  return result;
}

std::vector<std::pair<int, int>> Context::to_program(
    const std::vector<std::pair<int, int>>& local) const {
  std::vector<std::pair<int, int>> result;
  for (const std::vector<int>& devices : groups_) {
    for (const auto& [source, target] : local) {
      result.emplace_back(devices[at(source)], devices[at(target)]);
    }
  }
  return result;
}

Context& Context::grouped(const DeviceGroups& local) {
  std::unique_ptr<Context>& context = grouped_[local];
  if (!context) context = std::make_unique<Context>(*builder_, to_program(local));
  return *context;
}

ValueId all_gather(Context& context, ValueId operand, std::int64_t dim,
                   const DeviceGroups& groups) {
  Builder& builder = context.builder();
  TensorType type = builder.type(operand);
  type.dims[at(dim)] *= static_cast<std::int64_t>(groups.front().size());
  return builder.add(
      "stablehlo.all_gather", {operand}, std::move(type),
      with_origin(builder, operand,
                  {{"all_gather_dim", integer_attribute(dim)},
                   {"replica_groups", groups_attribute(context.to_program(groups))}}));
}

ValueId all_reduce(Context& context, ValueId operand, const DeviceGroups& groups,
                   std::string_view reduction) {
  Builder& builder = context.builder();
  return builder.add("stablehlo.all_reduce", {operand}, builder.type(operand),
                     with_origin(builder, operand,
                                 {{"replica_groups", groups_attribute(context.to_program(groups))},
                                  {"spmd.reduction", text_attribute(reduction)}}));
}

ValueId all_to_all(Context& context, ValueId operand, std::int64_t dim,
                   const DeviceGroups& groups) {
  Builder& builder = context.builder();
  return builder.add(
      "stablehlo.all_to_all", {operand}, builder.type(operand),
      with_origin(
          builder, operand,
          {{"split_dimension", integer_attribute(dim)},
           {"concat_dimension", integer_attribute(dim)},
           {"split_count", integer_attribute(static_cast<std::int64_t>(groups.front().size()))},
           {"replica_groups", groups_attribute(context.to_program(groups))}}));
}

ValueId collective_permute(Context& context, ValueId operand,
                           const std::vector<std::pair<int, int>>& source_targets) {
  Builder& builder = context.builder();
  DeviceGroups pairs;
  for (const auto& [source, target] : context.to_program(source_targets)) {
    pairs.push_back({source, target});
  }
  return builder.add(
      "stablehlo.collective_permute", {operand}, builder.type(operand),
      with_origin(builder, operand, {{"source_target_pairs", groups_attribute(pairs)}}));
}

ValueId all_gather_shards(Context& context, ValueId operand, const Tiling& tiling,
                          const Dims& dims) {
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (tiling.tiles(dims[i]) == 1) continue;
    operand = all_gather(context, operand, dims[i], groups_along(tiling, {dims[i]}));
  }
  return operand;
}

ValueId all_reduce_along(Context& context, ValueId operand, const Tiling& tiling, const Dims& dims,
                         std::string_view reduction) {
  const Shape extents = tiling.extents();
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (at(dims[i]) >= extents.size() || extents[at(dims[i])] == 1) continue;
    operand = all_reduce(context, operand, groups_along(tiling, {dims[i]}), reduction);
  }
  return operand;
}

double element_bytes(const TensorType& type) {
  return static_cast<double>(bits_of(type.dtype.value_or(DType::f32))) / 8;
}

ValueId scalar_by_device(Context& context, const std::vector<std::int64_t>& values,
                         const TensorType& scalar) {
  DeviceGroups local(1);
  for (int device = 0; device < context.devices(); ++device) local.front().push_back(device);
  const DeviceGroups groups = context.to_program(local);
  std::vector<std::int64_t> by_device(groups.size() * values.size());
  for (const std::vector<int>& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) by_device[at(group[i])] = values[i];
  }
  return context.builder().add("spmd.offset", {}, scalar,
                               {{"by_device", integers_attribute(by_device)}});
}

std::vector<ValueId> tile_offsets(Context& context, const Shape& shape, const Tiling& tiling) {
  return offsets_where(context, shape, tiling, nullptr);
}

std::vector<ValueId> tile_offsets(Context& context, const Shape& shape, const Tiling& tiling,
                                  const Dims& dims) {
  return offsets_where(context, shape, tiling, &dims);
}

ValueId tile_ordinal(Context& context, const Tiling& tiling, std::int64_t dim) {
  // Each tile of an array of as many elements as tiles begins at its own number.
  return offsets_where(context, tiling.tiles(), tiling, nullptr)[at(dim)];
}

}  // namespace shardsim::spmd
