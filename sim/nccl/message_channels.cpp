#include "sim/nccl/message_channels.hpp"

#include <algorithm>
#include <bit>

#include "base/index.hpp"

namespace shardsim::nccl {
namespace {

std::int64_t power_of_two_up(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

std::int64_t p2p_channels(const Communicator& communicator) {
  return power_of_two_up(std::max<std::int64_t>(communicator.ring_channels, 1));
}

std::int64_t channels_per_peer(const Communicator& communicator) {
  const std::int64_t all = p2p_channels(communicator);
  if (communicator.nodes == 1) return all;
  constexpr std::int64_t peers_per_batch = 8;
  const std::int64_t batches = ceil_div(communicator.ranks, peers_per_batch);
  std::int64_t channels = power_of_two_up(communicator.network_channels);
  while (channels > 1 && channels * batches > all) channels /= 2;
  return channels;
}

struct PartSizes {
  std::int64_t smallest;
  std::int64_t largest;
};
constexpr std::int64_t nvlink_chunk = 512 * KiB;
constexpr std::int64_t network_chunk = 128 * KiB;
constexpr PartSizes in_node{nvlink_chunk / 8, nvlink_chunk * 32};
constexpr PartSizes over_nodes{network_chunk / 2, network_chunk};

}  // namespace

std::int64_t channels_for_network(std::int64_t nics, Bandwidth together) {
  constexpr std::int64_t gigabytes_per_second_and_channel = 14;
  const auto whole = static_cast<std::int64_t>(together.count() / 1e9);
  return std::max(nics, ceil_div(whole, gigabytes_per_second_and_channel));
}

// All-to-all of 512 MiB on 2 A100, H100 and B200, half of it to each, on 32 channels: 1.635, 0.963
// and 0.81 to 0.86 ms (nccl-tests of aiconfigurator-core 0.12.0). On 2, 4 and 8 B200 it takes as
// long (0.86, 0.89 and 0.89 ms of 2.27.5), though links carry 1/2, 3/4 and 7/8 of it.
Bandwidth copied_by_channel(const Communicator& communicator) {
  const int capability = communicator.least_compute_capability;
  if (capability >= blackwell_capability) return Bandwidth(20.1e9);
  return Bandwidth(capability >= hopper_capability ? 17.4e9 : 10.3e9);
}

std::optional<std::int64_t> message_channels(const Communicator& communicator, Bytes message) {
  if (!communicator.nvswitch) return std::nullopt;
  const PartSizes& part = communicator.nodes == 1 ? in_node : over_nodes;
  const std::int64_t per_peer = channels_per_peer(communicator);
  std::int64_t least = per_peer;
  while (least > 1 && least * communicator.ranks > p2p_channels(communicator)) least /= 2;
  std::int64_t channels =
      std::clamp<std::int64_t>(ceil_div(message.count(), part.smallest), 1, least);
  while (ceil_div(message.count(), channels) > part.largest && channels <= per_peer / 2) {
    channels *= 2;
  }
  return channels;
}

std::optional<std::int64_t> all_to_all_channels(const Communicator& communicator, Bytes message) {
  const auto each = message_channels(communicator, message);
  if (!each) return std::nullopt;
  return std::min(*each * communicator.ranks, p2p_channels(communicator));
}

}  // namespace shardsim::nccl
