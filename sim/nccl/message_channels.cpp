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
  constexpr std::int64_t most = 2;
  constexpr std::int64_t operations_per_channel = 4;
  return most * communicator.ranks > all * operations_per_channel ? 1 : std::min(most, all);
}

}  // namespace

std::optional<std::int64_t> message_channels(const Communicator& communicator, Bytes message) {
  if (!communicator.nvswitch) return std::nullopt;
  constexpr std::int64_t smallest_part = 64 * KiB;
  const std::int64_t largest_part = communicator.nodes == 1 ? 16 * MiB : 128 * KiB;
  const std::int64_t per_peer = channels_per_peer(communicator);
  std::int64_t least = per_peer;
  while (least > 1 && least * communicator.ranks > p2p_channels(communicator)) least /= 2;
  std::int64_t channels =
      std::clamp<std::int64_t>(ceil_div(message.count(), smallest_part), 1, least);
  while (ceil_div(message.count(), channels) > largest_part && channels <= per_peer / 2) {
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
