#include "sim/nccl/rccl_constants.hpp"

#include <algorithm>
#include <cassert>

namespace shardsim::nccl {
namespace {

constexpr Seconds micro(double count) { return Seconds(count * 1e-6); }
// In microseconds.
constexpr ProtocolLatencies latencies(double ll, double ll128, double simple) {
  return {micro(ll), micro(ll128), micro(simple)};
}

// treeCorrectionFactor and ringCorrectionFactor of tuning_model_5.
constexpr SizeFactors tree_ll = {.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                                 1,  1,  .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr SizeFactors tree_simple = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                     .1, .7, 1,  1,  1,  1,  1,  .7, .7, .5, .6, .6, .6};
constexpr SizeFactors ring_ll = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                                 .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr SizeFactors ring_simple = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                     .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, 1,  1,  1};

// Bytes per rank (of an all-reduce: of the array) as llProtoRanges of tuning_model_5 has them:
//
//                  LL min, max     LL128 min, max
//   ReduceScatter  0   655360      131072   3211264
//   AllGather      0    98304       98304   5046272
//   AllReduce      0  1048576     1048576   9437184
//
// src/rccl_wrap.cc @00c78b7, rcclUpdateCollectiveProtocol, says what for.
constexpr ProtocolRanges reduce_scatter_ranges = {
    .ll = {.above = 0, .to = 640 * KiB},
    .ll128 = {.above = 128 * KiB, .to = 3136 * KiB},
};
constexpr ProtocolRanges all_gather_ranges = {
    .ll = {.above = 0, .to = 96 * KiB},
    .ll128 = {.above = 96 * KiB, .to = 4928 * KiB},
};
constexpr ProtocolRanges all_reduce_ranges = {
    .ll = {.above = 0, .to = 1 * MiB},
    .ll128 = {.above = 1 * MiB, .to = 9 * MiB},
};

// baseLat, and of tuning_model_5 hwLat (NVLINK, NET; microseconds) and bwRatio (2 nodes, more than
// 2), each by Tree {LL, LL128, Simple} and Ring {LL, LL128, Simple}:
//
//   bwRatio  2 nodes    Tree {0.06, 0.06, 0.11}  Ring {0.08, 0.08, 1.00}
//            more       Tree {0.06, 0.06, 0.59}  Ring {0.08, 0.08, 1.00}
constexpr RcclConstants model_5 = {
    .base = {.tree = latencies(12, 12, 17), .ring = latencies(12, 12, 17)},
    .xgmi = {.tree = latencies(0.9, 0.9, 2.3), .ring = latencies(0.8, 0.8, 2.1)},
    .network = {.tree = latencies(10.5, 10.5, 25), .ring = latencies(9.5, 9.5, 320)},
    .two_nodes = {.tree = {.ll = 0.06, .ll128 = 0.06, .simple = 0.11},
                  .ring = {.ll = 0.08, .ll128 = 0.08, .simple = 1}},
    .more_nodes = {.tree = {.ll = 0.06, .ll128 = 0.06, .simple = 0.59},
                   .ring = {.ll = 0.08, .ll128 = 0.08, .simple = 1}},
    .tree = {.ll = tree_ll, .ll128 = tree_ll, .simple = tree_simple},
    .ring = {.ll = ring_ll, .ll128 = ring_ll, .simple = ring_simple},
    .reduce_scatter = reduce_scatter_ranges,
    .all_gather = all_gather_ranges,
    .all_reduce = all_reduce_ranges,
};

template <class Value, class Row>
const Value& entry(const Row& row, Protocol protocol) {
  if (protocol == Protocol::ll) return row.ll;
  return protocol == Protocol::ll128 ? row.ll128 : row.simple;
}

}  // namespace

const RcclConstants& rccl_constants() { return model_5; }

Seconds of(const RcclLatencies& latencies, Algorithm algorithm, Protocol protocol) {
  assert(algorithm == Algorithm::tree || algorithm == Algorithm::ring);
  return entry<Seconds>(algorithm == Algorithm::tree ? latencies.tree : latencies.ring, protocol);
}

double of(const RcclShares& shares, Algorithm algorithm, Protocol protocol) {
  assert(algorithm == Algorithm::tree || algorithm == Algorithm::ring);
  return entry<double>(algorithm == Algorithm::tree ? shares.tree : shares.ring, protocol);
}

double of(const ProtocolFactors& factors, Protocol protocol, Bytes bytes) {
  constexpr std::int64_t smallest = 64;
  std::size_t row = 0;
  for (std::int64_t size = bytes.count() / smallest; size > 1; size /= 2) ++row;
  return entry<SizeFactors>(factors, protocol).at(std::min(row, rccl_sizes - 1));
}

}  // namespace shardsim::nccl
