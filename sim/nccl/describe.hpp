// A group of devices of a machine as NCCL's tuner sees it.
//
//   Machine m = make_machine(load_profile("dgx-h100", place), 16, std::nullopt, place);
//   const NodeSpread spread{/*members=*/16, /*nodes=*/2, /*fewest=*/8, /*most=*/8};
//   Communicator c = describe(m, spread, {}, place);
//   select(c, {Operation::all_reduce, Bytes(GiB)}, place).choice()     NVLSTree, Simple
//
// All of it is in the profile: devices per node, NVLinks (bandwidth in the node over that of one
// link), the NIC's line rate, and the section "nccl". NCCL counts an NVLink as 20 (Ampere), 20.6
// (Hopper) or 40.1 GB/s (Blackwell) and 16 lanes of PCIe 4 or 5 as 24 or 48 (src/graph/topo.h,
// topo.cc). Several NICs of a GPU count as one, which is how AWS's plugin shows those of EFA.
//
// Nodes that the search does not know have plain channels (plain_channels.hpp).
//
// CollNet where the profile's scale_out has "reduction": heads are those of NVLS, before Hopper of
// CollNetDirect (src/transport/coll_net.cc, ncclCollNetSetup). That 2.30 turns CollNetChain off
// where its chains begin at other GPUs than those does not happen with a NIC per GPU.
//
// Not known from a profile or a spread, and taken as: the members of a node are its first GPUs, so
// that neighbours share PCIe switches; when nodes hold different numbers, none lies between the
// fewest and the most.
#pragma once

#include <optional>

#include "hardware_profiles/machine.hpp"
#include "sim/nccl/communicator.hpp"
#include "sim/nccl/node_spread.hpp"

namespace shardsim::nccl {

struct DescribeOptions {
  Version version = Version::v2_30;
  std::optional<Cpu> cpu;  // other than the profile's
};

// Throws InputError for a torus, a profile without the section "nccl" and a group of one.
[[nodiscard]] Communicator describe(const Machine& machine, const NodeSpread& spread,
                                    const DescribeOptions& options, const Place& place);

}  // namespace shardsim::nccl
