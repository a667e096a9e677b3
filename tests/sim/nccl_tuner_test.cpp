// Latency and bandwidth of NCCL's time model, worked out by hand from its formulas (tuner.hpp).
#include "sim/nccl/tuner.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "nccl_machines.hpp"

namespace shardsim::nccl {
namespace {

using shardsim::testing::h100_communicator;

struct Row {
  double latency = 0;    // us
  double bandwidth = 0;  // GB/s
};

Row row(const Communicator& communicator, Operation operation, Algorithm algorithm,
        Protocol protocol) {
  for (const Estimate& estimate : tuning_table(communicator, operation)) {
    if (estimate.algorithm == algorithm && estimate.protocol == protocol) {
      return {estimate.latency.count() * 1e6, estimate.bandwidth.count() / 1e9};
    }
  }
  FAIL("disabled");
  return {};
}

void check(const Row& actual, double latency, double bandwidth) {
  CHECK(actual.latency == Approx(latency));
  CHECK(actual.bandwidth == Approx(bandwidth));
}

ChannelGraph graph_of(std::int64_t channels, double intra, double inter) {
  ChannelGraph graph;
  graph.channels = channels;
  graph.intra = Bandwidth(intra * 1e9);
  graph.inter = Bandwidth(inter * 1e9);
  return graph;
}

// 4 nodes of 8 Hoppers with InfiniBand that reduces.
Communicator reducing_network() {
  Communicator communicator = h100_communicator(32, 4);
  communicator.collnet = CollNet{/*all_gather=*/true, /*reduce_scatter=*/true, /*heads=*/8};
  communicator.collnet_direct = graph_of(8, 40, 48);
  communicator.collnet_chain = graph_of(8, 48, 48);
  return communicator;
}

// 4 GPUs of one node without NVLink, 2 channels of 10 GB/s.
Communicator pcie_box() {
  Communicator communicator;
  communicator.ranks = 4;
  communicator.most_ranks_per_node = 4;
  communicator.least_compute_capability = communicator.most_compute_capability = 80;
  communicator.nvswitch = false;
  communicator.ring = communicator.tree = graph_of(2, 10, 10);
  communicator.ring.intra_path = communicator.tree.intra_path = PathType::pcie_host;
  return communicator;
}

}  // namespace

TEST_CASE("two nodes of eight H100s") {
  const Communicator c = h100_communicator(16, 2);  // 8 channels of 48 GB/s; trees are plain
  const Operation all_reduce = Operation::all_reduce;
  // 30 steps, 2 of them across; posting to the network takes 1 us, in Simple 3 us.
  check(row(c, all_reduce, Algorithm::ring, Protocol::simple), 8.4 + 28 * 3.4 + 2 * 14,
        8 * 48 * 16. / 30);
  check(row(c, all_reduce, Algorithm::ring, Protocol::ll), 6.6 + 28 * 1 + 2 * 2.7, 39 * 16. / 30);
  check(row(c, all_reduce, Algorithm::ring, Protocol::ll128), 14 + 28 * 1.9 + 2 * 4,
        8 * 36.7 * 16. / 30);
  check(row(c, all_reduce, Algorithm::tree, Protocol::simple), 8.4 + 2 * (7 * 4 + 14),
        8 * 41.4 * 0.85 / 2);
  check(row(c, all_reduce, Algorithm::tree, Protocol::ll128), 14 + 2 * (7 * 1.25 + 8.5),
        8 * 36.7 * 0.85 / 2);  // 331.2 * 120/128 is more
  // In the node 40 * 0.85 * 7/8 * 2 = 59.5, across 2 * 48, limit 57.7.
  check(row(c, all_reduce, Algorithm::nvls_tree, Protocol::simple), 25 + 2 * 20.9,
        8 * 57.7 * 16. / 30);
  // 15 steps, one across.
  check(row(c, Operation::all_gather, Algorithm::ring, Protocol::simple), 8.4 + 14 * 3.4 + 14,
        8 * 48 * 16. / 15);
  // A broadcast's hops, across nodes, of channels that differ: 16 of Tree's latency.
  check(row(c, Operation::broadcast, Algorithm::ring, Protocol::simple), 8.4 + 16 * 14, 8 * 48);
}

TEST_CASE("four nodes of eight H100s") {
  const Communicator c = h100_communicator(32, 4);
  // log2(4) = 2 levels; the limit is 45.5 a channel.
  check(row(c, Operation::all_reduce, Algorithm::nvls_tree, Protocol::simple), 25 + 4 * 20.9,
        8 * 45.5 * 32. / 62);
  check(row(c, Operation::all_reduce, Algorithm::tree, Protocol::simple), 8.4 + 2 * (7 * 4 + 28),
        8 * 36 * 0.85 / 2);
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::ll), 6.6 + 56 * 1 + 6 * 2.7,
        20.4 * 32. / 62);
}

