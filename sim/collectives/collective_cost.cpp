#include "sim/collectives/collective_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "sim/collectives/cluster_cost.hpp"
#include "sim/collectives/network_cost.hpp"
#include "sim/collectives/slices_cost.hpp"
#include "sim/collectives/torus_cost.hpp"
#include "sim/collectives/tpu_choice.hpp"
#include "sim/collectives/xla_sol.hpp"

namespace shardsim {
namespace {

// All of what a scheduler reckons with counts as transfer.
CostBreakdown scheduler_cost(const Placement& placement, const Collective& collective,
                             const CostBreakdown& ours) {
  const std::optional<tpu::Choice> choice = tpu_choice(placement, collective);
  if (!choice) {
    throw InputError({"", "/machine"},
                     fmt::format("what the TPU compiler's scheduler makes of this collective on {} "
                                 "is not known",
                                 placement.machine().profile.name));
  }
  CostBreakdown cost;
  cost.algorithm = choice->describe(collective.kind);
  cost.transfer = choice->scheduler_latency;
  cost.links = ours.links;
  cost.memory = ours.memory;
  cost.thread_blocks = ours.thread_blocks;
  return cost;
}

}  // namespace

CollectiveCosts::CollectiveCosts(const Placement& placement, const CostOptions& options)
    : placement_(placement),
      folding_(options.folding),
      told_(placement, options.told),
      is_simulated_(placement.is_by_flows()) {
  if (is_simulated_) {
    (void)flows();  // says what cannot be simulated
  } else if (placement.machine().slices > 1) {
    slices_ = std::make_unique<SlicesCosts>(placement);
  } else if (!placement.machine().torus) {
    cluster_ = std::make_unique<ClusterCosts>(placement);
  }
}

CollectiveCosts::~CollectiveCosts() = default;
CollectiveCosts::CollectiveCosts(CollectiveCosts&&) noexcept = default;

NetworkCosts& CollectiveCosts::flows() {
  if (!network_) network_ = std::make_unique<NetworkCosts>(placement_, folding_);
  return *network_;
}

CostBreakdown CollectiveCosts::cost_on_machine(const Collective& collective, const Told& told) {
  if (collective.kind == CollectiveKind::broadcast && placement_.machine().torus) {
    throw InputError({"", "/kind"}, "what the TPU compiler makes of a broadcast is not known");
  }
  if (cluster_) return cluster_->cost(collective, told);
  if (slices_) return slices_->cost(collective);
  CostBreakdown cost =
      is_simulated_ ? flows().cost(collective, told) : torus_cost(placement_, collective);
  cost.launch = placement_.machine().profile.collective_launch.value;
  return cost;
}

CostBreakdown CollectiveCosts::cost(const Collective& collective) {
  const Told told = told_.of(collective);
  if (!placement_.moves_devices()) return cost_on_devices(collective, told);
  return cost_on_devices(placement_.on_devices(collective), told);
}

CostBreakdown CollectiveCosts::cost_on_devices(const Collective& collective, const Told& told) {
  CostBreakdown cost = cost_on_machine(collective, told);
  if (cost.links.empty()) {
    CostBreakdown nothing;
    nothing.algorithm = "nothing to send";
    return nothing;
  }
  switch (placement_.model().estimator) {
    case Estimator::tpu_scheduler:
      return scheduler_cost(placement_, collective, cost);
    case Estimator::xla_sol:
      return xla_sol_cost(placement_, collective, cost);
    case Estimator::shardsim:
      break;
  }
  return cost;
}

LinkLoads CollectiveCosts::link_loads(const Collective& collective) {
  return flows().link_loads(placement_.on_devices(collective), told_.of(collective));
}

std::optional<std::vector<Seconds>> CollectiveCosts::link_times(
    const Collective& collective, const std::vector<std::int64_t>& devices) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t position : devices) numbers.push_back(placement_.device(position));
  return flows().link_times(placement_.on_devices(collective), numbers, told_.of(collective));
}

CostBreakdown CollectiveCosts::flow_cost(const Collective& collective) {
  return flows().cost(placement_.on_devices(collective), told_.of(collective));
}

const MachineGraph& CollectiveCosts::graph() { return flows().graph(); }

std::vector<std::string> CollectiveCosts::notes_on_flows() {
  if (placement_.network() != nullptr || !is_simulated_) return {};
  std::vector<std::string> notes = {
      "simulated link by link, step after step, each with the latency of its longest way: too slow "
      "for small arrays, of which libraries have several steps under way"};
  for (const std::string& assumption : graph().assumptions) {
    notes.push_back("assumed: " + assumption);
  }
  return notes;
}

CostBreakdown collective_cost(const Placement& placement, const Collective& collective,
                              const CostOptions& options) {
  return CollectiveCosts(placement, options).cost(collective);
}

std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost) {
  if (levels_of(cost) == std::vector{LinkLevel::network}) {
    return "simulated link by link: links at their full bandwidth, no launch but the profile's";
  }
  std::vector<std::string> caveats;
  if (cost.curve && cost.factor == 1) {
    caveats.emplace_back("the model alone, not corrected by what machines alike have taken");
  }
  if (cost.stand_in.other_algorithm) {
    caveats.emplace_back(
        "corrected by what another algorithm or collective has taken on machines alike");
  }
  if (cost.stand_in.nodes > 0) {
    caveats.push_back(fmt::format(
        "calibrated with measurements over {} nodes, the nearest to these {} that there are",
        cost.stand_in.nodes, cost.curve->nodes));
  }
  const bool chosen = !cost.protocol.empty() || kind == CollectiveKind::all_to_all ||
                      kind == CollectiveKind::collective_permute ||
                      kind == CollectiveKind::broadcast;  // rings are what NCCL has for it
  if (cost.curve && !chosen) {
    caveats.emplace_back(
        "what the library would choose is not known: rings only, which trees and switches that "
        "reduce "
        "can beat");
  }
  return fmt::format("{}", fmt::join(caveats, "; "));
}

}  // namespace shardsim
