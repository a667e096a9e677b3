#include "sim/nccl/tuner.hpp"

#include <algorithm>
#include <cassert>

#include "sim/nccl/tuner_constants.hpp"

namespace shardsim::nccl {
namespace {

std::int64_t floor_log2(std::int64_t n) {
  std::int64_t log = 0;
  while (n > 1) {
    n /= 2;
    ++log;
  }
  return log;
}

std::int64_t ring_steps(const Communicator& c, Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (c.ranks - 1);
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return c.ranks - 1;
    case Operation::broadcast:
    case Operation::reduce:
      break;
  }
  return c.ranks;
}

double channels_of(const ChannelGraph& graph) { return static_cast<double>(graph.channels); }

Bandwidth all_channels(const Communicator& c, const ChannelGraph& graph) {
  return (c.nodes <= 2 ? graph.intra : graph.inter) * channels_of(graph);
}

Bandwidth ring_bandwidth(const Communicator& c, Protocol protocol) {
  const Bandwidth all = all_channels(c, c.ring);
  switch (protocol) {
    case Protocol::ll:
      return std::min(all * ring_ll_share, ll_limit(c));
    case Protocol::ll128:
      return std::min(all * ring_ll128_share,
                      tuner_constants(c.version).ring_ll128.of(c) * channels_of(c.ring));
    case Protocol::simple:
      break;
  }
  return all;
}

Bandwidth tree_bandwidth(const Communicator& c, Protocol protocol) {
  const TunerConstants& constants = tuner_constants(c.version);
  Bandwidth bandwidth =
      std::min(all_channels(c, c.tree) * tree_share, constants.tree.of(c) * channels_of(c.tree));
  if (protocol == Protocol::ll) bandwidth = std::min(bandwidth * tree_ll_share, ll_limit(c));
  if (protocol == Protocol::ll128) {
    const double share = c.nodes == 1 ? tree_ll128_share_in_node : tree_ll128_share_across;
    bandwidth = std::min(bandwidth * share, constants.tree_ll128.of(c) * channels_of(c.tree));
  }
  return c.plain_tree ? bandwidth * plain_tree_share : bandwidth;
}

Bandwidth nvls_bandwidth(const Communicator& c, Operation operation, Algorithm algorithm) {
  const double channels = channels_of(c.nvls);
  const double local = c.ranks_per_node();
  const double moved = operation == Operation::all_reduce ? 2 : (local - 1) / local;
  const Bandwidth intra = c.nvls.intra * (nvls_efficiency(c.least_compute_capability) *
                                          (channels - 1) / channels * moved);
  if (algorithm == Algorithm::nvls) return std::min(intra, c.nvls.inter) * channels;
  const Bandwidth inter = c.nvls.inter * (c.nodes <= 2 ? 2.0 : 1.0);
  return std::min({intra, inter, tuner_constants(c.version).nvls_tree.of(c)}) * channels;
}

Bandwidth collnet_direct_bandwidth(const Communicator& c, Operation operation) {
  const ChannelGraph& graph = c.collnet_direct;
  if (operation != Operation::all_reduce) {
    return std::min(graph.intra, graph.inter * collnet_direct_network_share) * c.ranks_per_node();
  }
  // Half of what more GPUs than NICs would cost is hidden.
  const double crowding = (1 + c.ranks_per_node() / channels_of(graph)) / 2;
  const Bandwidth bandwidth = graph.intra * (channels_of(graph) / crowding);
  return c.least_compute_capability >= hopper_capability ? bandwidth * collnet_direct_share
                                                         : bandwidth;
}

Bandwidth wire_bandwidth(const Communicator& c, Operation operation, Algorithm algorithm,
                         Protocol protocol) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_bandwidth(c, protocol);
    case Algorithm::tree:
      return tree_bandwidth(c, protocol);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return nvls_bandwidth(c, operation, algorithm);
    case Algorithm::collnet_direct:
      return collnet_direct_bandwidth(c, operation);
    case Algorithm::collnet_chain:
      return c.collnet_chain.intra * channels_of(c.collnet_chain);
    case Algorithm::pat:
      break;
  }
  return all_channels(c, c.tree) * pat_share;
}

// Bytes of the array for each byte that passes over the wires.
double array_share(const Communicator& c, Operation operation, Algorithm algorithm) {
  if (algorithm != Algorithm::ring && operation != Operation::all_reduce) return 1;
  if (algorithm == Algorithm::ring || algorithm == Algorithm::nvls ||
      algorithm == Algorithm::nvls_tree) {
    return static_cast<double>(c.ranks) / static_cast<double>(ring_steps(c, operation));
  }
  return 0.5;
}

