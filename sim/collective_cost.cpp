#include "sim/collective_cost.hpp"

#include <fmt/format.h>

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
  if (const auto* network = std::get_if<NetworkDescription>(&machine_.profile.network)) {
    graph_ = build(*network, machine_.devices, {"", "/machine"});
  }
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

CollectiveCosts::CollectiveCosts(const Placement& placement, const CostOptions& options)
    : placement_(placement), options_(options) {
  if (std::holds_alternative<ClusterProfile>(placement.machine().profile.network)) {
    on_cluster_ = std::make_unique<ClusterCosts>(placement, options);
  }
}

CollectiveCosts::CollectiveCosts(CollectiveCosts&&) noexcept = default;
CollectiveCosts::~CollectiveCosts() = default;

CostBreakdown CollectiveCosts::of(const Collective& collective) {
  CostBreakdown cost = on_cluster_          ? on_cluster_->of(collective)
                       : placement_.graph() ? network_cost(placement_, collective, options_.folding)
                                            : torus_cost(placement_, collective);
  if (!on_cluster_) cost.launch = placement_.machine().profile.collective_launch.value;
  if (!cost.links.empty()) return cost;
  CostBreakdown nothing;
  nothing.algorithm = "nothing to send";
  return nothing;
}

CostBreakdown collective_cost(const Placement& placement, const Collective& collective,
                              const CostOptions& options) {
  return CollectiveCosts(placement, options).of(collective);
}

std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost) {
  if (cost.links == std::vector<LinkLevel>{LinkLevel::network}) {
    return "a network written in place: links at their full bandwidth, no cost of a launch; "
           "collectives at the same time share as if each was on all links";
  }
  const bool known = !cost.protocol.empty() || kind == CollectiveKind::all_to_all ||
                     kind == CollectiveKind::collective_permute;
  if (!cost.curve || known) return {};
  return "what NCCL would choose is not known of this machine: rings only, which trees and "
         "switches that reduce can beat";
}

}  // namespace shardsim
