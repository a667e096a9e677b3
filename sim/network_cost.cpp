#include "sim/network_cost.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
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

std::vector<LinkLoad> NetworkCosts::link_loads(const Collective& collective) {
  const CostBreakdown whole = cost(collective);
  try {
    const network::Traffic traffic = traffic_on_graph(
        collective, expand(collective, network::group_on(network_, placement_.mesh(), collective)));
    std::vector<LinkLoad> loads;
    for (const NetworkLink& link : graph_->links()) loads.push_back({link, Bytes(0), 0});
    for (const network::TrafficStream& stream : traffic.streams) {
      const network::Messages& messages = traffic.kinds[stream.kind];
      const Bytes sent = messages.count(collective.payload) * messages.bytes(collective.payload);
      for (const network::Crossing& crossing : traffic.crossings_of(stream)) {
        loads[at(crossing.link)].bytes += sent;
      }
    }
    for (LinkLoad& load : loads) {
      if (load.bytes == Bytes(0)) continue;
      load.busy = (load.bytes / load.link.wire.bandwidth).count() /
                  (whole.latency + whole.transfer).count();
    }
    return loads;
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
  const network::GroupOnNetwork group = network::group_on(network_, placement_.mesh(), collective);
  const network::Expansion expansion = expand(collective, group);
  const auto* lanes = std::get_if<network::Lanes>(&expansion.steps);
  if (lanes != nullptr && is_folded(options_)) {
    auto traffic = network::symmetric_traffic(network_, placement_.machine().devices,
                                              group.dimensions, expansion.shape, *lanes);
    if (traffic) return {expansion.algorithm, std::move(*traffic)};
  }
  network::Traffic traffic = traffic_on_graph(collective, expansion);
  return {expansion.algorithm, is_folded(options_) ? network::fold(traffic) : std::move(traffic)};
}

network::Expansion NetworkCosts::expand(const Collective& collective,
                                        const network::GroupOnNetwork& group) const {
  if (collective.kind != CollectiveKind::collective_permute) {
    return network::expand(options_.algorithm, collective.kind, group, options_.algorithm_place);
  }
  if (options_.algorithm) {
    network::check_permute_algorithm(*options_.algorithm, options_.algorithm_place);
  }
  const std::int64_t devices = placement_.mesh().devices();
  return {network::permute_algorithm,
          {devices},
          network::permute(devices, permute_pairs(placement_.mesh(), collective))};
}

network::Traffic NetworkCosts::traffic_on_graph(const Collective& collective,
                                                const network::Expansion& expansion) {
  if (!graph_) {
    graph_ = build(network_, placement_.machine().devices, machine_place);
    router_.emplace(*graph_, route_choice(network_.kind));
  }
  return network::traffic_of(*graph_, *router_, groups_of(collective, expansion.uses_switch),
                             expansion.schedule());
}

std::vector<std::vector<NodeId>> NetworkCosts::groups_of(const Collective& collective,
                                                         bool with_switch) const {
  if (collective.kind == CollectiveKind::collective_permute) {
    // All devices as one: pairs need not stay in groups.
    std::vector<NodeId> devices(at(placement_.mesh().devices()));
    std::iota(devices.begin(), devices.end(), 0);
    return {std::move(devices)};
  }
  std::vector<std::vector<NodeId>> groups;
  for (const auto& group :
       collective.groups.empty() ? placement_.mesh().groups(collective.axes) : collective.groups) {
    groups.emplace_back(group.begin(), group.end());
    if (with_switch) groups.back().push_back(static_cast<NodeId>(placement_.machine().devices));
  }
  return groups;
}

}  // namespace shardsim
