#include "sim/collective_cost.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "sim/cluster_cost.hpp"
#include "sim/network_cost.hpp"
#include "sim/torus_cost.hpp"
#include "sim/tpu/placed_choice.hpp"
#include "sim/xla_sol.hpp"

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

// All of what a scheduler reckons with counts as transfer.
CostBreakdown scheduler_cost(const Placement& placement, const Collective& collective,
                             CostBreakdown ours) {
  const std::optional<tpu::Choice> choice = tpu::choice_for(placement, collective);
  if (!choice) {
    throw InputError({"", "/machine"},
                     fmt::format("what the TPU compiler's scheduler makes of this collective on {} "
                                 "is not known",
                                 placement.machine().profile.name));
  }
  ours.algorithm = choice->describe(collective.kind);
  ours.launch = ours.latency = Seconds{0};
  ours.transfer = choice->scheduler_latency;
  return ours;
}

}  // namespace

std::string_view name_of(CollectiveModel model) {
  constexpr std::array<std::string_view, collective_models> names = {
      "simulated", "uncalibrated", "all-links", "tpu-scheduler", "xla-sol"};
  return names.at(static_cast<std::size_t>(model));
}

Placement::Placement(const Mesh& mesh, const Machine& machine, CollectiveModel model)
    : Placement(mesh, machine, assigned_spans(mesh, machine), model) {}

Placement::Placement(const Mesh& mesh, const Machine& machine,
                     std::vector<std::vector<TorusSpan>> spans, CollectiveModel model)
    : mesh_(mesh), machine_(machine), spans_(std::move(spans)), model_(model) {
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

CollectiveCosts::CollectiveCosts(const Placement& placement, const CostOptions& options)
    : placement_(placement) {
  if (placement.network() != nullptr) {
    network_ = std::make_unique<NetworkCosts>(placement, options.network);
  } else if (!placement.machine().torus) {
    cluster_ = std::make_unique<ClusterCosts>(placement, options.nccl);
  }
}

CollectiveCosts::~CollectiveCosts() = default;
CollectiveCosts::CollectiveCosts(CollectiveCosts&&) noexcept = default;

CostBreakdown CollectiveCosts::cost_on_machine(const Collective& collective) {
  if (cluster_) return cluster_->cost(collective);
  CostBreakdown cost = network_ ? network_->cost(collective) : torus_cost(placement_, collective);
  cost.launch = placement_.machine().profile.collective_launch.value;
  return cost;
}

CostBreakdown CollectiveCosts::cost(const Collective& collective) {
  CostBreakdown cost = cost_on_machine(collective);
  if (cost.links.empty()) {
    CostBreakdown nothing;
    nothing.algorithm = "nothing to send";
    return nothing;
  }
  switch (placement_.model()) {
    case CollectiveModel::tpu_scheduler:
      return scheduler_cost(placement_, collective, std::move(cost));
    case CollectiveModel::xla_sol:
      return xla_sol_cost(placement_, collective, std::move(cost));
    case CollectiveModel::simulated:
    case CollectiveModel::uncalibrated:
    case CollectiveModel::all_links:
      break;
  }
  return cost;
}

std::vector<LinkLoad> CollectiveCosts::link_loads(const Collective& collective) {
  assert(network_);
  return network_->link_loads(collective);
}

CostBreakdown collective_cost(const Placement& placement, const Collective& collective,
                              const CostOptions& options) {
  return CollectiveCosts(placement, options).cost(collective);
}

std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost) {
  if (cost.links == std::vector<LinkLevel>{LinkLevel::network}) {
    return "a network written in place: links at their full bandwidth, no cost of a launch; "
           "collectives at the same time share as if each was on all links";
  }
  if (!cost.curve) return {};
  std::string calibrated =
      cost.factor == 1 ? "the model alone: nothing measured on machines alike corrects it" : "";
  const bool known = !cost.protocol.empty() || kind == CollectiveKind::all_to_all ||
                     kind == CollectiveKind::collective_permute;
  if (known) return calibrated;
  return fmt::format(
      "{}{}what NCCL would choose is not known: rings only, which trees and switches "
      "that reduce can beat",
      calibrated, calibrated.empty() ? "" : "; ");
}

}  // namespace shardsim