TEST_CASE("AMD hosts post to the network more slowly") {
  Communicator c = h100_communicator(16, 2);
  c.cpu = Cpu::amd;
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::ll), 6.6 + 28 * 2 + 2 * 2.7,
        22.5 * 16. / 30);
  // Three posts of 2 us are longer than a step of 3.4 us.
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::simple), 8.4 + 28 * 6 + 2 * 14,
        8 * 48 * 16. / 30);
}

TEST_CASE("one rank per node") {
  const Communicator c = h100_communicator(16, 16);  // 2 channels of 24 GB/s
  // Four levels; Tree's latency of the network for all.
  check(row(c, Operation::all_gather, Algorithm::pat, Protocol::simple),
        8 + 4 * 14 / 3.5 + 2.8 * 16, 2 * 24 * 0.75);
  check(row(c, Operation::all_gather, Algorithm::ring, Protocol::ll), 6.6 + 15 * 5.0,
        20.4 * 16. / 15);
}

TEST_CASE("a network that reduces") {
  const Communicator c = reducing_network();
  const Operation all_reduce = Operation::all_reduce;
  // One NIC for every GPU: (1 + 8/8) / 2 = 1.
  check(row(c, all_reduce, Algorithm::collnet_direct, Protocol::simple), 2 * (3.7 + 7 * 0.4) + 31,
        8 * 40 * 0.85 / 2);
  check(row(c, all_reduce, Algorithm::collnet_chain, Protocol::simple), 2 * 7 * 2.8 + 30,
        8 * 48 / 2.);
  // 40 is less than 0.9 * 48.
  check(row(c, Operation::all_gather, Algorithm::collnet_direct, Protocol::simple),
        2 * (3.7 + 7 * 0.4) + 31, 8 * 40);
  // 59.5 in the node, 48 across.
  check(row(c, all_reduce, Algorithm::nvls, Protocol::simple), 25 + 18, 8 * 48 * 32. / 62);
}

TEST_CASE("a network's own latency counts twice where the protocol flushes") {
  Communicator c = h100_communicator(16, 2);
  c.ring.network_latency = Seconds(1e-6);
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::ll), 6.6 + 28 * 1 + 2 * 3.7,
        39 * 16. / 30);
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::simple), 8.4 + 28 * 3.4 + 2 * 16,
        8 * 48 * 16. / 30);
}

TEST_CASE("links other than NVLink") {
  Communicator c = pcie_box();
  check(row(c, Operation::all_reduce, Algorithm::ring, Protocol::simple), 8.4 + 6 * 5.7,
        20 * 4. / 6);
  check(row(c, Operation::all_reduce, Algorithm::tree, Protocol::simple), 8.4 + 2 * 3 * 4,
        20 * 0.92 / 2);
  c.cpu = Cpu::power;
  check(row(c, Operation::all_reduce, Algorithm::tree, Protocol::simple), 8.4 + 2 * 3 * 5.7,
        20 * 0.92 / 2);
  c.ring.same_channels = false;
  check(row(c, Operation::broadcast, Algorithm::ring, Protocol::ll), 6.6 + 4 * 1.0, 10);
}

