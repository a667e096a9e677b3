// Which algorithms there are for collectives on a network, by name.
//
//   name                kinds                                      groups
//   ring                all-gather, reduce-scatter, all-reduce     any
//   bidirectional-ring  the same                                   any
//   multi-ring          the same; all rings without a common link  any; meant for full meshes
//   halving-doubling    the same                                   a power of two of ranks
//   hierarchical        the same, all-to-all                       whole leaves of a fat tree
//   in-switch           the same                                   any, on one switch
//   collnet             the same; switches that reduce             any, where switches join devices
//   nvls-tree           all-reduce                                 several leaves of a fat tree
//   torus               the same, all-to-all                       whole dimensions of a torus
//   pat                 all-gather, reduce-scatter                 any
//   double-tree, chain  all-reduce, broadcast                      any
//   binomial-tree       the same                                   any
//   pairwise            all-to-all                                 any
//   direct              all-to-all, collective-permute             any
//
// On machines with a profile collnet needs groups over several nodes and a network that reduces,
// nvls-tree several members each on several nodes with NVSwitch of Hopper or later.
//
// Where none is asked for: torus on dimensions of a torus that wraps, else ring; pairwise; chain
// for a broadcast; direct for permutes. On machines with a profile: machine_flows.hpp.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "sim/network/group.hpp"
#include "sim/network/placed_group.hpp"

namespace shardsim::network {

// Phases of a group's shape, or streams: of the group, or of all groups on a graph at once. There
// the last size of the shape is how many ranks of a network written in place are a node.
struct Expansion {
  std::string algorithm;
  Shape shape;
  std::variant<Lanes, Schedule, OverSwitches> steps;
  bool uses_switch = false;  // as the rank behind the last
  bool over_all = false;     // ranks are positions of the mesh, whatever the groups

  [[nodiscard]] Schedule schedule() const;  // but not over switches
};

// By pairs, which is how permutes go, and all-to-alls with all messages at once.
inline constexpr const char* direct_algorithm = "direct";
// By switches between nodes.
inline constexpr const char* collnet_algorithm = "collnet";

// Not of a permute, whose pairs need not stay in groups (algorithms/permute.hpp). Throws InputError
// for an algorithm that is unknown or not for this kind or group.
[[nodiscard]] Expansion expand(const std::optional<std::string>& algorithm, CollectiveKind kind,
                               const GroupOnNetwork& group, const Place& place);

// Throws InputError for an unknown name.
void check_algorithm(const std::string& name, const Place& place);

// For permutes there is direct only. Throws InputError for another name.
void check_permute_algorithm(const std::string& name, const Place& place);

}  // namespace shardsim::network
