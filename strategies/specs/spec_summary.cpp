#include "strategies/specs/spec_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <string_view>
#include <utility>

namespace shardsim {
namespace {

constexpr double most_bytes = 1152921504606846976.0;  // 2^60

// Rows of the last shard: what the shards before it have left over, possibly none.
std::int64_t last_shard_size(std::int64_t size, const DimSharding& dim) {
  const std::int64_t block = size / dim.blocks;
  const std::int64_t shards = Mesh::size_of(dim.axes);
  const std::int64_t before = (shards - 1) * ceil_div(block, shards);
  return dim.blocks * std::max<std::int64_t>(block - before, 0);
}

bool divides(std::int64_t size, const DimSharding& dim) {
  return size % (dim.blocks * Mesh::size_of(dim.axes)) == 0;
}

bool has_gradient(DType dtype) {
  return dtype != DType::i64 && dtype != DType::i32 && dtype != DType::i8 &&
         dtype != DType::boolean;
}

// Sorted, and without the axes of one device.
AxisList as_set(AxisList axes) {
  std::erase_if(axes, [](const AxisRef& axis) { return axis.size == 1; });
  std::sort(axes.begin(), axes.end());
  return merged(axes);
}

class Communication {
 public:
  Communication(const Mesh& mesh, const std::optional<AxisList>& data_axes, bool trains)
      : mesh_(mesh), data_axes_(data_axes ? *data_axes : axes_without({}, mesh)), trains_(trains) {}

  void add(const ParameterLeaf& leaf, const AxisList& split, const AxisList& experts, Bytes shard) {
    AxisList gathered = data_part(split);
    std::erase_if(gathered, [&](const AxisRef& axis) { return overlaps_any(axis, experts); });
    const Bytes whole = shard * Mesh::size_of(gathered);
    add(CollectiveKind::all_gather, gathered, whole);
    if (!trains_ || !has_gradient(leaf.dtype)) return;
    add(CollectiveKind::reduce_scatter, gathered, whole);
    add(CollectiveKind::all_reduce, as_set(data_part(axes_without(split, mesh_))), shard);
  }

  // The axes along which a parameter that lies over `split`, its experts over `experts`, stays
  // split.
  [[nodiscard]] AxisList kept(const AxisList& split, const AxisList& experts) const {
    AxisList axes = split;
    std::erase_if(axes, [&](const AxisRef& axis) {
      return overlaps_any(axis, data_axes_) && !overlaps_any(axis, experts);
    });
    return axes;
  }

  [[nodiscard]] std::vector<SpecCollective> rows() const {
    std::vector<SpecCollective> rows;
    for (const auto& [key, row] : rows_) {
      rows.push_back(row);
      rows.back().wire_bytes_per_device =
          wire_bytes_per_device(row.kind, row.group_size, row.payload);
    }
    return rows;
  }

 private:
  [[nodiscard]] AxisList data_part(AxisList axes) const {
    std::erase_if(axes, [&](const AxisRef& axis) { return !overlaps_any(axis, data_axes_); });
    return axes;
  }

  void add(CollectiveKind kind, const AxisList& axes, Bytes payload) {
    if (axes.empty() || payload == Bytes(0)) return;
    SpecCollective& row = rows_[{kind, axes}];
    row.kind = kind;
    row.axes = axes;
    row.group_size = Mesh::size_of(axes);
    ++row.tensors;
    row.payload += payload;
  }

  const Mesh& mesh_;
  AxisList data_axes_;
  bool trains_;
  std::map<std::pair<CollectiveKind, AxisList>, SpecCollective> rows_;
};

// That split the dimension of the experts, by its name: MaxText's, flax's.
AxisList expert_axes(const ParameterLeaf& leaf, const Sharding& sharding) {
  constexpr std::array<std::string_view, 3> names = {"exp", "expert", "experts"};
  AxisList axes;
  if (!leaf.logical_axes) return axes;
  for (std::size_t d = 0; d < std::min(leaf.logical_axes->size(), leaf.shape.size()); ++d) {
    const auto& name = (*leaf.logical_axes)[d];
    if (!name || std::count(names.begin(), names.end(), *name) == 0) continue;
    const AxisList& split = sharding.dims[d].axes;
    axes.insert(axes.end(), split.begin(), split.end());
  }
  return axes;
}

// All sums of a summary are at most this one.
void check_size(double& sum, const ParameterLeaf& leaf, const Sharding& sharding) {
  auto bytes = static_cast<double>(size_of(leaf.dtype).count());
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
    bytes *= static_cast<double>(shard_size(leaf.shape[d], sharding.dims[d])) *
             static_cast<double>(Mesh::size_of(sharding.dims[d].axes));
  }
  sum += bytes;
  if (sum > most_bytes) {
    throw InputError(leaf.place, fmt::format("parameter \"{}\" brings the tree to more than 2^60 "
                                             "bytes",
                                             leaf.name));
  }
}

}  // namespace

