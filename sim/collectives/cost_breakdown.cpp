#include "sim/collectives/cost_breakdown.hpp"

#include <array>

namespace shardsim {

std::vector<LinkLevel> levels_of(const CostBreakdown& cost) {
  std::vector<LinkLevel> levels;
  levels.reserve(cost.links.size());
  for (const LinkUse& use : cost.links) levels.push_back(use.level);
  return levels;
}

std::string_view name_of(LinkLevel level) {
  static constexpr std::array<std::string_view, link_levels> names{
      "scale-up", "scale-out", "x", "y", "z", "chip", "network", "dcn", "host"};
  return names[static_cast<std::size_t>(level)];
}

std::string_view name_of(LinkDirection direction) {
  static constexpr std::array<std::string_view, 3> names{"out", "in", "both"};
  return names[static_cast<std::size_t>(direction)];
}

}  // namespace shardsim
