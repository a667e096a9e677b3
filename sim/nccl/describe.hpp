// A group of devices of a machine as NCCL's tuner sees it.
//
//   Machine m = make_machine(load_profile("dgx-h100", place), 16, std::nullopt, place);
//   const NodeSpread spread{/*members=*/16, /*nodes=*/2, /*fewest=*/8, /*most=*/8};
//   Communicator c = describe(m, spread, {}, place);
//   select(c, {Operation::all_reduce, Bytes(GiB)}, place).choice()     NVLSTree, Simple
//
// From the profile: devices per node, NVLinks (bandwidth in the node over 25 GB/s a link, 50 from
// Blackwell on), the NIC's line rate. What profiles do not say, by the device's name:
//
//   device      capability  PCIe  GPUs per PCIe switch  CPU                    of
//   A100 SXM    8.0         4     2                     AMD EPYC 7742          DGX A100
//   H100, H200  9.0         5     1                     Intel Xeon 8480C       DGX H100, H200
//   B200        10.0        5     1                     Intel Xeon 8570        DGX B200
//
// (NVIDIA's user guides of these systems, recalled 2026-11.) NCCL counts an NVLink as 20, 20.6 or
// 40.1 GB/s and 16 lanes of PCIe 4 or 5 as 24 or 48 (src/graph/topo.h, topo.cc). Its InfiniBand
// plugin reports no latency.
//
// Not known from a profile or a spread, and taken as: no CollNet; the members of a node are its
// first GPUs, so that neighbours share PCIe switches; when nodes hold different numbers, none lies
// between the fewest and the most.
#pragma once

#include <optional>

#include "hardware_profiles/machine.hpp"
#include "sim/cluster_cost.hpp"
#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

struct DescribeOptions {
  Version version = Version::v2_30;
  std::optional<Cpu> cpu;  // other than the table's
};

// Throws InputError for a torus, a device that the table lacks, a group of one, and what the graph
// search does not cover.
[[nodiscard]] Communicator describe(const Machine& machine, const NodeSpread& spread,
                                    const DescribeOptions& options, const Place& place);

}  // namespace shardsim::nccl
