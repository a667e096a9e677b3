// Channels that NCCL's search finds: as printed by NCCL where a print is known, else by hand.
#include "sim/nccl/graph_search.hpp"

#include <catch2/catch.hpp>

#include "nccl_machines.hpp"
#include "sim/nccl/describe.hpp"
#include "sim/nccl/selection.hpp"

namespace shardsim::nccl {
namespace {

using shardsim::testing::h100_node;

void check(const ChannelGraph& graph, std::int64_t channels, double intra, double inter) {
  CHECK(graph.channels == channels);
  CHECK(graph.intra.count() / 1e9 == Approx(intra));
  CHECK(graph.inter.count() / 1e9 == Approx(inter));
}

}  // namespace

TEST_CASE("eight H100s of a node, as NCCL printed them") {
  // NVIDIA/nccl issue 1197, NCCL 2.19.4, which counted an NVLink as 20 GB/s, 360 in all:
  //   Pattern 4, nChannels 12, bw 30.0/30.0, type NVL/PIX, sameChannels 1
  //   Pattern 1, nChannels 12, bw 30.0/30.0, type NVL/PIX, sameChannels 1
  //   Pattern 5, nChannels 8, bw 40.0/60.0, type NVL/PIX, sameChannels 0
  for (const double per_link : {20e9, 20.6e9}) {
    SwitchNode node = h100_node(8);
    node.nvlink = Bandwidth(18 * per_link);
    const NodeGraphs graphs = search_graphs(node, /*several_nodes=*/false).value();
    check(graphs.ring, 12, 30, 30);
    check(graphs.tree, 12, 30, 30);
    check(graphs.nvls, 8, 40, 60);
    CHECK(graphs.ring.same_channels);
    CHECK(graphs.tree.same_channels);
    CHECK_FALSE(graphs.nvls.same_channels);
    CHECK_FALSE(graphs.plain_tree);
    CHECK(graphs.ring_channels == 24);  // "24 coll channels", NVIDIA/nccl issue 1259
  }
}

TEST_CASE("H100 nodes with a NIC of 400 Gbit/s per GPU") {
  const NodeGraphs graphs = search_graphs(h100_node(8), /*several_nodes=*/true).value();
  // A log of 16 ranks on two such nodes, each GPU with a NIC on its own PCIe switch, NCCL 2.28 or
  // later: "Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000, type NVL/PIX", 16 channels.
  check(graphs.ring, 8, 48, 48);
  CHECK(graphs.ring.inter_path == PathType::pcie_switch);
  CHECK(graphs.ring_channels == 16);
  // A balanced tree's second GPU would reach the NIC over NVLink, which trees may not.
  check(graphs.tree, 8, 48, 48);
  CHECK(graphs.plain_tree);
  // (8 + 1) * 40 <= 370.8 < 9 * 42; across up to what PCIe carries.
  check(graphs.nvls, 8, 40, 48);
}

// src/graph/search.cc, ncclTopoDupChannels: channels of 25 GB/s and more are split in two, from
// Hopper on those below 50 GB/s only where there are no more than 4. As many rings as NICs, of 48.
TEST_CASE("few channels are split") {
  for (const std::int64_t gpus : {2, 4}) {
    check(search_graphs(h100_node(gpus), /*several_nodes=*/true).value().ring, 2 * gpus, 24, 24);
  }
  check(search_graphs(h100_node(6), /*several_nodes=*/true).value().ring, 6, 48, 48);
}

// Steps that a search does not need are there for the next: it does not end before it has found
// what the first eight GPUs have among themselves, 8 rings of 48.
TEST_CASE("more GPUs with a NIC each move no less") {
  for (const std::int64_t gpus : {9, 10, 12, 16}) {
    CAPTURE(gpus);
    const ChannelGraph ring = search_graphs(h100_node(gpus), /*several_nodes=*/true).value().ring;
    CHECK(static_cast<double>(ring.channels) * ring.inter.count() >= 8 * 48e9);
  }
}

TEST_CASE("one GPU per node doubles its one channel") {
  const NodeGraphs graphs = search_graphs(h100_node(1), /*several_nodes=*/true).value();
  check(graphs.ring, 2, 24, 24);
  CHECK(graphs.ring.intra_path == PathType::local);
  CHECK(graphs.ring_channels == 4);
  CHECK(graphs.nvls.channels == 0);
}

TEST_CASE("one GPU per node, as NCCL printed it") {
  // Two published logs; trees are plain (pattern 3) and as fast inside as twice the network allows.
  //   Pattern 4, nChannels 1, bw 24.0/24.0, sameChannels 1     NIC behind PCIe 4
  //   Pattern 3, nChannels 1, bw 48.0/24.0, sameChannels 1
  SwitchNode node = h100_node(1);
  node.compute_capability = 80;
  node.nvlink = Bandwidth(0);
  node.pcie = Bandwidth(24e9);
  node.nic = Bandwidth(25e9);
  const NodeGraphs infiniband = search_graphs(node, /*several_nodes=*/true).value();
  check(infiniband.ring, 1, 24, 24);
  check(infiniband.tree, 1, 48, 24);
  CHECK(infiniband.plain_tree);
  //   Pattern 4, nChannels 1, bw 0.24/0.24, sameChannels 1     Ethernet of 2.5 Gbit/s
  //   Pattern 3, nChannels 1, bw 1.20/0.24, sameChannels 1
  node.pcie = Bandwidth(12e9);
  node.nic = Bandwidth(0.3125e9);
  const NodeGraphs ethernet = search_graphs(node, /*several_nodes=*/true).value();
  check(ethernet.ring, 1, 0.24, 0.24);
  check(ethernet.tree, 1, 1.2, 0.24);
}

TEST_CASE("A100s and B200s of a node") {
  SwitchNode node;
  node.compute_capability = 80;
  node.nvlink = Bandwidth(12 * 20e9);
  // 6 * 40 = 240, all there is; doubled.
  check(search_graphs(node, false).value().ring, 12, 20, 20);
  CHECK(search_graphs(node, false).value().nvls.channels == 0);
  node.compute_capability = 100;
  node.nvlink = Bandwidth(18 * 40.1e9);
  const NodeGraphs graphs = search_graphs(node, false).value();
  // 8 * 90 = 720 of 721.8; doubled. 9 * 80 = 720 for NVLS, whose pull goes one faster.
  check(graphs.ring, 16, 45, 45);
  check(graphs.nvls, 8, 80, 90);
}

// (1 + 1) * 3 <= 6.5, but neither (2 + 1) * 2.4, nor 2 * 6; and 1.2 is less than half of 3. Across
// the one goes at 6, no more than PCIe carries.
TEST_CASE("NVLS with one channel") {
  SwitchNode node = h100_node(8);
  node.nvlink = node.pcie = Bandwidth(6.5e9);
  check(search_graphs(node, /*several_nodes=*/true).value().nvls, 1, 3, 6);
}

TEST_CASE("no channels where they would cross the host bridge") {
  SwitchNode lone = h100_node(4);
  lone.compute_capability = 80;  // Ampere has no plain trees to fall back on
  CHECK(!search_graphs(lone, true));
}

TEST_CASE("a group of a machine is described") {
  const Machine machine = make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {});
  const Communicator c = describe(machine, {16, 2, 8, 8}, {}, {});
  check(c.ring, 8, 48, 48);
  CHECK(c.ranks == 16);
  CHECK(c.nodes == 2);
  CHECK(c.least_compute_capability == 90);
  CHECK(c.cpu == Cpu::intel);
  Request request;
  request.bytes = Bytes(GiB);
  CHECK(select(c, request, {}).choice().algorithm == Algorithm::nvls_tree);

