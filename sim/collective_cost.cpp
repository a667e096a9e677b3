#include "sim/collective_cost.hpp"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "sim/cluster_cost.hpp"
#include "sim/network_cost.hpp"
#include "sim/torus_cost.hpp"

namespace shardsim {
namespace {

void check_devices(const Mesh& mesh, const Machine& machine) {
  if (mesh.devices() == machine.devices) return;
  throw InputError({"", "/mesh"},
                   fmt::format("{} devices on a machine of {}", mesh.devices(), machine.devices));
}

std::vector<std::vector<TorusSpan>> assigned_spans(const Mesh& mesh, const Machine& machine) {
  check_devices(mesh, machine);
  if (!machine.torus) return {};
  std::vector<std::int64_t> sizes;
  for (const MeshAxis& axis : mesh.axes()) sizes.push_back(axis.size);
  return assign_mesh(*machine.torus, sizes, {"", "/mesh"});
}

}  // namespace

Placement::Placement(const Mesh& mesh, const Machine& machine)
    : Placement(mesh, machine, assigned_spans(mesh, machine)) {}

Placement::Placement(const Mesh& mesh, const Machine& machine,
                     std::vector<std::vector<TorusSpan>> spans)
    : mesh_(mesh), machine_(machine), spans_(std::move(spans)) {
  check_devices(mesh_, machine_);
  if (network() != nullptr) check_devices(*network(), machine_.devices, {"", "/machine"});
}

std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(const Mesh& mesh,
                                                                 const Collective& collective) {
  if (!collective.source_targets.empty()) return collective.source_targets;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  const auto& groups = collective.groups.empty() ? mesh.groups(collective.axes) : collective.groups;
  for (const auto& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      pairs.emplace_back(group[i], group[(i + 1) % group.size()]);
    }
  }
  return pairs;
}

CollectiveCosts::CollectiveCosts(const Placement& placement, NetworkOptions options)
    : placement_(placement) {
  if (placement.network() != nullptr) {
    network_ = std::make_unique<NetworkCosts>(placement, std::move(options));
  }
}

CollectiveCosts::~CollectiveCosts() = default;
CollectiveCosts::CollectiveCosts(CollectiveCosts&&) noexcept = default;

CostBreakdown CollectiveCosts::cost_on_machine(const Collective& collective) {
  if (network_) return network_->cost(collective);
  return placement_.machine().torus ? torus_cost(placement_, collective)
                                    : cluster_cost(placement_, collective);
}

CostBreakdown CollectiveCosts::cost(const Collective& collective) {
  CostBreakdown cost = cost_on_machine(collective);
  if (cost.links.empty()) return {"nothing to send", Seconds{0}, Seconds{0}, Seconds{0}, {}};
  cost.launch = placement_.machine().profile.collective_launch.value;
  return cost;
}

std::vector<LinkLoad> CollectiveCosts::link_loads(const Collective& collective) {
  assert(network_);
  return network_->link_loads(collective);
}

CostBreakdown collective_cost(const Placement& placement, const Collective& collective,
                              Folding folding) {
  return CollectiveCosts(placement, {folding, std::nullopt, {}}).cost(collective);
}

std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost) {
  if (cost.links == std::vector<LinkLevel>{LinkLevel::network}) {
    return "a network written in place: links at their full bandwidth, no cost of a launch; "
           "collectives at the same time share as if each was on all links";
  }
  const bool inside_nodes = cost.links == std::vector<LinkLevel>{LinkLevel::scale_up};
  if (kind != CollectiveKind::all_reduce || !inside_nodes) return {};
  return "all-reduces inside a node are rings only: in-switch reduction (NVLink SHARP, H100 and "
         "later) is not modelled and would be faster";
}

}  // namespace shardsim
