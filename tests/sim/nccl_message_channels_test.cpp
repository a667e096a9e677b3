// How many channels messages take, by hand from the rules of NCCL's source.
#include "sim/nccl/message_channels.hpp"

#include <catch2/catch.hpp>

namespace shardsim::nccl {
namespace {

Communicator h100(std::int64_t nodes, std::int64_t coll_channels) {
  Communicator communicator;
  communicator.nodes = nodes;
  communicator.ranks = 8 * nodes;
  communicator.ring_channels = coll_channels;
  return communicator;
}

}  // namespace

// Logs say 24 coll channels, 32 p2p channels and 32 per peer: 4 for each of 8 ranks.
TEST_CASE("messages in a node share all channels") {
  const Communicator node = h100(1, 24);
  CHECK(message_channels(node, Bytes(1)) == 1);
  CHECK(message_channels(node, Bytes(128 * KiB)) == 2);
  CHECK(message_channels(node, Bytes(256 * KiB)) == 4);
  CHECK(message_channels(node, Bytes(64 * MiB)) == 4);      // 16 MiB each
  CHECK(message_channels(node, Bytes(64 * MiB + 1)) == 8);  // a byte more
  CHECK(message_channels(node, Bytes(128 * MiB)) == 8);
  CHECK(message_channels(node, Bytes(8 * GiB)) == 32);  // all that a peer has
  CHECK(all_to_all_channels(node, Bytes(1)) == 8);
  CHECK(all_to_all_channels(node, Bytes(128 * KiB)) == 16);
  CHECK(all_to_all_channels(node, Bytes(128 * MiB)) == 32);  // of 64 that they ask for
}

TEST_CASE("over nodes a message has two channels, among many ranks one") {
  // 16 channels: 2 x 16 ranks are no more than 4 x 16, 2 x 128 ranks are.
  const Communicator two = h100(2, 16);
  CHECK(message_channels(two, Bytes(128 * KiB)) == 1);
  CHECK(message_channels(two, Bytes(MiB)) == 2);
  CHECK(all_to_all_channels(two, Bytes(MiB)) == 16);
  const Communicator many = h100(16, 16);
  CHECK(message_channels(many, Bytes(GiB)) == 1);
  CHECK(all_to_all_channels(many, Bytes(GiB)) == 16);
}

TEST_CASE("channels of other fabrics are not known") {
  Communicator direct = h100(1, 12);
  direct.nvswitch = false;
  CHECK_FALSE(message_channels(direct, Bytes(MiB)));
  CHECK_FALSE(all_to_all_channels(direct, Bytes(MiB)));
}

}  // namespace shardsim::nccl
