// Collectives as NCCL runs them on H100s: the formulas of sim/collectives/nccl_cost.hpp with the
// profile's rates, 0.824 of 450 GB/s of a GPU into its node and 0.97 of 50 GB/s of a NIC.
#include "sim/collectives/nccl_cost.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace shardsim {
namespace {

using Catch::Contains;
using nccl::Algorithm;
using nccl::Protocol;

constexpr double in = 0.824 * 450e9;
constexpr double nic = 0.97 * 50e9;

// Of a group of all GPUs, or of one on each node, as it is before it is calibrated.
struct Group {
  std::int64_t nodes = 1;
  std::int64_t of_each = 8;
};

CostBreakdown h100_cost(const Group& group, CollectiveKind kind, double payload,
                        const nccl::Forced& forced = {}) {
  const Machine machine =
      make_machine(load_profile("dgx-h100", {}), group.nodes * 8, std::nullopt, {});
  const Mesh mesh({{"nodes", group.nodes}, {"x", 8}});
  const Placement placement(mesh, machine, collective_models::uncalibrated);
  Collective collective;
  collective.kind = kind;
  collective.axes = {mesh.whole(0)};
  if (group.of_each == 8) collective.axes.push_back(mesh.whole(1));
  collective.payload = Bytes(static_cast<std::int64_t>(payload));
  CostOptions options;
  ToldAlgorithm told;
  told.kind = kind;
  told.algorithm_place = told.protocol_place = {"", "/algorithm"};
  if (forced.algorithm) told.algorithm = nccl::name_of(*forced.algorithm);
  if (forced.protocol) told.protocol = nccl::name_of(*forced.protocol);
  if (forced.algorithm || forced.protocol) options.told = {told};
  return collective_cost(placement, collective, options);
}

double transfer_of(const Group& group, CollectiveKind kind, double payload, Algorithm algorithm,
                   Protocol protocol = Protocol::simple) {
  return h100_cost(group, kind, payload, {algorithm, protocol}).transfer.count();
}

constexpr double gib = GiB;
constexpr auto reduce = CollectiveKind::all_reduce;
constexpr auto gather = CollectiveKind::all_gather;
constexpr auto scatter = CollectiveKind::reduce_scatter;

}  // namespace

// NCCL has rings for it. In one node all channels are alike: a hop of 3.4 us in the Simple protocol
// behind 8.4 us; what each link of the chain carries is all of the payload. Over nodes 8 chains
// leave each node by a NIC each.
TEST_CASE("a broadcast goes along NCCL's rings") {
  const CostBreakdown node = h100_cost({}, CollectiveKind::broadcast, gib);
  CHECK(node.algorithm == "Ring");
  CHECK(node.protocol == "Simple");
  CHECK(node.launch.count() == Approx(8.4e-6));
  CHECK(node.latency.count() == Approx(3.4e-6));
  CHECK(node.transfer.count() == Approx(gib / in));
  const CostBreakdown nodes = h100_cost({.nodes = 4}, CollectiveKind::broadcast, gib);
  CHECK(nodes.transfer.count() == Approx(gib / (16 * 20.5e9)));  // of 16 thread blocks
  const CostBreakdown rail = h100_cost({4, 1}, CollectiveKind::broadcast, gib);
  CHECK(rail.transfer.count() == Approx(gib / nic));
  CHECK_THROWS_WITH(h100_cost({}, CollectiveKind::broadcast, gib, {Algorithm::tree, std::nullopt}),
                    Contains("Tree does not implement Broadcast"));
}

// The header's example: 15.3 ms, a bus bandwidth of 7/4 * 4 GiB / 15.3 ms = 490 GB/s.
TEST_CASE("NVLS of 8 GPUs: all of the payload up, an eighth again down") {
  const CostBreakdown cost = h100_cost({}, reduce, 4 * gib);  // NCCL's own choice at this size
  CHECK(cost.algorithm == "NVLS");
  CHECK(cost.protocol == "Simple");
  CHECK(cost.transfer.count() == Approx(9.0 / 8 * 4 * gib / (0.85 * in)));
  CHECK(cost.transfer.count() == Approx(15.3e-3).epsilon(0.005));
  CHECK(7.0 / 4 * 4 * gib / cost.transfer.count() == Approx(490e9).epsilon(0.005));
  CHECK(levels_of(cost) == std::vector{LinkLevel::scale_up});
  // Its halves leave a rank's own eighth where it is.
  for (const CollectiveKind half : {gather, scatter}) {
    CHECK(transfer_of({}, half, gib, Algorithm::nvls) == Approx(7.0 / 8 * gib / (0.85 * in)));
  }
}

