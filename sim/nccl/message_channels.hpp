// On how many channels, a thread block each, NCCL sends and receives messages ("p2p channels").
//
//   p2p       the communicator's channels, up to a power of two
//   per peer  in a node behind an NVSwitch as many; over several nodes 2, 1 from where all peers
//             together would have more than four operations on each channel
//   message   as many as leave room for all peers, p2p / ranks, but no less than 64 KiB each; from
//             16 MiB (128 KiB over nodes) on each twice as many, while a peer has them
//
// Every other fabric has paths of its own, and is not known.
//
// Example: 8 H100s of a node have 24 channels, 32 p2p. All-to-all of 1 GiB: messages of 128 MiB on
// 8 channels of 16 MiB each, all together on 32 thread blocks.
//
// Source: NVIDIA/nccl v2.27 src/graph/paths.cc (ncclTopoGetNchannels, ncclTopoComputeP2pChannels),
// src/enqueue.cc (addP2pToPlan, scheduleP2pTasksToPlan), src/init.cc (chunk sizes). Logs of 8 H100s
// say "24 coll channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer".
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

// Of one message in an exchange of all ranks. Nothing where it is not known.
[[nodiscard]] std::optional<std::int64_t> message_channels(const Communicator& communicator,
                                                           Bytes message);
// Of all that a rank sends in an all-to-all.
[[nodiscard]] std::optional<std::int64_t> all_to_all_channels(const Communicator& communicator,
                                                              Bytes message);

}  // namespace shardsim::nccl