TEST_CASE("releases differ") {
  const auto nvls_tree = [](Version version) {
    return row(h100_communicator(16, 2, version), Operation::all_reduce, Algorithm::nvls_tree,
               Protocol::simple);
  };
  CHECK(nvls_tree(Version::v2_28).latency == Approx(25 + 2 * 14.0));
  CHECK(nvls_tree(Version::v2_29).latency == Approx(25 + 2 * 20.9));
  // Rings of LL128 on Blackwell: 16 channels of 45 GB/s, 720 * 0.92 = 662.4.
  Communicator blackwell = h100_communicator(8, 1);
  blackwell.least_compute_capability = blackwell.most_compute_capability = 100;
  blackwell.ring = graph_of(16, 45, 45);
  const auto ll128 = [&](Version version) {
    blackwell.version = version;
    return row(blackwell, Operation::broadcast, Algorithm::ring, Protocol::ll128).bandwidth;
  };
  CHECK(ll128(Version::v2_28) == Approx(662.4));
  CHECK(ll128(Version::v2_29) == Approx(16 * 34.5));
  CHECK(ll128(Version::v2_30) == Approx(16 * 40.0));
}

TEST_CASE("what is enabled, and why not") {
  const auto why = [](const Communicator& c, Operation operation, Algorithm algorithm,
                      Protocol protocol = Protocol::simple) {
    return why_disabled(c, operation, algorithm, protocol);
  };
  const Operation all_reduce = Operation::all_reduce;
  const Communicator node = h100_communicator(8, 1);
  const Communicator nodes = h100_communicator(16, 2);
  CHECK(why(node, all_reduce, Algorithm::nvls).empty());
  CHECK(why(node, all_reduce, Algorithm::nvls_tree) == "one node has no tree of nodes");
  CHECK(why(nodes, all_reduce, Algorithm::nvls) ==
        "NVLS over several nodes needs a network that reduces (\"reduction\" in a profile's "
        "scale_out)");
  CHECK(why(node, all_reduce, Algorithm::nvls, Protocol::ll) == "NVLS speaks Simple only");
  CHECK(why(node, Operation::broadcast, Algorithm::tree) == "Tree does not implement Broadcast");
  CHECK(why(node, all_reduce, Algorithm::pat) == "PAT does not implement AllReduce");
  CHECK(why(nodes, Operation::all_gather, Algorithm::pat) == "PAT needs one rank per node");
  CHECK(why(nodes, all_reduce, Algorithm::collnet_chain) ==
        "CollNet needs a network that reduces (\"reduction\" in a profile's scale_out)");
  CHECK(why(h100_communicator(2, 1, Version::v2_28), all_reduce, Algorithm::nvls) ==
        "NVLS needs 3 GPUs of a node");
  CHECK(why(h100_communicator(2, 1, Version::v2_29), all_reduce, Algorithm::nvls).empty());
  CHECK(why(pcie_box(), all_reduce, Algorithm::nvls) == "NVLS needs NVSwitch");
  CHECK(why(pcie_box(), all_reduce, Algorithm::ring, Protocol::ll128) ==
        "LL128 needs NVLink in the node");

  Communicator far = nodes;
  far.ring.inter_path = PathType::gpu_beside_nic;
  CHECK(why(far, all_reduce, Algorithm::ring, Protocol::ll128).empty());
  far.least_compute_capability = 80;
  CHECK(why(far, all_reduce, Algorithm::ring, Protocol::ll128) ==
        "LL128 needs GPUs of one generation");
  far.most_compute_capability = 80;
  CHECK(why(far, all_reduce, Algorithm::ring, Protocol::ll128) ==
        "the NICs are too far from the GPUs for LL128");

  Communicator reducing = reducing_network();
  CHECK(why(reducing, Operation::all_gather, Algorithm::nvls).empty());
  reducing.collnet->heads = 4;
  CHECK(why(reducing, Operation::all_gather, Algorithm::nvls) ==
        "not every GPU has a NIC of its own");
  reducing.collnet->all_gather = false;
  CHECK(why(reducing, Operation::all_gather, Algorithm::collnet_direct) ==
        "the network's plugin has no AllGather");
}

TEST_CASE("names are NCCL's, in any case") {
  CHECK(parse_algorithm("nvlstree", {}) == Algorithm::nvls_tree);
  CHECK(parse_protocol("LL128", {}) == Protocol::ll128);
  CHECK_THROWS_WITH(
      parse_algorithm("NVLSTee", {"command line", ""}),
      Catch::Contains("unknown NCCL algorithm \"NVLSTee\"") && Catch::Contains("NVLSTree"));
}

}  // namespace shardsim::nccl
