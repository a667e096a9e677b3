#include "sim/nccl/tuner_constants.hpp"

#include <array>

namespace shardsim::nccl {
namespace {

constexpr Seconds us(double count) { return Seconds(count * 1e-6); }
constexpr Bandwidth gigabytes(double count) { return Bandwidth(count * 1e9); }
constexpr ScaleLimits limits(double one_node, double two_nodes, double more_nodes) {
  return {gigabytes(one_node), gigabytes(two_nodes), gigabytes(more_nodes)};
}
constexpr ScaleLimits at_any_scale(double count) { return limits(count, count, count); }

// tuning.cc of 2.30.7: baseLatencies, hwLatencies by link, then the limits of one channel,
// perChMaxRingLL128Bws, perChMaxTreeLL128Bws, perChMaxTreeBws and perChMaxNVLSTreeBws.
constexpr TunerConstants release_2_30() {
  return {
      .base = {.tree = {us(6.8), us(14), us(8.4)},
               .ring = {us(6.6), us(14), us(8.4)},
               .collnet_direct = us(0),
               .collnet_chain = us(0),
               .nvls = us(0),
               .nvls_tree = us(0),
               .pat = us(8)},
      .nvlink = {.tree = {us(0.6), us(1.25), us(4)},
                 .ring = {us(0.6), us(1.9), us(3.4)},
                 .collnet_direct = us(3.7),
                 .collnet_chain = us(2.8),
                 .nvls = us(25),
                 .nvls_tree = us(25),
                 .pat = us(4)},
      .pcie = {.tree = {us(1), us(1.9), us(4)},
               .ring = {us(1), us(2.5), us(5.7)},
               .collnet_direct = us(3.7),
               .collnet_chain = us(2.8),
               .nvls = us(0),
               .nvls_tree = us(0),
               .pat = us(4)},
      .network = {.tree = {us(5), us(8.5), us(14)},
                  .ring = {us(2.7), us(4), us(14)},
                  .collnet_direct = us(31),
                  .collnet_chain = us(30),
                  .nvls = us(18),
                  .nvls_tree = us(20.9),
                  .pat = us(14)},
      .ring_ll128 = {.volta = at_any_scale(20),
                     .ampere = at_any_scale(20),
                     .hopper = at_any_scale(36.7),
                     .blackwell = at_any_scale(40)},
      .tree_ll128 = {.volta = at_any_scale(20),
                     .ampere = at_any_scale(20),
                     .hopper = limits(36.7, 36.7, 29),
                     .blackwell = limits(55.6, 31.67, 20)},
      .tree = {.volta = limits(26.5, 18.5, 10),
               .ampere = limits(24, 23.6, 17.8),
               .hopper = limits(38.7, 41.4, 36),
               .blackwell = limits(70, 42.8, 24)},
      .nvls_tree = {.volta = limits(26.5, 18.5, 10),
                    .ampere = limits(24, 23.6, 17.8),
                    .hopper = limits(0, 57.7, 45.5),
                    .blackwell = limits(0, 96, 80)},
  };
}

constexpr TunerConstants release_2_29() {
  TunerConstants constants = release_2_30();
  constants.ring_ll128.blackwell = limits(34.5, 34.6, 34.5);
  constants.nvls_tree.blackwell.more_nodes = gigabytes(43.8);
  return constants;
}

constexpr TunerConstants release_2_28() {
  TunerConstants constants = release_2_30();
  constants.network.nvls_tree = us(14);
  constants.ring_ll128.blackwell = at_any_scale(73.4);
  constants.nvls_tree.blackwell.more_nodes = gigabytes(43.1);
  return constants;
}

// From `from` on, up to the next.
struct SizeFactor {
  std::int64_t from;
  double factor;
};
constexpr std::array ll_factors = {
    SizeFactor{64, 1},          SizeFactor{1 * KiB, 0.9},  SizeFactor{2 * KiB, 0.8},
    SizeFactor{4 * KiB, 0.7},   SizeFactor{64 * KiB, 0.6}, SizeFactor{128 * KiB, 0.5},
    SizeFactor{256 * KiB, 0.4}, SizeFactor{1 * MiB, 0.5},  SizeFactor{2 * MiB, 0.6},
    SizeFactor{4 * MiB, 0.7},   SizeFactor{8 * MiB, 0.8},  SizeFactor{16 * MiB, 0.9},
    SizeFactor{32 * MiB, 1},
};
constexpr std::array ll128_factors = {
    SizeFactor{64, 1},         SizeFactor{2 * KiB, 0.9},  SizeFactor{4 * KiB, 0.8},
    SizeFactor{32 * KiB, 0.7}, SizeFactor{64 * KiB, 0.6}, SizeFactor{4 * MiB, 0.8},
    SizeFactor{8 * MiB, 0.9},  SizeFactor{128 * MiB, 1},
};
constexpr std::array simple_factors = {
    SizeFactor{64, 0.9},       SizeFactor{8 * KiB, 0.8},   SizeFactor{16 * KiB, 0.7},
    SizeFactor{32 * KiB, 0.6}, SizeFactor{128 * KiB, 0.5}, SizeFactor{2 * MiB, 0.6},
    SizeFactor{4 * MiB, 0.7},  SizeFactor{8 * MiB, 0.8},   SizeFactor{16 * MiB, 0.7},
    SizeFactor{64 * MiB, 0.8}, SizeFactor{128 * MiB, 0.9},
};

template <class Factors>
double factor_at(const Factors& factors, std::int64_t bytes) {
  double factor = 1;
  for (const SizeFactor& step : factors) {
    if (bytes >= step.from) factor = step.factor;
  }
  return factor;
}

Seconds of_protocol(const ProtocolLatencies& latencies, Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return latencies.ll;
    case Protocol::ll128:
      return latencies.ll128;
    case Protocol::simple:
      break;
  }
  return latencies.simple;
}

}  // namespace

