#include "sim/network_cost.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "sim/network/algorithms/permute.hpp"
#include "sim/network/group.hpp"
#include "sim/network/symmetric.hpp"

namespace shardsim {
namespace {

const Place machine_place{"", "/machine"};

bool is_folded(const NetworkOptions& options) { return options.folding == Folding::folded; }

}  // namespace

NetworkCosts::NetworkCosts(const Placement& placement, NetworkOptions options)
    : placement_(placement), network_(*placement.network()), options_(std::move(options)) {
  if (options_.algorithm) network::check_algorithm(*options_.algorithm, options_.algorithm_place);
}

CostBreakdown NetworkCosts::cost(const Collective& collective) {
  if (collective.payload == Bytes(0)) return {};
  try {
    const Prepared& ready = prepared(collective);
    if (ready.traffic.streams.empty()) return {};
    const auto repeats =
        is_folded(options_) ? network::Repeats::skipped : network::Repeats::simulated;
    const network::FlowTime time = network::run(ready.traffic, collective.payload, repeats);
    const network::FlowTime latency = network::latency_of(ready.traffic, collective.payload);
    CostBreakdown cost;
    cost.algorithm = ready.algorithm;
    cost.latency = network::to_seconds(latency);
    cost.transfer = network::to_seconds(time - latency);
    cost.links = {LinkLevel::network};
    return cost;
  } catch (const std::range_error& error) {
    throw InputError(machine_place, error.what());
  }
}

const NetworkCosts::Prepared& NetworkCosts::prepared(const Collective& collective) {
  Key key{collective.kind, collective.axes, collective.groups, collective.source_targets};
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  return prepared_.emplace(std::move(key), prepare(collective)).first->second;
}

NetworkCosts::Prepared NetworkCosts::prepare(const Collective& collective) {
  if (collective.kind == CollectiveKind::collective_permute) return prepare_permute(collective);
  const network::GroupOnNetwork group = network::group_on(network_, placement_.mesh(), collective);
  const network::Expansion expansion =
      network::expand(options_.algorithm, collective.kind, group, options_.algorithm_place);
  const auto* lanes = std::get_if<network::Lanes>(&expansion.steps);
  if (lanes != nullptr && is_folded(options_)) {
    auto traffic = network::symmetric_traffic(network_, placement_.machine().devices,
                                              group.dimensions, expansion.shape, *lanes);
    if (traffic) return {expansion.algorithm, std::move(*traffic)};
  }
  return {expansion.algorithm,
          traffic_on_graph(groups_of(collective, expansion.uses_switch), expansion.schedule())};
}

// All devices as one group: pairs need not stay in groups.
NetworkCosts::Prepared NetworkCosts::prepare_permute(const Collective& collective) {
  if (options_.algorithm) {
    network::check_permute_algorithm(*options_.algorithm, options_.algorithm_place);
  }
  const std::int64_t size = placement_.mesh().devices();
  std::vector<NodeId> devices(static_cast<std::size_t>(size));
  std::iota(devices.begin(), devices.end(), 0);
  const network::Lanes lanes = network::permute(size, permute_pairs(placement_.mesh(), collective));
  return {network::permute_algorithm,
          traffic_on_graph({std::move(devices)}, network::schedule_of({size}, lanes))};
}

network::Traffic NetworkCosts::traffic_on_graph(const std::vector<std::vector<NodeId>>& groups,
                                                const network::Schedule& schedule) {
  if (!graph_) {
    graph_ = build(network_, placement_.machine().devices, machine_place);
    router_.emplace(*graph_, route_choice(network_.kind));
  }
  network::Traffic traffic = network::traffic_of(*graph_, *router_, groups, schedule);
  return is_folded(options_) ? network::fold(traffic) : traffic;
}

std::vector<std::vector<NodeId>> NetworkCosts::groups_of(const Collective& collective,
                                                         bool with_switch) const {
  std::vector<std::vector<NodeId>> groups;
  for (const auto& group :
       collective.groups.empty() ? placement_.mesh().groups(collective.axes) : collective.groups) {
    groups.emplace_back(group.begin(), group.end());
    if (with_switch) groups.back().push_back(static_cast<NodeId>(placement_.machine().devices));
  }
  return groups;
}

}  // namespace shardsim
