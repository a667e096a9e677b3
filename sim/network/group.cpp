#include "sim/network/group.hpp"

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// Devices at equal distances.
struct DeviceSpan {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

// Of the axes, most major first.
std::vector<DeviceSpan> spans_of(const Mesh& mesh, const std::vector<AxisRef>& parts) {
  std::vector<DeviceSpan> spans;
  for (const AxisRef& part : parts) {
    if (part.size == 1) continue;
    DeviceSpan span{part.size, mesh.axes()[at(part.axis)].size / (part.pre_size * part.size)};
    for (std::size_t axis = at(part.axis) + 1; axis < mesh.axes().size(); ++axis) {
      span.stride *= mesh.axes()[axis].size;
    }
    if (!spans.empty() && spans.back().stride == span.stride * span.size) {
      spans.back() = {spans.back().size * span.size, span.stride};
    } else {
      spans.push_back(span);
    }
  }
  return spans;
}

// The dimensions of a network, row-major, that a span fills; nothing where it does not.
Shape dimensions_of(const DeviceSpan& span, const Shape& sizes) {
  std::int64_t stride = 1;
  std::size_t end = sizes.size();
  while (end > 0 && stride < span.stride) stride *= sizes[--end];
  if (stride != span.stride) return {};
  Shape dimensions;
  std::int64_t size = 1;
  while (end > 0 && size < span.size) {
    size *= sizes[--end];
    if (sizes[end] > 1) dimensions.insert(dimensions.begin(), sizes[end]);
  }
  return size == span.size ? dimensions : Shape{};
}

Shape filled_by(const std::vector<DeviceSpan>& spans, const Shape& sizes) {
  Shape result;
  for (const DeviceSpan& span : spans) {
    const Shape dimensions = dimensions_of(span, sizes);
    if (dimensions.empty()) return {};
    result.insert(result.end(), dimensions.begin(), dimensions.end());
  }
  return result;
}

std::int64_t under_one_leaf(const std::vector<DeviceSpan>& spans, std::int64_t leaf) {
  if (spans.empty() || spans.back().stride != 1) return 1;
  const std::int64_t size = spans.back().size;
  if (size % leaf == 0) return leaf;
  return leaf % size == 0 ? size : 1;
}

bool has_switches(NetworkKind kind) {
  return kind == NetworkKind::switched || kind == NetworkKind::fat_tree ||
         kind == NetworkKind::dragonfly || kind == NetworkKind::graph;
}

}  // namespace

GroupOnNetwork group_on(const NetworkDescription& network, const Mesh& mesh,
                        const Collective& collective) {
  GroupOnNetwork group;
  group.kind = network.kind;
  group.wraps = network.wraps;
  if (!has_switches(network.kind)) group.collnet_lacks = "a network with switches";
  group.nvls_tree_lacks = "a group that fills several leaves of a fat tree";
  if (!collective.groups.empty()) {
    group.ranks = static_cast<std::int64_t>(collective.groups.front().size());
    return group;
  }
  group.ranks = Mesh::size_of(collective.axes);
  const std::vector<DeviceSpan> spans = spans_of(mesh, collective.axes);
  if (network.kind == NetworkKind::ring) group.dimensions = filled_by(spans, {mesh.devices()});
  if (network.kind == NetworkKind::torus) group.dimensions = filled_by(spans, network.shape);
  if (network.kind == NetworkKind::fat_tree) {
    group.per_leaf = under_one_leaf(spans, network.shape.front());
    const bool has_nodes = group.per_leaf > 1 && group.ranks > group.per_leaf;
    if (has_nodes) group.nvls_tree_lacks.clear();
  }
  return group;
}

}  // namespace shardsim::network
