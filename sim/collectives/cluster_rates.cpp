#include "sim/collectives/cluster_rates.hpp"

#include <algorithm>
#include <map>
#include <variant>

namespace shardsim {

Seconds ClusterRates::inside(double bytes, std::int64_t members) const {
  const double rate = bandwidth_inside(cluster_, members).count();
  return Seconds(bytes / (rate * cluster_.scale_up.efficiency.value));
}

Seconds ClusterRates::across(double bytes, std::int64_t members) const {
  const double rate = ways_of(members) * ways_out(cluster_).bandwidth.count();
  return Seconds(bytes / (rate * cluster_.scale_out->efficiency.value));
}

Seconds ClusterRates::across_reducing(double bytes, std::int64_t members) const {
  const double rate = ways_of(members) * ways_out(cluster_).bandwidth.count();
  return Seconds(bytes / (rate * cluster_.scale_out->reduction->efficiency.value));
}

std::int64_t ClusterRates::heads_of(std::int64_t members) const {
  return std::min(members, ways_out(cluster_).per_node);
}

double ClusterRates::ways_of(std::int64_t members) const {
  const std::int64_t ways = std::min(busy_per_node_, ways_out(cluster_).per_node);
  return static_cast<double>(members * ways) / static_cast<double>(busy_per_node_);
}

double ClusterRates::nics_of(std::int64_t members) const {
  const std::int64_t of_a_way =
      cluster_.scale_out->nics_per_node.value / ways_out(cluster_).per_node;
  return ways_of(members) * static_cast<double>(of_a_way);
}

std::vector<LinkUse> links_of(std::optional<Seconds> inside, std::optional<Seconds> across) {
  const Seconds longest = std::max(inside.value_or(Seconds(0)), across.value_or(Seconds(0)));
  const auto share = [&](Seconds time) {
    return longest > Seconds(0) ? time.count() / longest.count() : 1.0;
  };
  std::vector<LinkUse> links;
  if (inside) links.push_back({LinkLevel::scale_up, share(*inside), share(*inside)});
  if (across) links.push_back({LinkLevel::scale_out, share(*across), share(*across)});
  return links;
}

std::int64_t busy_per_node(const Machine& machine, const Collective& collective) {
  const std::int64_t per_node =
      std::get<ClusterProfile>(machine.profile.network).devices_per_node.value;
  if (collective.groups.empty()) return std::min(per_node, machine.devices);
  std::map<std::int64_t, std::int64_t> busy;
  std::int64_t most = 1;
  for (const auto& group : collective.groups) {
    for (const std::int64_t device : group) most = std::max(most, ++busy[device / per_node]);
  }
  return most;
}

}  // namespace shardsim
