#include "sim/nccl/rccl_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "sim/nccl/rccl_constants.hpp"

namespace shardsim::nccl {
namespace {

// src/graph/topo.h: 16 lanes of PCIe 4; each generation doubles.
constexpr Bandwidth rccl_pcie_4{24e9};

std::int64_t steps_of(const RcclCommunicator& c, Operation operation) {
  return (operation == Operation::all_reduce ? 2 : 1) * (c.ranks - 1);
}

bool is_enabled(const RcclCommunicator& c, const Request& request, Algorithm algorithm,
                Protocol protocol) {
  const Forced& forced = request.forced;
  if (forced.algorithm.value_or(algorithm) != algorithm) return false;
  if (forced.protocol.value_or(protocol) != protocol) return false;
  if (protocol == Protocol::ll128 && !c.ll128) return false;
  if (algorithm == Algorithm::ring) return true;
  const bool reduces = request.operation == Operation::all_reduce;
  return reduces && (c.nodes > 1 || protocol != Protocol::simple);
}

Seconds latency_in_ring(const RcclCommunicator& c, Operation operation, Protocol protocol) {
  const RcclConstants& constants = rccl_constants();
  Seconds inside = of(constants.xgmi, Algorithm::ring, protocol);
  if (c.nodes > 1) {
    const Seconds post = c.cpu == Cpu::amd ? network_post_amd : network_post;
    const double posts = protocol == Protocol::simple ? network_posts_of_simple : 1;
    inside = std::max(inside, post * posts);
  }
  const Algorithm row = c.ranks == c.nodes ? Algorithm::tree : Algorithm::ring;
  const std::int64_t across = (operation == Operation::all_reduce ? 2 : 1) * (c.nodes - 1);
  return inside * static_cast<double>(steps_of(c, operation) - across) +
         of(constants.network, row, protocol) * static_cast<double>(across);
}

Seconds latency_in_tree(const RcclCommunicator& c, Protocol protocol) {
  const RcclConstants& constants = rccl_constants();
  const std::int64_t local = c.ranks / c.nodes;
  const auto neighbours = static_cast<double>(local - 1);
  const double levels = std::floor(std::log2(static_cast<double>(c.nodes)));
  return (of(constants.xgmi, Algorithm::tree, protocol) * neighbours +
          of(constants.network, Algorithm::tree, protocol) * levels) *
         2.0;
}

Candidate rccl_candidate(const RcclCommunicator& c, const Request& request, Algorithm algorithm,
                         Protocol protocol) {
  const RcclConstants& constants = rccl_constants();
  const bool ring = algorithm == Algorithm::ring;
  const RcclShares& shares = c.nodes <= 2 ? constants.two_nodes : constants.more_nodes;
  double share = of(shares, algorithm, protocol);
  if (!ring) share *= of(constants.tree, protocol, request.bytes) / 2;
  if (ring && c.nodes > 1) share *= of(constants.ring, protocol, request.bytes);
  if (ring) {
    share *= static_cast<double>(c.ranks) / static_cast<double>(steps_of(c, request.operation));
  }
  Candidate candidate{algorithm, protocol, of(constants.base, algorithm, protocol), c.links * share,
                      Seconds(0)};
  candidate.latency +=
      ring ? latency_in_ring(c, request.operation, protocol) : latency_in_tree(c, protocol);
  candidate.time = candidate.latency + request.bytes / candidate.bandwidth;
  return candidate;
}

bool is_within(const SizeRange& range, double bytes, double growth = 1) {
  return bytes > static_cast<double>(range.above) &&
         bytes <= static_cast<double>(range.to) * growth;
}

// What sizes make of the protocol that the model chose.
Protocol protocol_by_size(const RcclCommunicator& c, const Request& request, Protocol chosen) {
  const RcclConstants& constants = rccl_constants();
  const bool reduces_all = request.operation == Operation::all_reduce;
  const bool scatters = request.operation == Operation::reduce_scatter;
  const std::int64_t per_rank = request.bytes.count() / c.ranks;
  const auto bytes = static_cast<double>(reduces_all ? request.bytes.count() : per_rank);
  if (c.nodes == 1) {
    const auto limit = static_cast<double>(rccl_reduce_scatter_ll_bytes);
    return scatters && bytes <= limit ? Protocol::ll : chosen;
  }
  const ProtocolRanges& ranges = reduces_all ? constants.all_reduce
                                 : scatters  ? constants.reduce_scatter
                                             : constants.all_gather;
  const double growth = reduces_all && c.nodes > 2 ? rccl_ll128_growth : 1;
  if (c.ll128 && is_within(ranges.ll128, bytes, growth)) return Protocol::ll128;
  return is_within(ranges.ll, bytes) ? Protocol::ll : Protocol::simple;
}

Cpu rccl_cpu(HostCpu cpu) { return cpu == HostCpu::amd ? Cpu::amd : Cpu::intel; }

}  // namespace

RcclCommunicator describe_rccl(const ClusterProfile& cluster, const NodeSpread& spread) {
  assert(cluster.rccl && spread.members >= 2);
  const RcclProfile& rccl = *cluster.rccl;
  RcclCommunicator communicator;
  communicator.ranks = spread.members;
  communicator.nodes = spread.nodes;
  const auto generation = static_cast<double>(rccl.pcie_generation.value - 4);
  communicator.links = spread.fewest == 1
                           ? rccl_pcie_4 * std::exp2(generation)
                           : rccl.link_bandwidth.value * static_cast<double>(spread.fewest - 1);
  communicator.cpu = rccl_cpu(rccl.cpu.value);
  if (spread.nodes > 1) {
    const std::int64_t nics = cluster.scale_out->nics_per_node.value;
    communicator.ll128 = nics == 4 || nics == 8;
  }
  return communicator;
}

std::vector<Candidate> rccl_candidates(const RcclCommunicator& communicator,
                                       const Request& request) {
  std::vector<Candidate> candidates;
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::ring}) {
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      if (!is_enabled(communicator, request, algorithm, protocol)) continue;
      candidates.push_back(rccl_candidate(communicator, request, algorithm, protocol));
    }
  }
  return candidates;
}

Candidate rccl_choice(const RcclCommunicator& communicator, const Request& request,
                      const Place& place) {
  const std::vector<Candidate> candidates = rccl_candidates(communicator, request);
  if (candidates.empty()) {
    throw InputError(
        place, fmt::format("RCCL cannot do {} on these {} ranks of {} so: it has rings, for "
                           "AllReduce trees, which in one node are not Simple, and LL128 over "
                           "several nodes",
                           name_of(request.operation), communicator.ranks,
                           communicator.nodes == 1 ? "one node" : "several nodes"));
  }
  const Candidate& chosen =
      *std::min_element(candidates.begin(), candidates.end(),
                        [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  if (request.forced.protocol) return chosen;
  const Protocol protocol = protocol_by_size(communicator, request, chosen.protocol);
  return rccl_candidate(communicator, request, chosen.algorithm, protocol);
}

}  // namespace shardsim::nccl
