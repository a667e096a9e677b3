// NCCL over a network whose switches reduce: channels, choice and cost, as examples/machines/
// dgx-h100-sharp.json describes one.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/collectives/collective_cost.hpp"
#include "sim/nccl/describe.hpp"
#include "sim/nccl/graph_search.hpp"
#include "sim/nccl/selection.hpp"
#include "sim/nccl/tuner.hpp"
#include "tests/sim/nccl_machines.hpp"

namespace shardsim::nccl::nccl_collnet_test {
namespace {

using Catch::Contains;

constexpr double in = 0.824 * 450e9;      // of a GPU into its node
constexpr double reducing = 0.95 * 50e9;  // of a NIC, of reductions

Profile h100_with_sharp() {
  return load_profile(SHARDSIM_SOURCE_DIR "/examples/machines/dgx-h100-sharp.json", {});
}

Machine machine_of(std::int64_t nodes) {
  return make_machine(h100_with_sharp(), 8 * nodes, std::nullopt, {});
}

void check_graph(const ChannelGraph& graph, std::int64_t channels, double intra, double inter) {
  CHECK(graph.channels == channels);
  CHECK(graph.intra.count() / 1e9 == Approx(intra));
  CHECK(graph.inter.count() / 1e9 == Approx(inter));
}

CostBreakdown cost_of(const Machine& machine, CollectiveKind kind, std::optional<Algorithm> forced,
                      Bytes payload = Bytes(4 * GiB), bool one_of_each_node = false) {
  const Mesh mesh({{"nodes", machine.nodes}, {"x", 8}});
  const Placement placement(mesh, machine, collective_models::uncalibrated);
  Collective collective;
  collective.kind = kind;
  collective.payload = payload;
  collective.axes = {mesh.whole(0)};
  if (!one_of_each_node) collective.axes.push_back(mesh.whole(1));
  CostOptions options;
  const std::string name(forced ? name_of(*forced) : "");
  if (forced) options.told = {{kind, {}, name, "", {"", "/algorithm"}, {}}};
  return collective_cost(placement, collective, options);
}

constexpr auto reduce = CollectiveKind::all_reduce;
constexpr auto gather = CollectiveKind::all_gather;
constexpr auto scatter = CollectiveKind::reduce_scatter;
constexpr double payload = 4.0 * GiB;

}  // namespace

// Every GPU a head at the NIC's 48 GB/s (PCIe), the fastest speed there is; 2 * 48 <= 370.8. Chains
// as many as rings, by the same rules as plain trees.
TEST_CASE("CollNet's channels of H100 nodes with a NIC per GPU") {
  SwitchNode node = testing::h100_node(8);
  CHECK(search_graphs(node, true)->collnet_direct.channels == 0);
  node.network_reduces = true;
  const NodeGraphs graphs = search_graphs(node, true).value();
  check_graph(graphs.collnet_direct, 8, 48, 48);
  check_graph(graphs.collnet_chain, 8, 48, 48);
  CHECK(graphs.ring_channels == 16);
  CHECK(search_graphs(node, false)->collnet_chain.channels == 0);
}

// NICs of 200 Gbit/s behind PCIe 4: heads at 24 across; in the node the list goes up 28, 30, 48,
// twice 24, and 2 * 48 <= 240.
TEST_CASE("CollNet goes up to twice as fast in the node") {
  SwitchNode node;
  node.compute_capability = 80;
  node.nvlink = Bandwidth(12 * 20e9);
  node.pcie = Bandwidth(24e9);
  node.nic = Bandwidth(25e9);
  node.gpus_per_pcie_switch = 2;
  node.network_reduces = true;
  const NodeGraphs graphs = search_graphs(node, true).value();
  check_graph(graphs.collnet_direct, 8, 48, 24);
  // NVLink of 60 GB/s has room for 30 a head, no more.
  node.nvlink = Bandwidth(60e9);
  check_graph(search_graphs(node, true)->collnet_direct, 8, 30, 24);
}

TEST_CASE("one GPU per node is a head alone") {
  SwitchNode node = testing::h100_node(1);
  node.network_reduces = true;
  const NodeGraphs graphs = search_graphs(node, true).value();
  check_graph(graphs.collnet_direct, 1, 48, 48);
  CHECK(graphs.collnet_chain.channels == graphs.ring.channels);
}

TEST_CASE("a machine's communicator has CollNet where its network reduces") {
  const Communicator c = describe(machine_of(4), {32, 4, 8, 8}, {}, {});
  REQUIRE(c.collnet);
  CHECK(c.collnet->heads == 8);
  CHECK(c.collnet->all_gather);
  CHECK(c.collnet->reduce_scatter);
  check_graph(c.collnet_direct, 8, 48, 48);
  CHECK(!describe(machine_of(1), {8, 1, 8, 8}, {}, {}).collnet);
  const Machine plain = make_machine(load_profile("dgx-h100", {}), 32, std::nullopt, {});
  CHECK(!describe(plain, {32, 4, 8, 8}, {}, {}).collnet);
}

// By the constants of tuning.cc: CollNetDirect 8 * 48 / ((1 + 1) / 2) * 0.85 / 2 = 163.2 GB/s, 31 +
// 2 (3.7 + 7 * 0.4) = 44 us; CollNetChain 8 * 48 / 2 = 192 GB/s, 30 + 14 * 2.8 = 69.2 us; NVLS
// min(2 * 0.85 * 7/8 * 40, 48) = 48 a channel, 384 * 32/62 = 198.2 GB/s, 25 + 18 = 43 us; NVLSTree
// 45.5 a channel, 187.9 GB/s, 25 + 4 * 20.9 = 108.6 us.
TEST_CASE("the tuner's figures over four nodes") {
  const Communicator c = describe(machine_of(4), {32, 4, 8, 8}, {}, {});
  const auto check_estimate = [&](Algorithm algorithm, double microseconds, double gigabytes) {
    const std::vector<Estimate> table = tuning_table(c, Operation::all_reduce);
    const auto found = std::find_if(table.begin(), table.end(), [&](const Estimate& estimate) {
      return estimate.algorithm == algorithm;
    });
    REQUIRE(found != table.end());
    CHECK(found->latency.count() * 1e6 == Approx(microseconds));
    CHECK(found->bandwidth.count() / 1e9 == Approx(gigabytes).epsilon(1e-3));
  };
  check_estimate(Algorithm::collnet_direct, 44, 163.2);
  check_estimate(Algorithm::collnet_chain, 69.2, 192);
  check_estimate(Algorithm::nvls, 43, 198.2);
  check_estimate(Algorithm::nvls_tree, 108.6, 187.9);
  // By itself it takes the fastest of them for large arrays.
  Request request;
  request.bytes = Bytes(GiB);
  CHECK(select(c, request, {}).choice().algorithm == Algorithm::nvls);
}

// P out of a node at the reduction's efficiency, and in the node what the header derives.
TEST_CASE("what reductions in the network carry") {
  const Machine machine = machine_of(4);
  const double across = payload / (8 * reducing);
  const auto transfer = [&](CollectiveKind kind, Algorithm algorithm) {
    return cost_of(machine, kind, algorithm).transfer.count();
  };
  CHECK(transfer(reduce, Algorithm::collnet_direct) ==
        Approx(std::max(across, 14.0 / 8 * payload / in)));
  CHECK(transfer(reduce, Algorithm::collnet_chain) == Approx(std::max(across, 2 * payload / in)));
  CHECK(transfer(reduce, Algorithm::nvls) ==
        Approx(std::max(across, 9.0 / 8 * payload / (0.85 * in))));
  for (const CollectiveKind half : {gather, scatter}) {
    CHECK(transfer(half, Algorithm::collnet_direct) ==
          Approx(std::max(across, 7.0 / 8 * payload / in)));
    CHECK(transfer(half, Algorithm::nvls) ==
          Approx(std::max(across, 7.0 / 8 * payload / (0.85 * in))));
  }
  // One GPU of each node has a NIC and no NVLink.
  const CostBreakdown rail =
      cost_of(machine, reduce, Algorithm::collnet_chain, Bytes(4 * GiB), true);
  CHECK(rail.transfer.count() == Approx(payload / reducing));
  CHECK(levels_of(rail) == std::vector{LinkLevel::scale_out});
}

// A ring of k GPUs, one of each node, carries 2 (k - 1) / k P, the network that reduces P: on links
// that are as good for either the ratio is that, 1 for two nodes and 2 in the limit.
TEST_CASE("a network that reduces is never slower than a ring, and twice as fast over many nodes") {
  for (const std::int64_t nodes : {2, 3, 8, 128}) {
    Machine machine = machine_of(nodes);
    auto& out = *std::get<ClusterProfile>(machine.profile.network).scale_out;
    out.reduction->efficiency.value = out.efficiency.value;
    const auto transfer = [&](Algorithm algorithm) {
      return cost_of(machine, reduce, algorithm, Bytes(4 * GiB), /*one_of_each_node=*/true)
          .transfer.count();
    };
    const auto k = static_cast<double>(nodes);
    CHECK(transfer(Algorithm::ring) / transfer(Algorithm::collnet_direct) ==
          Approx(2 * (k - 1) / k));
  }
}

// A reduce-scatter comes down as the k-th part of what went up, an all-gather goes up as that.
TEST_CASE("halves load the two directions of a NIC unlike") {
  const Machine machine = machine_of(4);
  const double share = payload / (8 * reducing) / (7.0 / 8 * payload / (0.85 * in));
  const LinkUse down = cost_of(machine, scatter, Algorithm::nvls).links.back();
  CHECK(down.level == LinkLevel::scale_out);
  CHECK(down.out == Approx(std::min(1.0, share)));
  CHECK(down.in == Approx(std::min(1.0, share) / 4));
  const LinkUse up = cost_of(machine, gather, Algorithm::nvls).links.back();
  CHECK(up.in == Approx(std::min(1.0, share)));
  CHECK(up.out == Approx(std::min(1.0, share) / 4));
}

// traffic_of_switches: 6 P of an all-reduce and 2 for each of the P / 8 bytes that leave by the
// NIC. Thread blocks: 3 for each byte sent, 14/8 P inside and P / 8 out, and 2 of the NIC's.
TEST_CASE("memory and thread blocks of reductions in the network") {
  const Machine machine = machine_of(4);
  const CostBreakdown nvls = cost_of(machine, reduce, Algorithm::nvls);
  CHECK(nvls.memory.total() == Approx((6 + 2.0 / 8) * payload));
  CHECK(nvls.thread_blocks == 16);
  const CostBreakdown direct = cost_of(machine, reduce, Algorithm::collnet_direct);
  CHECK(direct.memory.total() == Approx((3 * (14.0 + 1) / 8 + 2.0 / 8) * payload));
  CHECK(direct.thread_blocks == 16);
  // Below 16 blocks of 640 * 512 * 8 bytes, 2.5 MiB, down to 8 and so on, with half the work from
  // 12 on: 16 MiB is enough for 6.4 blocks of 2.5 MiB and for 12.8 of half.
  const auto blocks = [&](Bytes bytes) {
    return cost_of(machine, reduce, Algorithm::collnet_direct, bytes).thread_blocks;
  };
  CHECK(blocks(Bytes(40 * MiB)) == 16);
  CHECK(blocks(Bytes(16 * MiB)) == 11);
  CHECK(blocks(Bytes(KiB)) == 1);
  // Of a chain a block for each 640 * 512 bytes, 320 KiB.
  CHECK(cost_of(machine, reduce, Algorithm::collnet_chain, Bytes(MiB)).thread_blocks == 3);
}

TEST_CASE("what a network that reduces cannot do is said") {
  const Machine plain = make_machine(load_profile("dgx-h100", {}), 16, std::nullopt, {});
  CHECK_THROWS_WITH(cost_of(plain, reduce, Algorithm::collnet_direct),
                    Contains("CollNet needs a network that reduces"));
  CHECK_THROWS_WITH(cost_of(plain, reduce, Algorithm::nvls),
                    Contains("NVLS over several nodes needs a network that reduces"));
  CHECK_THROWS_WITH(cost_of(machine_of(1), reduce, Algorithm::collnet_chain),
                    Contains("CollNet needs several nodes"));
  CHECK_THROWS_WITH(cost_of(machine_of(2), gather, Algorithm::collnet_chain),
                    Contains("CollNetChain does not implement AllGather"));
  Profile without = h100_with_sharp();
  std::get<ClusterProfile>(without.network).scale_out->reduction->all_gather.reset();
  CHECK_THROWS_WITH(cost_of(make_machine(without, 16, std::nullopt, {}), gather, Algorithm::nvls),
                    Contains("the network's plugin has no AllGather"));
}

// NICs shared by two GPUs: four heads; 10/4 P of a head inside, P over four NICs.
TEST_CASE("fewer NICs than GPUs are fewer heads") {
  Machine machine = machine_of(2);
  auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  cluster.scale_out->nics_per_node.value = 4;
  const Communicator c = describe(machine, {16, 2, 8, 8}, {}, {});
  CHECK(c.collnet->heads == 4);
  const double time = cost_of(machine, reduce, Algorithm::collnet_direct).transfer.count();
  CHECK(time == Approx(std::max(payload / (4 * reducing), 10.0 / 4 * payload / in)));
  CHECK_THROWS_WITH(cost_of(machine, gather, Algorithm::collnet_direct),
                    Contains("not every GPU has a NIC of its own"));
}

}  // namespace shardsim::nccl::nccl_collnet_test
