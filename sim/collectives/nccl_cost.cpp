#include "sim/collectives/nccl_cost.hpp"

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
  NcclTransfer(const ClusterRates& rates, const NodeSpread& spread, int compute_capability,
               const Collective& collective)
      : rates_(rates),
        spread_(spread),
        capability_(compute_capability),
        kind_(collective.kind),
        payload_(static_cast<double>(collective.payload.count())),
        wire_(static_cast<double>(
            wire_bytes_per_device(collective.kind, spread.members, collective.payload).count())) {}

  // Transfer, links and memory.
  [[nodiscard]] CostBreakdown cost(Algorithm algorithm, double share_of_data) const {
    const Times times = of(algorithm);
    std::optional<Seconds> time_inside;
    std::optional<Seconds> time_across;
    if (spread_.most > 1) time_inside = times.inside;
    if (spread_.nodes > 1) time_across = times.across;
    CostBreakdown cost;
    cost.transfer = std::max(times.inside, times.across) / share_of_data;
    cost.links = links_of(time_inside, time_across);
    if (reduces_between_nodes(algorithm)) {
      if (kind_ == CollectiveKind::reduce_scatter) cost.links.back().in /= nodes();
      if (kind_ == CollectiveKind::all_gather) cost.links.back().out /= nodes();
    }
    cost.memory = memory(algorithm);
    return cost;
  }

 private:
  struct Times {
    Seconds inside{0};
    Seconds across{0};
  };

  [[nodiscard]] Times of(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::ring:
        return {inside(wire_), across(wire_)};
      case Algorithm::tree:
        return {inside(2 * payload_ / nccl::tree_share), across(over_trees())};
      case Algorithm::nvls:
        return {in_switches(), reduced()};
      case Algorithm::nvls_tree:
        return {in_switches(), across(over_trees())};
      case Algorithm::pat:
        return {Seconds(0), across(wire_ / nccl::pat_share)};
      case Algorithm::collnet_direct:
      case Algorithm::collnet_chain:
        break;
    }
    return {inside(sent_to_heads(algorithm)), reduced()};
  }

  [[nodiscard]] MemoryTraffic memory(Algorithm algorithm) const {
    const double nics = out_of_node(algorithm) / static_cast<double>(spread_.fewest);
    if (nccl::is_nvls(algorithm)) return traffic_of_switches(kind_, payload_, nics);
    const double wire = nccl::is_collnet(algorithm) ? sent_to_heads(algorithm) + nics : wire_;
    return traffic_of_thread_blocks(kind_, wire, nics);
  }

  // Bytes.
  [[nodiscard]] double out_of_node(Algorithm algorithm) const {
    if (spread_.nodes == 1) return 0;
    if (algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree) return over_trees();
    if (!reduces_between_nodes(algorithm)) return wire_;
    return kind_ == CollectiveKind::all_gather ? payload_ / nodes() : payload_;
  }

  [[nodiscard]] bool reduces_between_nodes(Algorithm algorithm) const {
    return nccl::is_collnet(algorithm) || (algorithm == Algorithm::nvls && spread_.nodes > 1);
  }
  [[nodiscard]] double nodes() const { return static_cast<double>(spread_.nodes); }

  // Bytes of the busiest member into its node, for the sake of a network that reduces.
  [[nodiscard]] double sent_to_heads(Algorithm algorithm) const {
    if (spread_.most == 1) return 0;
    if (algorithm == Algorithm::collnet_chain) return 2 * payload_;
    const auto members = static_cast<double>(spread_.fewest);
    if (kind_ != CollectiveKind::all_reduce) return (members - 1) / members * payload_;
    const auto heads = static_cast<double>(rates_.heads_of(spread_.fewest));
    return std::max(1.0, (members + heads - 2) / heads) * payload_;
  }
  [[nodiscard]] Seconds reduced() const {
    return spread_.nodes == 1 ? Seconds(0) : rates_.across_reducing(payload_, spread_.fewest);
  }

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
  // Bytes out of the busiest node: of two trees, half the payload each, in which it has up to three
  // neighbours in one and one in the other.
  [[nodiscard]] double over_trees() const {
    constexpr std::int64_t three = 3;
    if (spread_.nodes <= three) return payload_ * static_cast<double>(spread_.nodes) / 2;
    return 2 * payload_;
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

// src/transport/nvls.cc, NVLS_NCHANNELS; of NVLS over several nodes no more than rings have.
std::int64_t nvls_thread_blocks(const nccl::Communicator& communicator, Algorithm algorithm) {
  constexpr std::int64_t hopper = 16;
  constexpr std::int64_t blackwell_in_node = 24;
  constexpr std::int64_t blackwell = 32;
  const bool is_hopper = communicator.least_compute_capability < nccl::blackwell_capability;
  if (communicator.nodes == 1) return is_hopper ? hopper : blackwell_in_node;
  const std::int64_t blocks = is_hopper ? hopper : blackwell;
  return algorithm == Algorithm::nvls ? std::min(blocks, communicator.ring_channels) : blocks;
}

// What the thread blocks of a ring let pass, however fast the links are.
Seconds ring_blocks_time(const nccl::Communicator& communicator, const nccl::Candidate& choice,
                         Bytes wire) {
  const auto limit = nccl::ring_block_limit(communicator);
  const bool moves_chunks =
      choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple;
  if (!limit || !moves_chunks || communicator.ring_channels == 0) return Seconds(0);
  return wire / (*limit * static_cast<double>(communicator.ring_channels));
}

constexpr std::int64_t collnet_threads = 640;
constexpr std::int64_t collnet_bytes_per_thread = 512;

// As few as have work for all of their threads; on the way down less work will do.
std::int64_t collnet_direct_thread_blocks(const nccl::Communicator& communicator, Bytes bytes) {
  std::int64_t blocks = std::max<std::int64_t>(communicator.ring_channels, 1);
  std::int64_t least = collnet_threads * collnet_bytes_per_thread * communicator.collnet->heads;
  constexpr std::int64_t most_to_halve = 16;
  for (std::int64_t stage = most_to_halve; stage >= 1; stage /= 2) {
    while (blocks > stage && bytes.count() < blocks * least) {
      if (blocks == stage + stage / 2) least /= 2;
      --blocks;
    }
  }
  return blocks;
}

// One for each channel, which small arrays do not need all of: src/enqueue.cc, topoGetAlgoInfo.
std::int64_t thread_blocks(const nccl::Communicator& communicator, Algorithm algorithm,
                           Protocol protocol, Bytes bytes) {
  if (nccl::is_nvls(algorithm)) return nvls_thread_blocks(communicator, algorithm);
  if (algorithm == Algorithm::collnet_direct) {
    return collnet_direct_thread_blocks(communicator, bytes);
  }
  constexpr std::int64_t threads = 512;
  constexpr std::int64_t threads_of_ll128 = 640;
  constexpr std::int64_t bytes_per_thread = 64;
  constexpr std::int64_t bytes_per_thread_of_ll = 8;  // LL128, too
  std::int64_t least = threads * bytes_per_thread;
  if (protocol == Protocol::ll128) least = threads_of_ll128 * bytes_per_thread_of_ll;
  if (protocol == Protocol::ll) least = threads * bytes_per_thread_of_ll;
  if (protocol == Protocol::ll && algorithm == Algorithm::ring) least *= communicator.ranks;
  if (algorithm == Algorithm::collnet_chain) least = collnet_threads * collnet_bytes_per_thread;
  const std::int64_t most = std::max<std::int64_t>(communicator.ring_channels, 1);
  return std::clamp<std::int64_t>(bytes.count() / least, 1, most);
}

}  // namespace