  const Machine ampere = make_machine(load_profile("dgx-a100", {}), 8, std::nullopt, {});
  check(describe(ampere, {8, 1, 8, 8}, {}, {}).ring, 12, 20, 20);
  CHECK(describe(ampere, {8, 1, 8, 8}, {Version::v2_28, Cpu::arm}, {}).cpu == Cpu::arm);
}

// aws-ofi-nccl shows the four 100 Gb/s NICs of a p5's GPU as one of 400, as the DGX H100 has.
TEST_CASE("several NICs of a GPU count as one") {
  Machine machine = make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {});
  const Communicator one = describe(machine, {16, 2, 8, 8}, {}, {});
  auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  cluster.scale_out->nics_per_node.value = 32;
  cluster.scale_out->bandwidth.value = Bandwidth(12.5e9);
  const Communicator four = describe(machine, {16, 2, 8, 8}, {}, {});
  check(four.ring, one.ring.channels, 48, 48);
  CHECK(four.ring.network_latency == Seconds(0));
  cluster.nccl->network_latency = Sourced<Seconds>{Seconds(75e-6), {}};
  CHECK(describe(machine, {16, 2, 8, 8}, {}, {}).ring.network_latency == Seconds(75e-6));
}

TEST_CASE("nodes with different numbers of ranks go by the weaker") {
  const Machine machine = make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {});
  // One rank on a node has 2 channels of 24, eight have 8 of 48.
  const Communicator c = describe(machine, {9, 2, 1, 8}, {}, {});
  check(c.ring, 2, 24, 24);
  CHECK(c.nvls.channels == 0);
  CHECK(c.ring.intra_path == PathType::nvlink);
}

