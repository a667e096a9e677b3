#include "sim/collectives/rccl_cost.hpp"

#include <algorithm>
#include <cassert>

#include "sim/collectives/nccl_cost.hpp"
#include "sim/nccl/rccl_constants.hpp"
#include "sim/nccl/rccl_selection.hpp"

namespace shardsim {
namespace {

using nccl::Algorithm;
using nccl::Protocol;

double share_of_lines(Protocol protocol) {
  constexpr double of_ll = 0.5;
  constexpr double of_ll128 = 120.0 / 128.0;
  if (protocol == Protocol::simple) return 1;
  return protocol == Protocol::ll ? of_ll : of_ll128;
}

// What the profile's step across is shorter than RCCL's constant, for all of a ring's.
Seconds fitted_excess(const ClusterRates& rates, const NodeSpread& spread,
                      const Collective& collective, const nccl::Candidate& choice) {
  const bool fitted = choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple &&
                      spread.nodes > 1 && spread.most > 1;
  if (!fitted) return Seconds(0);
  const double rounds = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  const Seconds step = nccl::of(nccl::rccl_constants().network, choice.algorithm, choice.protocol);
  return (step - rates.step_across()) * (rounds * static_cast<double>(spread.nodes - 1));
}

}  // namespace

CostBreakdown rccl_cost(const ClusterProfile& cluster, const ClusterRates& rates,
                        const NodeSpread& spread, const Collective& collective, const Told& told) {
  const nccl::Candidate choice = nccl::rccl_choice(nccl::describe_rccl(cluster, spread),
                                                   nccl_request(collective, told), told.place);

  CostBreakdown cost = ring_or_tree_transfer(rates, spread, collective, choice.algorithm,
                                             share_of_lines(choice.protocol));
  cost.algorithm = nccl::name_of(choice.algorithm);
  cost.protocol = nccl::name_of(choice.protocol);
  cost.launch = nccl::of(nccl::rccl_constants().base, choice.algorithm, choice.protocol);
  cost.latency = choice.latency - cost.launch - fitted_excess(rates, spread, collective, choice);
  return cost;
}

}  // namespace shardsim