// W = 2 * 7/8 P. NCCL's constants of the Simple protocol: 8.4 us a call, 3.4 us a step, 14 steps.
TEST_CASE("a ring in the node, by protocol") {
  const CostBreakdown simple = h100_cost({}, reduce, gib, {Algorithm::ring, Protocol::simple});
  CHECK(simple.algorithm == "Ring");
  CHECK(simple.transfer.count() == Approx(1.75 * gib / in));
  CHECK(simple.launch.count() == Approx(8.4e-6));
  CHECK(simple.latency.count() == Approx(14 * 3.4e-6));
  CHECK(transfer_of({}, reduce, gib, Algorithm::ring, Protocol::ll128) ==
        Approx(1.75 * gib / in / 0.92));
  CHECK(transfer_of({}, reduce, gib, Algorithm::ring, Protocol::ll) == Approx(1.75 * gib / in * 2));
  CHECK(transfer_of({}, gather, gib, Algorithm::ring) == Approx(0.875 * gib / in));
}

// 16 ranks: W = 2 * 15/16 P through 8 NICs, 388 GB/s, or into every GPU, 370.8 GB/s, the larger.
// One rank per node: W = P through its NIC, no NVLink.
TEST_CASE("a ring over nodes takes the slower of the two ways") {
  CHECK(transfer_of({2}, reduce, gib, Algorithm::ring, Protocol::ll128) ==
        Approx(1.875 * gib / (0.92 * in)));
  const CostBreakdown rail = h100_cost({2, 1}, reduce, gib, {Algorithm::ring, Protocol::simple});
  CHECK(rail.transfer.count() == Approx(gib / nic));
  CHECK(levels_of(rail) == std::vector{LinkLevel::scale_out});
}

// In the Simple protocol 16 thread blocks of 20.5 GB/s, 328 GB/s, are less than either. With one
// rank per node 4 blocks share its NIC and carry 82 GB/s, more than that.
TEST_CASE("thread blocks bound a ring of chunks over nodes") {
  const CostBreakdown ring = h100_cost({10}, gather, gib, {Algorithm::ring, Protocol::simple});
  CHECK(ring.transfer.count() == Approx(79.0 / 80 * gib / (16 * 20.5e9)));
  CHECK(transfer_of({10, 1}, gather, gib, Algorithm::ring) == Approx(0.9 * gib / nic));
  // Lines of LL128 go at once.
  CHECK(transfer_of({2}, reduce, gib, Algorithm::ring, Protocol::ll128) ==
        Approx(1.875 * gib / (0.92 * in)));
}

TEST_CASE("a tree: a chain in every node, double binary trees between") {
  const double chain = 2 * gib / (0.92 * in);
  CHECK(transfer_of({1}, reduce, gib, Algorithm::tree) == Approx(chain));
  // 8 NICs take P / 388 GB/s over two nodes and 2 P / 388 GB/s over four: less than the chain,
  // 2 P / 341 GB/s.
  CHECK(transfer_of({2}, reduce, gib, Algorithm::tree) == Approx(chain));
  CHECK(transfer_of({4}, reduce, gib, Algorithm::tree) == Approx(chain));
  // One rank per node has no chain.
  CHECK(transfer_of({2, 1}, reduce, gib, Algorithm::tree) == Approx(gib / nic));
  CHECK(transfer_of({4, 1}, reduce, gib, Algorithm::tree) == Approx(2 * gib / nic));
  // Of three nodes one is between the others in one tree, P out, and a leaf of the other, P / 2.
  // Published: 16 GiB over three domains of 4 GB200s with a NIC of 50 GB/s each at 127.9 GB/s
  // (NVIDIA/nccl, issue 1801): 4 * 50 / 1.5 is 133, 4 * 50 / 2 would be 100.
  CHECK(transfer_of({3, 1}, reduce, gib, Algorithm::tree) == Approx(1.5 * gib / nic));
  // Lines with flags.
  CHECK(transfer_of({1}, reduce, gib, Algorithm::tree, Protocol::ll128) == Approx(chain * 9 / 7));
  CHECK(transfer_of({2}, reduce, gib, Algorithm::tree, Protocol::ll128) ==
        Approx(chain * 128 / 120));
  CHECK(transfer_of({2}, reduce, gib, Algorithm::tree, Protocol::ll) == Approx(chain * 3.8));
}

