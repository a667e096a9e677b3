// What NCCL chooses for a collective of some size: the enabled pair with the smallest time.
//
//   time = latency * plateau + bytes / (bandwidth * size factor)
//
// plateau      Ring, Simple, all-reduce over several nodes, from 64 B per rank and channel: 1.4
//              (before Ampere 1.9)
// size factor  Tree, all-reduce: 0.4 to 1 by size and protocol (tree_size_factor); NVLSTree, from
//              2.29 on, on Blackwell in x86 hosts, by the same table
// fp8          a ring over more than 8 ranks counts 1024 times: chosen only where nothing else is
//
// One call is timed. Calls that NCCL batches (ncclGroupStart) share latencies; that is not
// modelled.
//
// Example: all-reduce of 64 KiB over 4 H100s of a node (tuner.hpp has the channels):
//   Tree LL  10.4 us + 65536 / (43.6 GB/s * 0.6) = 12.9 us
//   Ring LL  10.2 us + 65536 / 94 GB/s           = 10.9 us     the choice
//   NVLS     25 us + ...
#pragma once

#include <cstddef>
#include <vector>

#include "sim/nccl/tuner.hpp"

namespace shardsim::nccl {

struct Request {
  Operation operation = Operation::all_reduce;
  Bytes bytes{0};  // the full array
  Forced forced;
  bool fp8 = false;
  // NVSwitch can reduce this type by this operation: sums of floats can.
  bool switch_reduces = true;
};

// An estimate at a size: latency and bandwidth with their corrections.
struct Candidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  Seconds latency{0};
  Bandwidth bandwidth{0};
  Seconds time{0};  // what NCCL compares: the penalty of fp8 rings included
};

struct Selection {
  std::vector<Candidate> candidates;  // in NCCL's order
  std::size_t chosen = 0;             // the first of the fastest

  [[nodiscard]] const Candidate& choice() const { return candidates[chosen]; }
};

// Throws InputError, with the reason, when what is forced leaves nothing.
[[nodiscard]] Selection select(const Communicator& communicator, const Request& request,
                               const Place& place);

}  // namespace shardsim::nccl
