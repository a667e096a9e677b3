#include "sim/network/algorithms/by_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"
#include "sim/network/algorithms/collnet.hpp"
#include "sim/network/algorithms/halving_doubling.hpp"
#include "sim/network/algorithms/hierarchical.hpp"
#include "sim/network/algorithms/in_switch.hpp"
#include "sim/network/algorithms/nvls_tree.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/pat.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/algorithms/torus.hpp"
#include "sim/network/algorithms/tree.hpp"

namespace shardsim::network {
namespace {

using Group = const GroupOnNetwork&;
using Steps = std::variant<Lanes, Schedule, OverSwitches>;

// Of a collective that an algorithm does not do there is no expansion.
struct Algorithm {
  const char* name;
  Steps (*all_gather)(Group);
  Steps (*reduce_scatter)(Group);
  Steps (*all_reduce)(Group);
  Steps (*all_to_all)(Group);
  Steps (*broadcast)(Group);
  std::string (*lacks)(Group);  // what the group is not; empty: nothing
};

constexpr auto any_group = [](Group) -> std::string { return ""; };

std::string unless(bool suits, const char* what) { return suits ? "" : what; }

Shape nodes_of(Group group) { return {group.ranks / group.per_leaf, group.per_leaf}; }

// Strides that are one ring where there are no others.
Strides two_ways(Group group) { return group.ranks > 2 ? both_ways(group.ranks) : Strides{1}; }

constexpr auto algorithms = std::to_array<Algorithm>({
    {"ring", [](Group g) -> Steps { return ring_all_gather(g.ranks); },
     [](Group g) -> Steps { return ring_reduce_scatter(g.ranks); },
     [](Group g) -> Steps { return ring_all_reduce(g.ranks); }, nullptr, nullptr, any_group},
    {"bidirectional-ring", [](Group g) -> Steps { return ring_all_gather(g.ranks, two_ways(g)); },
     [](Group g) -> Steps { return ring_reduce_scatter(g.ranks, two_ways(g)); },
     [](Group g) -> Steps { return ring_all_reduce(g.ranks, two_ways(g)); }, nullptr, nullptr,
     any_group},
    {"multi-ring", [](Group g) -> Steps { return ring_all_gather(g.ranks, all_strides(g.ranks)); },
     [](Group g) -> Steps { return ring_reduce_scatter(g.ranks, all_strides(g.ranks)); },
     [](Group g) -> Steps { return ring_all_reduce(g.ranks, all_strides(g.ranks)); }, nullptr,
     nullptr, any_group},
    {"halving-doubling", [](Group g) -> Steps { return doubling_all_gather(g.ranks); },
     [](Group g) -> Steps { return halving_reduce_scatter(g.ranks); },
     [](Group g) -> Steps { return halving_doubling_all_reduce(g.ranks); }, nullptr, nullptr,
     [](Group g) { return unless(can_halve(g.ranks), "a group whose size is a power of two"); }},
    {"hierarchical",
     [](Group g) -> Steps { return hierarchical_all_gather(nodes_of(g)[0], nodes_of(g)[1]); },
     [](Group g) -> Steps { return hierarchical_reduce_scatter(nodes_of(g)[0], nodes_of(g)[1]); },
     [](Group g) -> Steps { return hierarchical_all_reduce(nodes_of(g)[0], nodes_of(g)[1]); },
     [](Group g) -> Steps { return hierarchical_all_to_all(nodes_of(g)[0], nodes_of(g)[1]); },
     nullptr,
     [](Group g) { return unless(g.per_leaf > 1, "a group that fills leaves of a fat tree"); }},
    {"in-switch", [](Group g) -> Steps { return in_switch_all_gather(g.ranks); },
     [](Group g) -> Steps { return in_switch_reduce_scatter(g.ranks); },
     [](Group g) -> Steps { return in_switch_all_reduce(g.ranks); }, nullptr, nullptr,
     [](Group g) { return unless(g.kind == NetworkKind::switched, "devices on one switch"); }},
    {collnet_algorithm, [](Group) -> Steps { return OverSwitches{collnet_all_gather}; },
     [](Group) -> Steps { return OverSwitches{collnet_reduce_scatter}; },
     [](Group) -> Steps { return OverSwitches{collnet_all_reduce}; }, nullptr, nullptr,
     [](Group g) { return g.collnet_lacks; }},
    {"nvls-tree", nullptr, nullptr,
     [](Group) -> Steps { return OverSwitches{nvls_tree_all_reduce}; }, nullptr, nullptr,
     [](Group g) { return g.nvls_tree_lacks; }},
    {"torus", [](Group g) -> Steps { return torus_all_gather(g.dimensions); },
     [](Group g) -> Steps { return torus_reduce_scatter(g.dimensions); },
     [](Group g) -> Steps { return torus_all_reduce(g.dimensions); },
     [](Group g) -> Steps { return torus_all_to_all(g.dimensions); }, nullptr,
     [](Group g) {
       return unless(!g.dimensions.empty(), "a group that fills dimensions of a torus");
     }},
    {"pat", [](Group g) -> Steps { return pat_all_gather(g.ranks); },
     [](Group g) -> Steps { return pat_reduce_scatter(g.ranks); }, nullptr, nullptr, nullptr,
     any_group},
    {"double-tree", nullptr, nullptr,
     [](Group g) -> Steps { return tree_all_reduce(double_tree(g.ranks)); }, nullptr,
     [](Group g) -> Steps { return tree_broadcast(double_tree(g.ranks)); }, any_group},
    {"chain", nullptr, nullptr, [](Group g) -> Steps { return tree_all_reduce({chain(g.ranks)}); },
     nullptr, [](Group g) -> Steps { return tree_broadcast({chain(g.ranks)}); }, any_group},
    {"binomial-tree", nullptr, nullptr,
     [](Group g) -> Steps { return binomial_all_reduce(g.ranks); }, nullptr,
     [](Group g) -> Steps { return binomial_broadcast(g.ranks); }, any_group},
    {"pairwise", nullptr, nullptr, nullptr,
     [](Group g) -> Steps { return pairwise_all_to_all(g.ranks); }, nullptr, any_group},
    {direct_algorithm, nullptr, nullptr, nullptr,
     [](Group g) -> Steps { return direct_all_to_all(g.ranks); }, nullptr, any_group},
});

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.emplace_back(algorithm.name);
  return names;
}

const Algorithm* find(const std::string& name) {
  const auto* found = std::find_if(algorithms.begin(), algorithms.end(),
                                   [&](const Algorithm& a) { return a.name == name; });
  return found == algorithms.end() ? nullptr : found;
}

std::string default_name(CollectiveKind kind, Group group) {
  if (kind == CollectiveKind::broadcast) return "chain";
  const bool is_torus = group.kind == NetworkKind::torus && group.wraps;
  if (is_torus && !group.dimensions.empty()) return "torus";
  return kind == CollectiveKind::all_to_all ? "pairwise" : "ring";
}

auto expansion_of(const Algorithm& algorithm, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return algorithm.all_gather;
    case CollectiveKind::reduce_scatter:
      return algorithm.reduce_scatter;
    case CollectiveKind::all_to_all:
      return algorithm.all_to_all;
    case CollectiveKind::broadcast:
      return algorithm.broadcast;
    default:
      return algorithm.all_reduce;
  }
}

