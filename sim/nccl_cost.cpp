#include "sim/nccl_cost.hpp"

#include <algorithm>
#include <cassert>

#include "sim/nccl/tuner_constants.hpp"

namespace shardsim {
namespace {

using nccl::Algorithm;
using nccl::Protocol;

// Of data in what is sent.
double share_of_data(Algorithm algorithm, Protocol protocol, bool several_nodes) {
  if (protocol == Protocol::simple) return 1;
  if (algorithm == Algorithm::ring) {
    return protocol == Protocol::ll ? nccl::ring_ll_share : nccl::ring_ll128_share;
  }
  if (protocol == Protocol::ll) return nccl::tree_ll_share;
  return several_nodes ? nccl::tree_ll128_share_across : nccl::tree_ll128_share_in_node;
}

class NcclTransfer {
 public:
  NcclTransfer(const NcclGroup& group, const Collective& collective)
      : rates_(group.rates),
        spread_(group.spread),
        capability_(group.communicator.least_compute_capability),
        kind_(collective.kind),
        payload_(static_cast<double>(collective.payload.count())),
        wire_(static_cast<double>(
            wire_bytes_per_device(collective.kind, group.spread.members, collective.payload)
                .count())) {}

  [[nodiscard]] Seconds of(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::ring:
        return std::max(inside(wire_), across(wire_));
      case Algorithm::tree:
        return std::max(inside(2 * payload_ / nccl::tree_share), over_trees());
      case Algorithm::nvls:
        return in_switches();
      case Algorithm::nvls_tree:
        return std::max(in_switches(), over_trees());
      case Algorithm::pat:
        return across(wire_ / nccl::pat_share);
      case Algorithm::collnet_direct:
      case Algorithm::collnet_chain:
        break;
    }
    assert(false);  // describe() finds no network that reduces
    return Seconds(0);
  }

 private:
  // Nothing where no node has two members.
  [[nodiscard]] Seconds inside(double bytes) const {
    if (spread_.most == 1) return Seconds(0);
    // The slowest node that sends inside may have two members: what lies between is not known.
    const std::int64_t two = 2;
    return rates_.inside(bytes, std::max(spread_.fewest, two));
  }
  [[nodiscard]] Seconds across(double bytes) const {
    return spread_.nodes == 1 ? Seconds(0) : rates_.across(bytes, spread_.fewest);
  }
  [[nodiscard]] Seconds over_trees() const {
    return across(spread_.nodes == 2 ? payload_ : 2 * payload_);
  }
  [[nodiscard]] Seconds in_switches() const {
    const auto members = static_cast<double>(spread_.fewest);
    const bool reduces_all = kind_ == CollectiveKind::all_reduce;
    const double moved = reduces_all ? 1 + 1 / members : (members - 1) / members;
    return inside(moved * payload_ / nccl::nvls_efficiency(capability_));
  }

  const ClusterRates& rates_;
  const NodeSpread& spread_;
  int capability_;
  CollectiveKind kind_;
  double payload_;
  double wire_;
};

}  // namespace

std::optional<nccl::Operation> nccl_operation(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return nccl::Operation::all_reduce;
    case CollectiveKind::all_gather:
      return nccl::Operation::all_gather;
    case CollectiveKind::reduce_scatter:
      return nccl::Operation::reduce_scatter;
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute:
      break;
  }
  return std::nullopt;
}

CostBreakdown nccl_cost(const NcclGroup& group, const Collective& collective,
                        const nccl::Forced& forced) {
  const auto operation = nccl_operation(collective.kind);
  assert(operation);
  nccl::Request request;
  request.operation = *operation;
  request.bytes = collective.payload;
  request.forced = forced;
  const nccl::Selection selection = nccl::select(group.communicator, request, {"", "/algorithm"});
  const nccl::Candidate& choice = selection.choice();
  const bool several_nodes = group.spread.nodes > 1;

  CostBreakdown cost;
  cost.algorithm = nccl::name_of(choice.algorithm);
  cost.protocol = nccl::name_of(choice.protocol);
  cost.nccl_estimate = choice.time;
  cost.launch =
      nccl::tuner_constants(group.communicator.version).base.of(choice.algorithm, choice.protocol);
  cost.latency = choice.latency - cost.launch;
  cost.transfer = NcclTransfer(group, collective).of(choice.algorithm) /
                  share_of_data(choice.algorithm, choice.protocol, several_nodes);
  if (group.spread.most > 1) cost.links.push_back(LinkLevel::scale_up);
  if (several_nodes) cost.links.push_back(LinkLevel::scale_out);
  return cost;
}

}  // namespace shardsim
