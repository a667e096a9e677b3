// Collectives on networks written in place, against what can be worked out by hand.
#include "sim/collectives/network_cost.hpp"

#include <catch2/catch.hpp>

#include "sim/collectives/collective_cost.hpp"
#include "sim/network/algorithms/tree.hpp"

namespace shardsim::network_cost_test {
namespace {

constexpr double bandwidth = 1e9;
constexpr double latency = 1e-6;

Placement placed(const std::string& network, std::vector<MeshAxis> axes) {
  const Mesh mesh(std::move(axes));
  const std::string text = network + ",bandwidth=1GB/s,latency=1us)";
  return {mesh, make_machine(load_profile(text, {}), mesh.devices(), std::nullopt, {})};
}

Collective collective_over(const Placement& placement, CollectiveKind kind,
                           const std::vector<int>& axes) {
  Collective collective;
  collective.kind = kind;
  collective.payload = Bytes(8'000'000);
  for (const int axis : axes) collective.axes.push_back(placement.mesh().whole(axis));
  return collective;
}

CostOptions told(CollectiveKind kind, const char* algorithm) {
  return {Folding::folded, {{kind, {}, algorithm, "", {"", "/algorithm"}, {}}}};
}

// In both ways, which agree.
CostBreakdown cost_of(const Placement& placement, const Collective& collective) {
  CostBreakdown cost = collective_cost(placement, collective);
  const CostBreakdown unfolded = collective_cost(placement, collective, {Folding::unfolded});
  CHECK(cost.latency == unfolded.latency);
  CHECK(cost.transfer == unfolded.transfer);
  CHECK(cost.algorithm == unfolded.algorithm);
  return cost;
}

void check_time(const CostBreakdown& cost, double hops, double bytes) {
  CHECK(cost.launch == Seconds(0));
  CHECK(cost.latency.count() == Approx(hops * latency));
  CHECK(cost.transfer.count() == Approx(bytes / bandwidth));
}

}  // namespace

TEST_CASE("rings over an axis of the mesh run side by side") {
  const Placement torus = placed("torus(4x4", {{"x", 4}, {"y", 4}});
  // Both axes are rings of the torus: nothing is shared. Rings go both ways, with half a part each.
  for (const int axis : {0, 1}) {
    check_time(cost_of(torus, collective_over(torus, CollectiveKind::all_gather, {axis})), 3,
               3 * 1e6);
    check_time(cost_of(torus, collective_over(torus, CollectiveKind::all_reduce, {axis})), 6,
               6 * 1e6);
  }
  // Asked for, one way.
  CollectiveCosts one_way(torus, told(CollectiveKind::all_gather, "ring"));
  check_time(one_way.cost(collective_over(torus, CollectiveKind::all_gather, {0})), 3, 3 * 2e6);
}

// A chain of 512 KiB chunks (network/algorithms/tree.hpp): 8 MB are 16 of 500,000 bytes, the last
// of which comes to the eighth device after 7 hops: (7 + 16 - 1) chunks. Binomial: log2(8) times
// all of it, from a device to one of which every other has a wire of its own.
TEST_CASE("a broadcast goes along a chain, or down a binomial tree") {
  const Placement ring = placed("ring(8", {{"x", 8}});
  const CostBreakdown chain = cost_of(ring, collective_over(ring, CollectiveKind::broadcast, {0}));
  CHECK(chain.algorithm == "chain");
  check_time(chain, 7, (7 + 16 - 1) * 5e5);
  const Placement full = placed("full(8", {{"x", 8}});
  CollectiveCosts binomial(full, told(CollectiveKind::broadcast, "binomial-tree"));
  check_time(binomial.cost(collective_over(full, CollectiveKind::broadcast, {0})), 3, 3 * 8e6);
  const Placement torus = placed("torus(4x4", {{"x", 4}, {"y", 4}});
  CHECK(cost_of(torus, collective_over(torus, CollectiveKind::broadcast, {0, 1})).algorithm ==
        "chain");
  CollectiveCosts rings(ring, told(CollectiveKind::broadcast, "ring"));
  CHECK_THROWS_WITH(rings.cost(collective_over(ring, CollectiveKind::broadcast, {0})),
                    "/algorithm: \"ring\" does no broadcast; for that there are double-tree, "
                    "chain, binomial-tree");
}

TEST_CASE("over both axes of a torus all links work all the time") {
  // 15/16 of 8 MB come to each device over four links, in 3 steps along each axis.
  const Placement torus = placed("torus(4x4", {{"x", 4}, {"y", 4}});
  const Collective gather = collective_over(torus, CollectiveKind::all_gather, {0, 1});
  CHECK(cost_of(torus, gather).algorithm == "torus");
  check_time(cost_of(torus, gather), 6, 7.5e6 / 4);
}

TEST_CASE("an algorithm that is not for a collective is refused, with what is") {
  const Placement ring = placed("ring(6", {{"x", 6}});
  const auto mistake = [&](const char* algorithm, CollectiveKind kind) {
    try {
      CollectiveCosts costs(ring, told(kind, algorithm));
      static_cast<void>(costs.cost(collective_over(ring, kind, {0})));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(mistake("rnig", CollectiveKind::all_gather),
             Catch::Contains("/algorithm: unknown algorithm \"rnig\"; known are ring, ") &&
                 Catch::Contains("did you mean \"ring\"?"));
  CHECK_THAT(mistake("double-tree", CollectiveKind::all_gather),
             Catch::Contains("\"double-tree\" does no all-gather; for that there are ring,"));
  CHECK_THAT(mistake("halving-doubling", CollectiveKind::all_reduce),
             Catch::Contains("needs a group whose size is a power of two"));
  CHECK_THAT(mistake("in-switch", CollectiveKind::all_reduce),
             Catch::Contains("needs devices on one switch"));
  CHECK_THAT(mistake("torus", CollectiveKind::all_to_all), !Catch::Contains("needs"));
  CHECK_THAT(mistake("ring", CollectiveKind::collective_permute),
             Catch::Contains("does no collective-permute; for that there is direct"));
}

TEST_CASE("costs of one placement are those of each collective alone") {
  const Placement ring = placed("ring(8", {{"outer", 4}, {"inner", 2}});
  CollectiveCosts costs(ring);
  for (const std::int64_t payload : {1'000, 1'000'000, 8'000'000}) {
    for (const int axis : {0, 1}) {
      Collective gather = collective_over(ring, CollectiveKind::all_gather, {axis});
      gather.payload = Bytes(payload);
      CHECK(costs.cost(gather).total() == collective_cost(ring, gather).total());
    }
  }
}

TEST_CASE("groups whose rings go over the same links share them") {
  // On a ring of 8, groups {0,2,4,6} and {1,3,5,7}: two hops a step, two messages on each link.
  const Placement ring = placed("ring(8", {{"outer", 4}, {"inner", 2}});
  check_time(cost_of(ring, collective_over(ring, CollectiveKind::reduce_scatter, {0})), 3 * 2,
             2 * 3 * 2e6);
}

TEST_CASE("an all-to-all over a switch loads every wire alike") {
  const Placement machine = placed("switch(8", {{"x", 8}});
  check_time(cost_of(machine, collective_over(machine, CollectiveKind::all_to_all, {0})), 7 * 2,
             7 * 1e6);
}

TEST_CASE("a permute sends what its pairs say") {
  const Placement ring = placed("ring(8", {{"x", 8}});
  Collective permute = collective_over(ring, CollectiveKind::collective_permute, {});
  permute.source_targets = {{0, 2}, {1, 2 + 1}, {5, 5}};
  // Devices 0 and 1 go up two links each and meet on the one from 1 to 2.
  check_time(cost_of(ring, permute), 2, 2 * 8e6);
  permute.source_targets = {{5, 5}};
  CHECK(collective_cost(ring, permute).links.empty());
}

TEST_CASE("a group of one device, or nothing to send, costs nothing") {
  const Placement ring = placed("ring(8", {{"x", 8}, {"one", 1}});
  CHECK(collective_cost(ring, collective_over(ring, CollectiveKind::all_reduce, {1})).total() ==
        Seconds(0));
  Collective empty = collective_over(ring, CollectiveKind::all_reduce, {0});
  empty.payload = Bytes(0);
  CHECK(collective_cost(ring, empty).total() == Seconds(0));
}

TEST_CASE("what takes hours on a network is refused") {
  const Placement ring = placed("ring(2", {{"x", 2}});
  Collective huge = collective_over(ring, CollectiveKind::all_reduce, {0});
  huge.payload = Bytes(std::int64_t{1} << 60);
  CHECK_THROWS_WITH(collective_cost(ring, huge), Catch::Contains("2.5 hours"));
}

TEST_CASE("links are as busy as their bytes make them") {
  // Two leaves of four, half as many wires up: a ring over all crosses each way once, on one of two
  // wires; every step is as slow as any, and the wires that are used are busy but for latencies.
  const Placement tree = placed("fat-tree(4x2,oversubscription=2", {{"x", 8}});
  CollectiveCosts costs(tree);
  const Collective gather = collective_over(tree, CollectiveKind::all_gather, {0});
  const CostBreakdown cost = costs.cost(gather);
  int used = 0;
  for (const LinkLoad& load : costs.link_loads(gather).links) {
    if (load.bytes == Bytes(0)) continue;
    ++used;
    CHECK(load.bytes == Bytes(7'000'000));
    CHECK(load.busy == Approx(cost.transfer.count() / cost.total().count()));
  }
  // 8 wires up and 8 down at the devices; two up and two down between leaves and spines.
  CHECK(used == 8 + 8 + 2 + 2);
}

}  // namespace shardsim::network_cost_test
