#include "hardware_profiles/network/node_names.hpp"

#include <fmt/format.h>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Switches of a tier, as fat_tree() builds them: one for every node above, as often as wires up
// lead there.
std::string fat_tree_switch(const NetworkDescription& network, std::int64_t devices,
                            std::int64_t index) {
  const std::size_t tiers = network.shape.size();
  std::int64_t above = devices;
  std::int64_t copies = 1;
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    above /= network.shape[tier];
    if (tier > 0) copies *= network.shape[tier - 1] / network.oversubscription[tier - 1];
    const std::int64_t switches = above * copies;
    if (index >= switches) {
      index -= switches;
      continue;
    }
    if (tiers == 1) return "switch";
    if (tier == 0) return fmt::format("leaf {}", index);
    if (tier + 1 == tiers) return fmt::format("spine {}", index);
    return fmt::format("tier {} switch {}", tier + 1, index);
  }
  return fmt::format("switch {}", index);
}

}  // namespace

std::string node_name(const NetworkDescription& network, std::int64_t devices, NodeId node) {
  if (network.graph) return network.graph->names[at(node)];
  if (node < devices) return fmt::format("device {}", node);
  const std::int64_t index = node - devices;
  switch (network.kind) {
    case NetworkKind::switched:
      return "switch";
    case NetworkKind::fat_tree:
      return fat_tree_switch(network, devices, index);
    case NetworkKind::dragonfly:
      return fmt::format("group {} switch {}", index / network.shape[0], index % network.shape[0]);
    default:
      return fmt::format("switch {}", index);
  }
}

}  // namespace shardsim