// In the switches 9/8 P / (0.85 * 370.8 GB/s) = P / 280 GB/s; between two nodes P / 388 GB/s, less,
// between four 2 P / 388 GB/s, more.
TEST_CASE("NVLSTree: the switches of two nodes, the NICs of four") {
  CHECK(transfer_of({2}, reduce, gib, Algorithm::nvls_tree) == Approx(1.125 * gib / (0.85 * in)));
  CHECK(transfer_of({4}, reduce, gib, Algorithm::nvls_tree) == Approx(2 * gib / (8 * nic)));
}

// W = 3/4 P.
TEST_CASE("PAT, one rank on each of four nodes") {
  CHECK(transfer_of({4, 1}, gather, gib, Algorithm::pat) == Approx(0.75 * gib / (0.75 * nic)));
}

TEST_CASE("what is forced and cannot run is an error") {
  const auto forced = [](const Group& group, CollectiveKind kind, const nccl::Forced& choice) {
    try {
      static_cast<void>(h100_cost(group, kind, gib, choice));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(forced({1}, reduce, {Algorithm::nvls_tree, {}}),
             Contains("/algorithm: NCCL cannot use NVLSTree for AllReduce on these 8 ranks: "));
  CHECK_THAT(forced({2}, reduce, {Algorithm::nvls, {}}), Contains("NCCL cannot use NVLS"));
  CHECK_THAT(forced({1}, gather, {Algorithm::tree, {}}), Contains("NCCL cannot use Tree"));
  CHECK_THAT(forced({2}, gather, {Algorithm::pat, {}}), Contains("NCCL cannot use PAT"));
  CHECK_THAT(forced({1}, reduce, {Algorithm::nvls, Protocol::ll}), Contains("NVLS"));
  CHECK(forced({1}, reduce, {Algorithm::ring, Protocol::ll}) == "none");
}

TEST_CASE("NCCL chooses no algorithm of all-to-all and permute") {
  CHECK(nccl_operation(reduce) == nccl::Operation::all_reduce);
  CHECK(nccl_operation(gather) == nccl::Operation::all_gather);
  CHECK(nccl_operation(scatter) == nccl::Operation::reduce_scatter);
  CHECK(nccl_operation(CollectiveKind::broadcast) == nccl::Operation::broadcast);
  CHECK_FALSE(nccl_operation(CollectiveKind::all_to_all));
  CHECK_FALSE(nccl_operation(CollectiveKind::collective_permute));
}

// NVIDIA's own sample of what a DGX H100 reaches, 480 GB/s; nothing is fitted to it here.
TEST_CASE("8 GiB on a DGX H100 as published, within 3 %") {
  const Json table =
      load_json(SHARDSIM_SOURCE_DIR "/tests/measurements/collectives/h100_dgx_1n8g_allreduce.json");
  double measured = 0;
  for (const Json& row : table.at("rows")) {
    if (row.at("bytes") == 8 * GiB) measured = row.at("time_us").get<double>() * 1e-6;
  }
  REQUIRE(measured > 0);
  CHECK(h100_cost({}, reduce, 8 * gib).total().count() == Approx(measured).epsilon(0.03));
}

// 32 channels of 20.1 GB/s copy 512 MiB in 0.835 ms, whoever gets it: longer than 1/2 or 7/8 of it
// takes on links of 900 GB/s. aiconfigurator-core 0.12.0 has 0.81 to 0.86 ms on 2 B200 and 0.83 to
// 0.89 on 8. Links of an H100 take longer than its channels from 4 GPUs on.
TEST_CASE("channels bound an all-to-all in a node where links are faster") {
  const auto transfer_on = [](const char* profile, std::int64_t devices) {
    const Machine machine = make_machine(load_profile(profile, {}), devices, std::nullopt, {});
    const Mesh mesh({{"x", devices}});
    Collective collective;
    collective.kind = CollectiveKind::all_to_all;
    collective.axes = {mesh.whole(0)};
    collective.payload = Bytes(512 * MiB);
    const Placement placement(mesh, machine, collective_models::uncalibrated);
    return collective_cost(placement, collective, {}).transfer.count();
  };
  CHECK(transfer_on("dgx-b200", 2) == Approx(512.0 * MiB / (32 * 20.1e9)));
  CHECK(transfer_on("dgx-b200", 8) == Approx(512.0 * MiB / (32 * 20.1e9)));
  CHECK(transfer_on("dgx-h100", 2) == Approx(512.0 * MiB / (32 * 17.4e9)));
  CHECK(transfer_on("dgx-h100", 8) == Approx(7.0 / 8 * 512 * MiB / in));
}

}  // namespace shardsim