Seconds AlgorithmLatencies::of(Algorithm algorithm, Protocol protocol) const {
  switch (algorithm) {
    case Algorithm::tree:
      return of_protocol(tree, protocol);
    case Algorithm::ring:
      return of_protocol(ring, protocol);
    case Algorithm::collnet_direct:
      return collnet_direct;
    case Algorithm::collnet_chain:
      return collnet_chain;
    case Algorithm::nvls:
      return nvls;
    case Algorithm::nvls_tree:
      return nvls_tree;
    case Algorithm::pat:
      break;
  }
  return pat;
}

Bandwidth ScaleLimits::at(std::int64_t nodes) const {
  if (nodes == 1) return one_node;
  return nodes == 2 ? two_nodes : more_nodes;
}

Bandwidth GenerationLimits::of(const Communicator& communicator) const {
  const int capability = communicator.least_compute_capability;
  const ScaleLimits& row = capability >= blackwell_capability ? blackwell
                           : capability >= hopper_capability  ? hopper
                           : capability >= ampere_capability  ? ampere
                                                              : volta;
  return row.at(communicator.nodes);
}

const TunerConstants& tuner_constants(Version version) {
  static constexpr TunerConstants v2_28 = release_2_28();
  static constexpr TunerConstants v2_29 = release_2_29();
  static constexpr TunerConstants v2_30 = release_2_30();
  switch (version) {
    case Version::v2_28:
      return v2_28;
    case Version::v2_29:
      return v2_29;
    case Version::v2_30:
      break;
  }
  return v2_30;
}

// tuning.cc, llMaxBws: in one node Volta, Ampere, Hopper, Blackwell; over two and more nodes by
// CPU.
constexpr Bandwidth ll_volta = gigabytes(39);
constexpr Bandwidth ll_ampere = gigabytes(87.7);
constexpr Bandwidth ll_hopper = gigabytes(141);
constexpr Bandwidth ll_blackwell = gigabytes(282);
constexpr Bandwidth ll_two_nodes = gigabytes(39);
constexpr Bandwidth ll_two_nodes_amd = gigabytes(22.5);
constexpr Bandwidth ll_more_nodes = gigabytes(20.4);
constexpr Bandwidth ll_more_nodes_amd = gigabytes(19);

Bandwidth ll_limit(const Communicator& communicator) {
  const bool amd = communicator.cpu == Cpu::amd || communicator.cpu == Cpu::mixed_x86;
  if (communicator.nodes == 2) return amd ? ll_two_nodes_amd : ll_two_nodes;
  if (communicator.nodes > 2) return amd ? ll_more_nodes_amd : ll_more_nodes;
  const int capability = communicator.least_compute_capability;
  if (capability >= blackwell_capability) return ll_blackwell;
  if (capability >= hopper_capability) return ll_hopper;
  return capability >= ampere_capability ? ll_ampere : ll_volta;
}

// tuning.cc, nvlsEfficiency.
constexpr double nvls_efficiency_of_hopper = 0.85;
constexpr double nvls_efficiency_of_blackwell = 0.74;

double nvls_efficiency(int compute_capability) {
  if (compute_capability >= blackwell_capability) return nvls_efficiency_of_blackwell;
  return compute_capability >= hopper_capability ? nvls_efficiency_of_hopper : 0;
}

constexpr Bandwidth ring_block_of_hopper = gigabytes(20.5);

std::optional<Bandwidth> ring_block_limit(const Communicator& communicator) {
  const int capability = communicator.least_compute_capability;
  const bool is_hopper = capability >= hopper_capability && capability < blackwell_capability;
  const bool has_plugin = communicator.ring.network_latency > Seconds(0);
  if (!is_hopper || has_plugin || communicator.nodes == 1) return std::nullopt;
  return ring_block_of_hopper;
}

double tree_size_factor(Algorithm algorithm, Protocol protocol, Bytes bytes) {
  const std::int64_t end = algorithm == Algorithm::nvls_tree ? GiB : 512 * MiB;
  if (bytes.count() >= end) return 1;
  switch (protocol) {
    case Protocol::ll:
      return factor_at(ll_factors, bytes.count());
    case Protocol::ll128:
      return factor_at(ll128_factors, bytes.count());
    case Protocol::simple:
      break;
  }
  return factor_at(simple_factors, bytes.count());
}

}  // namespace shardsim::nccl
