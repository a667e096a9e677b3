// Which algorithms and protocols a communicator can use, and why not the others.
//
//   Broadcast, Reduce         Ring
//   AllGather, ReduceScatter  Ring, NVLS, CollNetDirect, PAT
//   AllReduce                 all but PAT
//
//   LL128     Volta or later; GPUs of one generation (2.30: Hopper and later may mix); NVLink, at
//             most over another GPU, in the node; and at most PCIe switches to the NIC (Hopper and
//             later: or NVLink to the GPU beside it)
//   NVLS      NVSwitch, Hopper or later, 2 GPUs of a node at least (2.28: 3); several nodes
//             only with CollNet
//   NVLSTree  the same, several nodes
//   CollNet   a network that reduces, several nodes, at most 8 ranks on one; Direct needs NVSwitch
//   PAT       one rank per node, no plugin that runs on the GPU
//   Ring and Tree speak all protocols, the others Simple
//
// NVLS with 2 GPUs: 2.28.3 leaves them out (src/transport/nvls.cc); 2.29.2 printed NVLS bandwidths
// for them (tests/golden/nccl_tuner) and 2.30.7 asks for 2.
// Not modelled: LL128 of a 2-rank ring all-reduce on Hopper is off in builds with CUDA 11.8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

// What a user may force, as NCCL_ALGO and NCCL_PROTO do. Forcing LL128 lifts its conditions: NCCL
// obeys, where stores may then arrive out of order.
struct Forced {
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
  std::int64_t least_channels = 0;  // NCCL_MIN_CTAS: thread blocks that a ring has at the least
};

// Whether NCCL has the pair for the operation on any machine: cheap, for those who ask often.
[[nodiscard]] bool exists(Operation operation, Algorithm algorithm, Protocol protocol);

// Why the pair cannot be used, "one node has no tree of nodes"; empty when it can.
[[nodiscard]] std::string why_disabled(const Communicator& communicator, Operation operation,
                                       Algorithm algorithm, Protocol protocol,
                                       const Forced& forced = {});

}  // namespace shardsim::nccl