std::optional<nccl::Operation> nccl_operation(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return nccl::Operation::all_reduce;
    case CollectiveKind::all_gather:
      return nccl::Operation::all_gather;
    case CollectiveKind::reduce_scatter:
      return nccl::Operation::reduce_scatter;
    case CollectiveKind::broadcast:
      return nccl::Operation::broadcast;
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute:
      break;
  }
  return std::nullopt;
}

nccl::Request nccl_request(const Collective& collective, const Told& told) {
  const auto operation = nccl_operation(collective.kind);
  assert(operation);
  nccl::Request request;
  request.operation = *operation;
  request.bytes = collective.payload;
  request.forced = told.forced;
  return request;
}

CostBreakdown ring_or_tree_transfer(const ClusterRates& rates, const NodeSpread& spread,
                                    const Collective& collective, Algorithm algorithm,
                                    double share_of_data) {
  assert(algorithm == Algorithm::ring || algorithm == Algorithm::tree);
  // The capability is for NVSwitch.
  return NcclTransfer(rates, spread, /*compute_capability=*/0, collective)
      .cost(algorithm, share_of_data);
}

CostBreakdown nccl_cost(const NcclGroup& group, const Collective& collective, const Told& told) {
  nccl::Communicator communicator = group.communicator;
  communicator.ring_channels = std::max(communicator.ring_channels, told.forced.least_channels);
  const nccl::Selection selection =
      nccl::select(communicator, nccl_request(collective, told), told.place);
  const nccl::Candidate& choice = selection.choice();

  const int capability = communicator.least_compute_capability;
  CostBreakdown cost = NcclTransfer(group.rates, group.spread, capability, collective)
                           .cost(choice.algorithm, share_of_data(choice.algorithm, choice.protocol,
                                                                 group.spread.nodes > 1));
  const Bytes wire =
      wire_bytes_per_device(collective.kind, group.spread.members, collective.payload);
  cost.transfer = std::max(cost.transfer, ring_blocks_time(communicator, choice, wire));
  cost.algorithm = nccl::name_of(choice.algorithm);
  cost.protocol = nccl::name_of(choice.protocol);
  cost.nccl_estimate = choice.time;
  cost.launch =
      nccl::tuner_constants(communicator.version).base.of(choice.algorithm, choice.protocol);
  cost.latency = choice.latency - cost.launch;
  cost.thread_blocks =
      thread_blocks(communicator, choice.algorithm, choice.protocol, collective.payload);
  return cost;
}

}  // namespace shardsim
