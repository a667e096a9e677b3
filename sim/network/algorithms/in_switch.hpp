// In-switch reduction and multicast, for devices on one switch: NVLink SHARP, as NCCL's NVLS uses
// it. Each rank looks after an N-th of the payload: the switch fetches it from all ranks and hands
// the rank the sum; the rank gives its result back once and the switch hands it to all.
//
//   reduce-scatter  every rank sends P to the switch and gets P / N
//   all-gather      every rank sends P / N and gets P
//   all-reduce      both, chunk by chunk: P + P / N each way
//
// Time of c chunks:
//   reduce-scatter, all-gather  2 latency + (P + P / N / c) / bandwidth
//   all-reduce                  no less than (P + P / N) / bandwidth
//
// Example: 8 ranks at 450 GB/s, all-reduce of 8 GB: 9 GB each way, 20 ms, where a ring takes
// 2 * 7 / 8 * 8 GB = 14 GB and 31 ms.
//
// Klenk, Jiang, Thorson and Dennison, "An in-network architecture for accelerating shared-memory
// multiprocessor collectives", ISCA 2020. What the switch itself can add up is taken to be as much
// as its wires bring.
#pragma once

#include "sim/network/schedule.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// The switch is the rank behind the last. `ranks` of at least two.
[[nodiscard]] Schedule in_switch_all_gather(std::int64_t ranks);
[[nodiscard]] Schedule in_switch_reduce_scatter(std::int64_t ranks);
[[nodiscard]] Schedule in_switch_all_reduce(std::int64_t ranks);

// Of an all-gather and of a reduce-scatter. `hop`: from a device to the switch or back.
[[nodiscard]] FlowTime in_switch_time(std::int64_t ranks, Bytes payload, const Way& hop);

}  // namespace shardsim::network
