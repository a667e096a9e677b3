// On how many channels, a thread block each, NCCL sends and receives messages ("p2p channels").
//
//   p2p       the communicator's channels, up to a power of two
//   per peer  in a node behind an NVSwitch as many; over several nodes what its NICs need at 14
//             GB/s a channel, up to a power of two, halved until those of all peers, eight to a
//             batch, fit into p2p
//   message   as many as leave room for all peers, p2p / ranks, but of no part less than 64 KiB;
//             while parts are larger than 16 MiB (over nodes 128 KiB) twice as many, if a peer has
//             them
//
// Every other fabric has paths of its own, and is not known.
//
// Example: 8 H100s of a node have 24 channels, 32 p2p. All-to-all of 1 GiB: messages of 128 MiB on
// 8 channels of 16 MiB each, all together on 32 thread blocks. 16 of two nodes: 16 p2p, 4 for a
// peer (48 GB/s behind PCIe 5), all 16 at work.
//
// Source: NVIDIA/nccl @04cdb80 src/graph/paths.cc (ncclTopoGetNchannels, P2P_PER_CHANNEL_NET_BW,
// ncclTopoComputeP2pChannels), src/enqueue.cc (addP2pToPlan: an eighth of a chunk to 32 of them,
// over nodes a half to one; scheduleP2pTasksToPlan), src/init.cc (chunks: NCCL_P2P_NVL_CHUNKSIZE
// 512 KiB, NCCL_P2P_NET_CHUNKSIZE 128 KiB), src/include/device.h (NCCL_MAX_DEV_WORK_P2P_PER_BATCH).
// Earlier releases have 2 channels for a peer on other nodes. Logs of 8 H100s say "24 coll
// channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer".
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "sim/nccl/communicator.hpp"

namespace shardsim::nccl {

// For a peer on another node, before they are made to fit: of a GPU's NICs as NCCL counts them.
[[nodiscard]] std::int64_t channels_for_network(std::int64_t nics, Bandwidth together);

// Of one message in an exchange of all ranks. Nothing where it is not known.
[[nodiscard]] std::optional<std::int64_t> message_channels(const Communicator& communicator,
                                                           Bytes message);
// Of all that a rank sends in an all-to-all.
[[nodiscard]] std::optional<std::int64_t> all_to_all_channels(const Communicator& communicator,
                                                              Bytes message);
// What one channel copies inside a node, whoever it is for: a rank's message to itself takes its
// turn, too. Where there are few peers on fast links, it is this that bounds an all-to-all.
[[nodiscard]] Bandwidth copied_by_channel(const Communicator& communicator);

}  // namespace shardsim::nccl
