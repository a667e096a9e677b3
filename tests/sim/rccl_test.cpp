#include <catch2/catch.hpp>

#include "machines.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/nccl/rccl_constants.hpp"
#include "sim/nccl/rccl_selection.hpp"

namespace shardsim {
namespace {

using nccl::Algorithm;
using nccl::Operation;
using nccl::Protocol;

constexpr double us = 1e-6;

Machine mi300x(std::int64_t devices) {
  return make_machine(load_profile("mi300x", {}), devices, std::nullopt, {});
}

nccl::RcclCommunicator communicator(std::int64_t ranks, std::int64_t nodes) {
  const NodeSpread spread{ranks, nodes, ranks / nodes, ranks / nodes};
  const Machine machine = mi300x(std::max<std::int64_t>(nodes, 1) * 8);
  return nccl::describe_rccl(std::get<ClusterProfile>(machine.profile.network), spread);
}

nccl::Candidate candidate(const nccl::RcclCommunicator& communicator, Operation operation,
                          std::int64_t bytes, Algorithm algorithm, Protocol protocol) {
  nccl::Request request;
  request.operation = operation;
  request.bytes = Bytes(bytes);
  request.forced = {algorithm, protocol};
  return nccl::rccl_candidates(communicator, request).at(0);
}

std::string chosen(std::int64_t ranks, std::int64_t nodes, Operation operation,
                   std::int64_t bytes) {
  nccl::Request request;
  request.operation = operation;
  request.bytes = Bytes(bytes);
  const nccl::Candidate choice = nccl::rccl_choice(communicator(ranks, nodes), request, {});
  return std::string(name_of(choice.algorithm)) + " " + std::string(name_of(choice.protocol));
}

// RCCL 2.21.5 (ROCm/rccl @0cbce2a7571c, src/graph/tuning.cc, 2024-10), model 5: what both releases
// have. The later one differs in LL128 and in Simple from 128 MiB on.
TEST_CASE("RCCL's constants for gfx942") {
  const nccl::RcclConstants& constants = nccl::rccl_constants();
  const auto latency = [](const nccl::RcclLatencies& row, Algorithm algorithm, Protocol protocol) {
    return nccl::of(row, algorithm, protocol).count() / us;
  };
  CHECK(latency(constants.base, Algorithm::ring, Protocol::ll) == Approx(12));
  CHECK(latency(constants.base, Algorithm::tree, Protocol::simple) == Approx(17));
  CHECK(latency(constants.xgmi, Algorithm::tree, Protocol::ll) == Approx(0.9));
  CHECK(latency(constants.xgmi, Algorithm::tree, Protocol::simple) == Approx(2.3));
  CHECK(latency(constants.xgmi, Algorithm::ring, Protocol::ll) == Approx(0.8));
  CHECK(latency(constants.xgmi, Algorithm::ring, Protocol::simple) == Approx(2.1));
  CHECK(latency(constants.network, Algorithm::tree, Protocol::ll) == Approx(10.5));
  CHECK(latency(constants.network, Algorithm::tree, Protocol::simple) == Approx(25));
  CHECK(latency(constants.network, Algorithm::ring, Protocol::ll) == Approx(9.5));
  CHECK(latency(constants.network, Algorithm::ring, Protocol::simple) == Approx(320));
  CHECK(nccl::of(constants.two_nodes, Algorithm::tree, Protocol::ll) == 0.06);
  CHECK(nccl::of(constants.two_nodes, Algorithm::tree, Protocol::simple) == 0.11);
  CHECK(nccl::of(constants.more_nodes, Algorithm::tree, Protocol::simple) == 0.59);
  CHECK(nccl::of(constants.two_nodes, Algorithm::ring, Protocol::ll) == 0.08);
  CHECK(nccl::of(constants.more_nodes, Algorithm::ring, Protocol::simple) == 1);
}

// The rows of that release's LL and of Simple up to 64 MiB, by log2(bytes / 64).
TEST_CASE("RCCL's corrections by size for gfx942") {
  const std::vector<double> tree_ll = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0,
                                       1.0, 1.0, 0.6, 1.0, 0.9, 1.0, 1.0, 0.1, 0.1,
                                       0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
  const std::vector<double> ring_ll = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                       0.1, 0.1, 1.0, 0.2, 1.0, 0.4, 0.4, 0.1, 0.2,
                                       0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
  const std::vector<double> tree_simple = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                           0.1, 0.1, 0.1, 0.1, 0.7, 1.0, 1.0, 1.0, 1.0, 1.0};
  const nccl::RcclConstants& constants = nccl::rccl_constants();
  for (std::size_t i = 0; i < tree_ll.size(); ++i) {
    const Bytes bytes(std::int64_t{64} << i);
    CHECK(nccl::of(constants.tree, Protocol::ll, bytes) == tree_ll[i]);
    CHECK(nccl::of(constants.ring, Protocol::ll, bytes) == ring_ll[i]);
    if (i < tree_simple.size()) {
      CHECK(nccl::of(constants.tree, Protocol::simple, bytes) == tree_simple[i]);
      CHECK(nccl::of(constants.ring, Protocol::simple, bytes) == 0.1);
    }
  }
  CHECK(nccl::of(constants.ring, Protocol::simple, Bytes(16 * GiB)) == 1);
  CHECK(nccl::of(constants.tree, Protocol::ll, Bytes(1)) == 0.1);
}

// The example of rccl_selection.hpp.
TEST_CASE("RCCL's times in one node") {
  const nccl::RcclCommunicator node = communicator(8, 1);
  CHECK(node.links.count() == Approx(336e9));
  CHECK_FALSE(node.ll128);
  const auto time = [&](Algorithm algorithm, Protocol protocol) {
    return candidate(node, Operation::all_reduce, 64 * KiB, algorithm, protocol).time.count() / us;
  };
  CHECK(time(Algorithm::ring, Protocol::ll) == Approx(27.5).margin(0.05));
  CHECK(time(Algorithm::ring, Protocol::simple) == Approx(46.7).margin(0.05));
  CHECK(time(Algorithm::tree, Protocol::ll) == Approx(31.1).margin(0.05));
}

// Two nodes of 8: 30 steps, 2 of them across; posting to the network takes 1 us, 3 us in Simple.
TEST_CASE("RCCL's latencies over two nodes") {
  const nccl::RcclCommunicator nodes = communicator(16, 2);
  CHECK(nodes.ll128);
  const auto latency = [&](Algorithm algorithm, Protocol protocol) {
    return candidate(nodes, Operation::all_reduce, GiB, algorithm, protocol).latency.count() / us;
  };
  CHECK(latency(Algorithm::ring, Protocol::ll) == Approx(12 + 28 * 1 + 2 * 9.5));
  CHECK(latency(Algorithm::ring, Protocol::simple) == Approx(17 + 28 * 3 + 2 * 320));
  CHECK(latency(Algorithm::tree, Protocol::ll) == Approx(12 + 2 * (7 * 0.9 + 10.5)));
  CHECK(latency(Algorithm::tree, Protocol::simple) == Approx(17 + 2 * (7 * 2.3 + 25)));
  // 1 GiB, 2^24 * 64 bytes: a ring's factor is 1.
  const nccl::Candidate ring =
      candidate(nodes, Operation::all_reduce, GiB, Algorithm::ring, Protocol::simple);
  CHECK(ring.bandwidth.count() == Approx(336e9 * 16 / 30));
}

// One rank per node: PCIe 5 for B, a tree's step across for a ring's.
TEST_CASE("RCCL over one rank of each node") {
  const nccl::RcclCommunicator rail = communicator(4, 4);
  CHECK(rail.links.count() == Approx(48e9));
  CHECK(candidate(rail, Operation::all_gather, GiB, Algorithm::ring, Protocol::simple)
            .latency.count() == Approx((17 + 3 * 25) * us));
}

// In one node the model decides between LL, which is 23.2 us faster to begin with over 8 GPUs, and
// Simple, which has 12.5 times the bandwidth: equal where bytes * 7/4 / 336 GB/s * 11.5 = 23.2 us,
// 387 kB. Reduce-scatter goes by LL up to 352,128 bytes per rank, whatever the model says.
TEST_CASE("what RCCL chooses in one node") {
  CHECK(chosen(8, 1, Operation::all_reduce, 8) == "Ring LL");
  CHECK(chosen(8, 1, Operation::all_reduce, 380'000) == "Ring LL");
  CHECK(chosen(8, 1, Operation::all_reduce, 395'000) == "Ring Simple");
  CHECK(chosen(8, 1, Operation::all_reduce, GiB) == "Ring Simple");
  CHECK(chosen(8, 1, Operation::all_gather, GiB) == "Ring Simple");
  CHECK(chosen(8, 1, Operation::reduce_scatter, std::int64_t{352'128} * 8) == "Ring LL");
  CHECK(chosen(8, 1, Operation::reduce_scatter, std::int64_t{352'129} * 8) == "Ring Simple");
}

// Over several nodes sizes decide the protocol (rccl_constants.hpp), of all-gather and
// reduce-scatter those per rank.
TEST_CASE("what RCCL chooses over several nodes") {
  const auto all_reduce = [](std::int64_t nodes, std::int64_t bytes) {
    const std::string choice = chosen(8 * nodes, nodes, Operation::all_reduce, bytes);
    return choice.substr(choice.find(' ') + 1);
  };
  CHECK(all_reduce(2, 1'048'576) == "LL");
  CHECK(all_reduce(2, 1'048'577) == "LL128");
  CHECK(all_reduce(2, 9'437'184) == "LL128");
  CHECK(all_reduce(2, 9'437'185) == "Simple");
  CHECK(all_reduce(4, 35'861'299) == "LL128");  // 3.8 * 9437184 = 35861299.2
  CHECK(all_reduce(4, 35'861'300) == "Simple");
  CHECK(chosen(16, 2, Operation::all_gather, std::int64_t{98'304} * 16) == "Ring LL");
  CHECK(chosen(16, 2, Operation::all_gather, std::int64_t{98'305} * 16) == "Ring LL128");
  CHECK(chosen(16, 2, Operation::all_gather, std::int64_t{5'046'273} * 16) == "Ring Simple");
  CHECK(chosen(16, 2, Operation::reduce_scatter, std::int64_t{131'072} * 16) == "Ring LL");
  CHECK(chosen(16, 2, Operation::reduce_scatter, std::int64_t{131'073} * 16) == "Ring LL128");
}

TEST_CASE("what RCCL is told to take") {
  const Mesh mesh({{"x", 8}});
  const Machine machine = mi300x(8);
  const Placement placement(mesh, machine);
  Collective reduce;
  reduce.payload = Bytes(MiB);
  reduce.axes = {mesh.whole(0)};
  CostOptions options;
  ToldAlgorithm told{CollectiveKind::all_reduce, {}, "Tree", "", {"", "/algorithm"}};
  options.told = {told};
  const CostBreakdown tree = collective_cost(placement, reduce, options);
  CHECK(tree.algorithm == "Tree");
  CHECK(tree.protocol == "LL");
  told.protocol = "Simple";
  told.protocol_place = told.algorithm_place;
  options.told = {told};
  CHECK_THROWS_WITH(collective_cost(placement, reduce, options),
                    Catch::StartsWith("/algorithm: RCCL cannot do AllReduce on these 8 ranks"));
  told = {CollectiveKind::all_reduce, {}, "NVLS", "", {}};
  options.told = {told};
  CHECK_THROWS_AS(collective_cost(placement, reduce, options), InputError);
}

// The example of rccl_cost.hpp, and 1 GiB: 17 us, 14 steps of 2.1 us, 14/8 GiB over 448 GB/s of
// which 0.698 are reached.
TEST_CASE("collectives on MI300X name RCCL's choice and have its latencies") {
  const Mesh mesh({{"x", 8}});
  const Placement placement(mesh, mi300x(8));
  const auto cost = [&](std::int64_t payload) {
    Collective reduce;
    reduce.payload = Bytes(payload);
    reduce.axes = {mesh.whole(0)};
    return collective_cost(placement, reduce);
  };
  const CostBreakdown small = cost(64 * KiB);
  CHECK(small.algorithm == "Ring");
  CHECK(small.protocol == "LL");
  CHECK(small.launch.count() == Approx(12 * us));
  CHECK(small.latency.count() == Approx(14 * 0.8 * us));
  CHECK(small.transfer.count() == Approx(2 * 1.75 * 64 * KiB / (448e9 * 0.698)));
  const CostBreakdown large = cost(GiB);
  CHECK(large.protocol == "Simple");
  CHECK(large.total().count() == Approx((17 + 14 * 2.1) * us + 1.75 * GiB / (448e9 * 0.698)));
  CHECK(caveat_of(CollectiveKind::all_reduce, large).find("not known") == std::string::npos);
}

// 2 nodes, 1 GiB: 28 steps in the nodes of 3 us, 2 across of the profile's 14 us, not the fit's
// 320.
TEST_CASE("a ring's step across nodes is the profile's") {
  const Mesh mesh({{"x", 16}});
  Collective reduce;
  reduce.payload = Bytes(GiB);
  reduce.axes = {mesh.whole(0)};
  const CostBreakdown cost = collective_cost(Placement(mesh, mi300x(16)), reduce);
  CHECK(cost.algorithm == "Ring");
  CHECK(cost.protocol == "Simple");
  CHECK(cost.latency.count() == Approx((28 * 3 + 2 * 14) * us));
}

}  // namespace
}  // namespace shardsim