double SpecSummary::balance() const {
  const auto max = static_cast<double>(max_bytes_per_device.count());
  return max == 0 ? 1 : mean_bytes_per_device / max;
}

double SpecSummary::replication_overhead() const {
  if (bytes == Bytes(0)) return 1;
  return static_cast<double>(max_bytes_per_device.count()) * static_cast<double>(devices) /
         static_cast<double>(bytes.count());
}

AxisList axes_without(const AxisList& used, const Mesh& mesh) {
  AxisList left;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    AxisList parts;
    std::copy_if(used.begin(), used.end(), std::back_inserter(parts),
                 [&](const AxisRef& part) { return part.axis == axis && part.size > 1; });
    std::sort(parts.begin(), parts.end());
    const std::int64_t size = mesh.whole(axis).size;
    parts.push_back({axis, size, 1});  // ends the last gap
    std::int64_t pre_size = 1;
    for (const AxisRef& part : parts) {
      if (part.pre_size > pre_size) left.push_back({axis, pre_size, part.pre_size / pre_size});
      pre_size = part.pre_size * part.size;
    }
  }
  return left;
}

SpecSummary summarize_specs(const ParameterTree& tree, const std::vector<Sharding>& shardings,
                            const Mesh& mesh, const std::optional<AxisList>& data_axes,
                            bool trains) {
  assert(shardings.size() == tree.leaves.size());
  SpecSummary summary;
  summary.devices = mesh.devices();
  Communication communication(mesh, data_axes, trains);
  double padded_bytes = 0;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = tree.leaves[i];
    const Sharding& sharding = shardings[i];
    if (!leaf.has_shape) continue;
    assert(sharding.partial.empty() && sharding.dims.size() == leaf.shape.size());
    check_size(padded_bytes, leaf, sharding);

    const AxisList split = as_set(split_axes(sharding));
    const std::int64_t shards = Mesh::size_of(split);
    const std::int64_t elements = element_count(leaf);
    std::int64_t least = 1;
    bool even = true;
    for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
      least *= last_shard_size(leaf.shape[d], sharding.dims[d]);
      even = even && divides(leaf.shape[d], sharding.dims[d]);
    }
    const std::int64_t most = shard_elements(leaf.shape, sharding);

    ++summary.leaves;
    summary.parameters += elements;
    summary.bytes += byte_count(leaf);
    (shards > 1 ? summary.sharded_parameters : summary.replicated_parameters) += elements;
    if (shards > 1) ++summary.sharded_leaves;
    if (!even) summary.indivisible.push_back(i);
    summary.max_parameters_per_device += most;
    summary.max_bytes_per_device += most * size_of(leaf.dtype);
    summary.min_bytes_per_device += least * size_of(leaf.dtype);
    // The shards of one replica are the tensor, and shards and replicas are spread evenly.
    summary.mean_bytes_per_device +=
        static_cast<double>(byte_count(leaf).count()) / static_cast<double>(shards);
    const AxisList experts = expert_axes(leaf, sharding);
    communication.add(leaf, split, experts, most * size_of(leaf.dtype));
    const AxisList kept = communication.kept(split, experts);
    if (!kept.empty()) ++summary.kept_split_leaves;
    summary.kept_split.insert(summary.kept_split.end(), kept.begin(), kept.end());
  }
  std::sort(summary.kept_split.begin(), summary.kept_split.end());
  summary.kept_split.erase(std::unique(summary.kept_split.begin(), summary.kept_split.end()),
                           summary.kept_split.end());
  summary.communication = communication.rows();
  return summary;
}

}  // namespace shardsim