TEST_CASE("machines that NCCL does not run on, or that we do not know") {
  const Place place{"command line", ""};
  const Machine torus = make_machine(load_profile("tpu-v5p", place), 8, std::nullopt, place);
  CHECK_THROWS_WITH(describe(torus, {8, 1, 8, 8}, {}, place),
                    "command line: NCCL does not run on tpu-v5p");
  Machine other = make_machine(load_profile("dgx-h100", place), 8, std::nullopt, place);
  CHECK_THROWS_WITH(describe(other, {1, 1, 1, 1}, {}, place), Catch::Contains("one rank"));
  std::get<ClusterProfile>(other.profile.network).nccl.reset();
  CHECK_THROWS_WITH(describe(other, {16, 2, 8, 8}, {}, place),
                    "command line: how NCCL sees a node of dgx-h100 is not known: its profile has "
                    "no section \"nccl\"");
}

// By hand: in a node 16 channels share what the links have. Over nodes 4 NICs of 50 GB/s behind
// PCIe 5, which counts as 48, have a channel of 48 each, doubled at half of that, as few are; a
// tree's chain may have twice the speed across, 48, as 8 * 48 <= 8/7 of 370.8.
TEST_CASE("nodes that the search does not know have plain channels") {
  const double links = 18 * 20.6e9;  // NCCL counts NVLink 4 at 20.6 GB/s
  Machine machine = make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {});
  auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  cluster.scale_up.fabric.value = Fabric::nvlink;
  const Communicator one = describe(machine, {8, 1, 8, 8}, {}, {});
  CHECK(one.ring.channels == 16);
  CHECK(one.ring.intra.count() == Approx(links / 16));
  CHECK(one.nvls.channels == 0);
  CHECK(!one.nvswitch);

  cluster.scale_out->nics_per_node.value = 4;
  const Communicator four_nodes = describe(machine, {32, 4, 8, 8}, {}, {});
  CHECK(four_nodes.ring.channels == 8);
  CHECK(four_nodes.ring.inter.count() == Approx(24e9));
  CHECK(four_nodes.ring_channels == 16);
  CHECK(four_nodes.tree.inter.count() == Approx(24e9));
  CHECK(four_nodes.tree.intra.count() == Approx(48e9));
}

Candidate choice_on(const char* profile, std::int64_t nodes, Operation operation, Bytes bytes) {
  const Machine machine = make_machine(load_profile(profile, {}), 4 * nodes, std::nullopt, {});
  const Communicator communicator = describe(machine, {4 * nodes, nodes, 4, 4}, {}, {});
  Request request;
  request.operation = operation;
  request.bytes = bytes;
  return select(communicator, request, {}).choice();
}

// 4 A100s with 2 NICs of 25 GB/s: two channels of 24. Over two nodes a tree has at most 23.6 GB/s a
// channel: 2 * 23.6 / 2 = 23.6 GB/s; a ring 2 * 24 * 8/14 = 27.4. What was measured there goes at a
// ring's pace: 36.0 GB/s of bus bandwidth over 2 and 36.1 over 8 nodes (a100_polaris_*_allreduce).
// 4 GH200s with 4 such NICs have trees of min(0.92 * 4 * 48, 4 * 41.4) / 2 = 82.8, rings of 54.9:
// measured are 158 over 2 nodes, which no ring over 4 NICs of 25 GB/s reaches.
TEST_CASE("NICs decide between rings and trees over two nodes") {
  CHECK(choice_on("polaris", 2, Operation::all_reduce, Bytes(GiB)).algorithm == Algorithm::ring);
  CHECK(choice_on("alps", 2, Operation::all_reduce, Bytes(GiB)).algorithm == Algorithm::tree);
}

// 4 NICs of 25 GB/s for 8 H100s: 4 channels of 24, two blocks each; TCPX has the GPUs unpack what
// arrives, on twice as many.
TEST_CASE("GPUs that unpack what their NICs receive take twice the thread blocks") {
  const Machine machine = make_machine(load_profile("gcp-a3-high", {}), 16, std::nullopt, {});
  const Communicator communicator = describe(machine, {16, 2, 8, 8}, {}, {});
  CHECK(communicator.ring.channels == 4);
  CHECK(communicator.ring_channels == 16);
  CHECK(communicator.network_offload);
}

// Some of the four A100s have no NIC on a switch of their own: the way leads over the host bridge,
// and NCCL takes no LL128 across it.
TEST_CASE("fewer NICs than PCIe switches: no LL128 over nodes") {
  for (const Bytes bytes : {Bytes(64 * KiB), Bytes(MiB), Bytes(16 * MiB)}) {
    CHECK(choice_on("polaris", 8, Operation::all_gather, bytes).protocol != Protocol::ll128);
  }
  CHECK(choice_on("alps", 8, Operation::all_gather, Bytes(MiB)).protocol == Protocol::ll128);
}

}  // namespace shardsim::nccl
