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
//   all-reduce                  no less than (P + P / N) / bandwidth;
//                               4 latency + (c + 1) t + (c + 3) t / N, with t = P / c / bandwidth,
//                               where c > 2 and 2 latency + 3 t / N <= t
//
// The last: chunks go up a rank's wire all the time, and the part of a sum that comes back from the
// chunk before shares it for 2 t / N; down the wire a part shares it with a whole sum. Chunk i,
// from 1 on, is up at i t + (i - 1) t / N, its part down 2 t / N later and up again after as long,
// but for the first, which meets nobody on its way down; its sum begins to come down at i t + (i +
// 3) t / N and takes t + t / N, the last t. Latencies add up to 4. The condition says that a part
// is back before the next chunk is up. Where it is not, how many chunks are ahead of it, and with
// it who meets whom, depends on how latency and t divide: there only the bound is known.
//
// Halves of a rate are rounded chunk by chunk: the time is simulated to a few femtoseconds a chunk.
//
// Example: 8 ranks at 450 GB/s, all-reduce of 8 GB: 9 GB each way, 20 ms, where a ring takes
// 2 * 7 / 8 * 8 GB = 14 GB and 31 ms.
//
// Klenk, Jiang, Thorson and Dennison, "An in-network architecture for accelerating shared-memory
// multiprocessor collectives", ISCA 2020. What the switch itself can add up is taken to be as much
// as its wires bring.
#pragma once

#include <optional>

#include "sim/network/schedule.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// The switch is the rank behind the last. `ranks` of at least two.
[[nodiscard]] Schedule in_switch_all_gather(std::int64_t ranks);
[[nodiscard]] Schedule in_switch_reduce_scatter(std::int64_t ranks);
[[nodiscard]] Schedule in_switch_all_reduce(std::int64_t ranks);

// Of an all-reduce, as above; nothing where there is the bound alone.
[[nodiscard]] std::optional<Seconds> in_switch_all_reduce_time(std::int64_t ranks, Bytes payload,
                                                               const Wire& hop);

// Of an all-gather and of a reduce-scatter. `hop`: from a device to the switch or back.
[[nodiscard]] FlowTime in_switch_time(std::int64_t ranks, Bytes payload, const Way& hop);

}  // namespace shardsim::network