// A step inside a node whose links are those of `graph`.
Seconds step_inside(const Communicator& c, const ChannelGraph& graph, Algorithm algorithm,
                    Protocol protocol) {
  const TunerConstants& constants = tuner_constants(c.version);
  if (graph.intra_path == PathType::nvlink) return constants.nvlink.of(algorithm, protocol);
  const bool tree_simple = algorithm == Algorithm::tree && protocol == Protocol::simple;
  // On POWER, so that trees stand a chance.
  if (c.cpu == Cpu::power && tree_simple) return constants.pcie.ring.simple;
  return constants.pcie.of(algorithm, protocol);
}

Seconds step_across(const Communicator& c, Algorithm algorithm, Protocol protocol) {
  const Algorithm row = c.ranks == c.nodes ? Algorithm::tree : algorithm;
  const double flushes = protocol == Protocol::simple ? 2 : 1;
  return tuner_constants(c.version).network.of(row, protocol) +
         c.graph(algorithm).network_latency * flushes;
}

Seconds pipeline_latency(const Communicator& c, Protocol protocol) {
  const bool chunks = !c.ring.same_channels && protocol == Protocol::simple;
  const Algorithm row = chunks ? Algorithm::tree : Algorithm::ring;
  const Seconds hop = c.nodes > 1 ? tuner_constants(c.version).network.of(row, protocol)
                                  : step_inside(c, c.ring, row, protocol);
  return c.ring.same_channels ? hop : hop * static_cast<double>(c.ranks);
}

Seconds ring_latency(const Communicator& c, Operation operation, Protocol protocol) {
  if (operation == Operation::broadcast || operation == Operation::reduce) {
    return pipeline_latency(c, protocol);
  }
  Seconds inside = step_inside(c, c.ring, Algorithm::ring, protocol);
  if (c.nodes > 1) {
    const Seconds post = c.cpu == Cpu::amd ? network_post_amd : network_post;
    const double posts = protocol == Protocol::simple ? network_posts_of_simple : 1;
    inside = std::max(inside, post * posts);
  }
  const double rounds = operation == Operation::all_reduce ? 2 : 1;
  const double across = rounds * static_cast<double>(c.nodes - 1);
  const auto steps = static_cast<double>(ring_steps(c, operation));
  return inside * (steps - across) + step_across(c, Algorithm::ring, protocol) * across;
}

Seconds latency_of(const Communicator& c, Operation operation, Algorithm algorithm,
                   Protocol protocol) {
  const Seconds inside = step_inside(c, c.graph(algorithm), algorithm, protocol);
  const Seconds across = step_across(c, algorithm, protocol);
  const std::int64_t local = c.ranks / c.nodes;
  const auto neighbours = static_cast<double>(local - 1);
  const auto levels = static_cast<double>(floor_log2(c.nodes));
  const Seconds base = tuner_constants(c.version).base.of(algorithm, protocol);
  switch (algorithm) {
    case Algorithm::ring:
      return base + ring_latency(c, operation, protocol);
    case Algorithm::tree:
      return base + (inside * neighbours + across * levels) * 2.0;
    case Algorithm::nvls:
      return base + inside + (c.nodes > 1 ? across : Seconds(0));
    case Algorithm::nvls_tree:
      return base + inside + across * (2 * levels);
    case Algorithm::collnet_direct:
      return base + across +
             (inside * std::min(1.0, neighbours) + collnet_direct_latency_per_peer * neighbours) *
                 2.0;
    case Algorithm::collnet_chain:
      return base + inside * (2 * neighbours) + across;
    case Algorithm::pat:
      break;
  }
  return base + across * (levels / pat_latency_divisor) +
         pat_latency_per_rank * static_cast<double>(c.ranks);
}

}  // namespace

std::vector<Estimate> tuning_table(const Communicator& communicator, Operation operation,
                                   const Forced& forced) {
  assert(communicator.ranks >= 2 && communicator.nodes >= 1);
  assert(communicator.nodes <= communicator.ranks);
  std::vector<Estimate> table;
  for (int a = 0; a < algorithms; ++a) {
    for (int p = 0; p < protocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (!exists(operation, algorithm, protocol)) continue;
      if (!why_disabled(communicator, operation, algorithm, protocol, forced).empty()) continue;
      const Bandwidth bandwidth = wire_bandwidth(communicator, operation, algorithm, protocol) *
                                  array_share(communicator, operation, algorithm);
      const Seconds latency = latency_of(communicator, operation, algorithm, protocol);
      table.push_back({algorithm, protocol, latency, bandwidth});
    }
  }
  return table;
}

}  // namespace shardsim::nccl