[[noreturn]] void fail_kind(const std::string& name, CollectiveKind kind, const Place& place) {
  std::vector<std::string> others;
  for (const Algorithm& other : algorithms) {
    if (expansion_of(other, kind) != nullptr) others.emplace_back(other.name);
  }
  throw InputError(place, fmt::format("\"{}\" does no {}; for that there are {}", name,
                                      name_of(kind), fmt::join(others, ", ")));
}

}  // namespace

Schedule Expansion::schedule() const {
  if (const auto* lanes = std::get_if<Lanes>(&steps)) return schedule_of(shape, *lanes);
  return std::get<Schedule>(steps);
}

void check_algorithm(const std::string& name, const Place& place) {
  const std::vector<std::string> names = known_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw InputError(
      place, fmt::format("unknown algorithm \"{}\"; known are {}", name, fmt::join(names, ", ")),
      closest(name, names));
}

void check_permute_algorithm(const std::string& name, const Place& place) {
  if (name == direct_algorithm) return;
  throw InputError(place,
                   fmt::format("\"{}\" does no {}; for that there is {}", name,
                               name_of(CollectiveKind::collective_permute), direct_algorithm));
}

Expansion expand(const std::optional<std::string>& algorithm, CollectiveKind kind,
                 const GroupOnNetwork& group, const Place& place) {
  const std::string name = algorithm.value_or(default_name(kind, group));
  check_algorithm(name, place);
  if (group.ranks == 1) return {name, {1}, Lanes{}};
  const Algorithm* found = find(name);
  if (found == nullptr || expansion_of(*found, kind) == nullptr) fail_kind(name, kind, place);
  const std::string lacking = found->lacks(group);
  if (!lacking.empty()) throw InputError(place, fmt::format("\"{}\" needs {}", name, lacking));
  Shape shape{group.ranks};
  if (name == "torus") shape = group.dimensions;
  if (name == "hierarchical" || name == "nvls-tree") shape = nodes_of(group);
  return {name, shape, expansion_of(*found, kind)(group), name == "in-switch"};
}

}  // namespace shardsim::network
