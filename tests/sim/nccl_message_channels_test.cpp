// How many channels messages take, by hand from the rules of NCCL's source.
#include "sim/nccl/message_channels.hpp"

#include <catch2/catch.hpp>

#include "sim/nccl/describe.hpp"

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

// NICs of 400 Gbit/s behind PCIe 5, which NCCL counts as 48 GB/s: 4 channels of 14 GB/s.
TEST_CASE("over nodes a message has four channels, among many ranks one") {
  // 16 channels: of two batches of 8 ranks each 4 fit, of 16 batches 1.
  Communicator two = h100(2, 16);
  two.network_channels = 4;
  CHECK(message_channels(two, Bytes(128 * KiB)) == 1);
  CHECK(message_channels(two, Bytes(128 * KiB + 1)) == 2);
  CHECK(message_channels(two, Bytes(MiB)) == 4);
  CHECK(all_to_all_channels(two, Bytes(MiB)) == 16);
  Communicator many = h100(16, 16);
  many.network_channels = 4;
  CHECK(message_channels(many, Bytes(GiB)) == 1);
  CHECK(all_to_all_channels(many, Bytes(GiB)) == 16);
}

TEST_CASE("NICs have channels by what they carry, one each at least") {
  CHECK(channels_for_network(1, Bandwidth(48e9)) == 4);  // 3.4
  CHECK(channels_for_network(1, Bandwidth(24e9)) == 2);
  CHECK(channels_for_network(4, Bandwidth(48e9)) == 4);  // four of 12 GB/s
  CHECK(channels_for_network(2, Bandwidth(20e9)) == 2);
}

TEST_CASE("machines have what their profiles say of NICs") {
  const auto channels = [](const char* name) {
    const Machine machine = make_machine(load_profile(name, {}), 16, std::nullopt, {});
    return describe(machine, {16, 2, 8, 8}, {}, {}).network_channels;
  };
  CHECK(channels("dgx-h100") == 4);       // 50 GB/s behind PCIe 5, 48
  CHECK(channels("oci-bm-gpu4.8") == 2);  // two of 12.5 GB/s behind PCIe 4, 24
}

TEST_CASE("channels of other fabrics are not known") {
  Communicator direct = h100(1, 12);
  direct.nvswitch = false;
  CHECK_FALSE(message_channels(direct, Bytes(MiB)));
  CHECK_FALSE(all_to_all_channels(direct, Bytes(MiB)));
}

}  // namespace shardsim::nccl
