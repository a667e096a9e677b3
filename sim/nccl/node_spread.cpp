#include "sim/nccl/node_spread.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace shardsim {
namespace {

NodeSpread spread_of(const std::vector<std::int64_t>& group, std::int64_t devices_per_node) {
  std::map<std::int64_t, std::int64_t> members;  // by node
  for (std::int64_t device : group) ++members[device / devices_per_node];
  NodeSpread spread{static_cast<std::int64_t>(group.size()),
                    static_cast<std::int64_t>(members.size()), members.begin()->second, 0};
  for (const auto& [node, count] : members) {
    spread.fewest = std::min(spread.fewest, count);
    spread.most = std::max(spread.most, count);
  }
  return spread;
}

// The spread that all groups have when every part of an axis is a digit of the device number that
// lies within a node, steps over whole nodes, or is cut by the nodes into equal runs. Then a group
// is a translation of any other by a distance that moves no border.
std::optional<NodeSpread> nested_spread(const Mesh& mesh, const std::vector<AxisRef>& parts,
                                        std::int64_t devices_per_node) {
  NodeSpread spread{Mesh::size_of(parts), 1, 1, 1};
  for (const AxisRef& part : parts) {
    const auto axis = static_cast<std::size_t>(part.axis);
    std::int64_t stride = mesh.axes()[axis].size / (part.pre_size * part.size);
    for (std::size_t i = axis + 1; i < mesh.axes().size(); ++i) stride *= mesh.axes()[i].size;
    const std::int64_t extent = stride * part.size;
    if (devices_per_node % extent == 0) continue;
    if (stride % devices_per_node == 0) {
      spread.nodes *= part.size;
    } else if (devices_per_node % stride == 0 && extent % devices_per_node == 0) {
      spread.nodes *= extent / devices_per_node;
    } else {
      return std::nullopt;
    }
  }
  spread.fewest = spread.most = spread.members / spread.nodes;
  return spread;
}

}  // namespace

std::vector<NodeSpread> node_spreads(const Mesh& mesh, const Collective& collective,
                                     std::int64_t devices_per_node) {
  if (collective.groups.empty()) {
    const auto all_alike = nested_spread(mesh, collective.axes, devices_per_node);
    if (all_alike) return {*all_alike};
  }
  std::vector<NodeSpread> spreads;
  const auto& groups = collective.groups.empty() ? mesh.groups(collective.axes) : collective.groups;
  for (const auto& group : groups) spreads.push_back(spread_of(group, devices_per_node));
  std::sort(spreads.begin(), spreads.end());
  spreads.erase(std::unique(spreads.begin(), spreads.end()), spreads.end());
  return spreads;
}

}  // namespace shardsim
