// Machines with a profile, simulated as flows: where nothing is contended the time is the
// formula's, and folding changes nothing.
//
// Formula and flows agree on what bytes take where every link that decides carries the same in all
// steps:
//   ring in a node      every device sends (n - 1) / n of the payload (twice for an all-reduce), at
//                       all its bandwidth: one ring behind a switch, several rings over links
//   ring over nodes     as many rings as members of a node, each through a way out of its own: the
//                       network decides. Inside a node m - 1 of m messages go to a neighbour, the
//                       formula has m: where that decides flows are faster, by at most 1 / m
//   slices              rings both ways in all dimensions at once; cubes load all links alike
// Latencies agree in a node. Across nodes and on slices a rank waits for the step before, and each
// step has the latency of its longest hop; the formulas have that of the way of one piece. There
// latencies are set to zero. What is left is rounding up to whole bytes: below 1e-6 of 1 GiB.
#include <catch2/catch.hpp>

#include <algorithm>

#include "sim/collectives/cluster_rates.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/network/algorithms/node_rings.hpp"

namespace shardsim {
namespace {

constexpr double rounding = 1e-6;

constexpr auto reductions = std::to_array<CollectiveKind>(
    {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce});

// Of formulas alone: without NCCL's choice and calibrations.
Profile plain(const std::string& name) {
  Profile profile = load_profile(name, {});
  if (auto* cluster = std::get_if<ClusterProfile>(&profile.network)) cluster->nccl.reset();
  return profile;
}

Profile without_latency(Profile profile) {
  if (auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    cluster->scale_up.latency.value = Seconds(0);
    if (cluster->scale_out) cluster->scale_out->latency.value = Seconds(0);
  } else {
    auto& torus = std::get<TorusProfile>(profile.network);
    torus.link.latency.value = Seconds(0);
    if (torus.chip) torus.chip->link.latency.value = Seconds(0);
  }
  return profile;
}

CostBreakdown cost_of(const Machine& machine, CollectiveModel model, CollectiveKind kind,
                      Bytes payload = Bytes(GiB), const CostOptions& options = {}) {
  const Placement placement(Mesh({{"device", machine.devices}}), machine, model);
  Collective collective;
  collective.kind = kind;
  collective.payload = payload;
  collective.axes = {placement.mesh().whole(0)};
  return collective_cost(placement, collective, options);
}

Machine machine_of(const Profile& profile, std::int64_t devices,
                   const std::optional<std::string>& topology = std::nullopt) {
  return make_machine(profile, devices, topology, {});
}

bool is_cluster(const Profile& profile) {
  return std::holds_alternative<ClusterProfile>(profile.network);
}

}  // namespace

TEST_CASE("a ring in a node takes what the formula says, on every shipped machine") {
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = plain(name);
    if (!is_cluster(profile)) continue;
    const auto& cluster = std::get<ClusterProfile>(profile.network);
    const Machine machine = machine_of(profile, cluster.devices_per_node.value);
    INFO(name);
    for (const CollectiveKind kind : reductions) {
      const CostBreakdown formula = cost_of(machine, collective_models::uncalibrated, kind);
      const CostBreakdown flows = cost_of(machine, collective_models::flows, kind);
      CHECK(flows.transfer.count() == Approx(formula.transfer.count()).epsilon(rounding));
      CHECK(flows.latency.count() == Approx(formula.latency.count()));
      CHECK(flows.launch == formula.launch);
      CHECK(levels_of(flows) == levels_of(formula));
    }
  }
}

TEST_CASE("part of a node linked in pairs has the links between its members") {
  for (const std::int64_t members : {2, 3, 4, 5, 6, 7}) {
    const Machine machine = machine_of(plain("mi300x"), members);
    const CostBreakdown formula =
        cost_of(machine, collective_models::uncalibrated, CollectiveKind::all_gather);
    const CostBreakdown flows =
        cost_of(machine, collective_models::flows, CollectiveKind::all_gather);
    CHECK(flows.transfer.count() == Approx(formula.transfer.count()).epsilon(rounding));
  }
}

TEST_CASE("rings over nodes take what the formula says where the network decides") {
  int compared = 0;
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = without_latency(plain(name));
    if (!is_cluster(profile)) continue;
    const auto& cluster = std::get<ClusterProfile>(profile.network);
    if (!cluster.scale_out) continue;
    // Rings meet on the NVLinks of a cube mesh, where the formula takes all of them.
    if (cluster.scale_up.fabric.value == Fabric::cube_mesh) continue;
    const std::int64_t per_node = cluster.devices_per_node.value;
    const ClusterRates rates(cluster, per_node);
    for (const std::int64_t nodes : {2, 3, 4}) {
      if (nodes > 2 && per_node > 8) continue;
      INFO(name << ", " << nodes << " nodes");
      const Machine machine = machine_of(profile, nodes * per_node);
      const double bytes = 0.5 * double{GiB};
      const Seconds across = rates.across(bytes, per_node);
      if (across < rates.inside(bytes, per_node)) continue;
      ++compared;
      for (const CollectiveKind kind : reductions) {
        const CostBreakdown formula = cost_of(machine, collective_models::uncalibrated, kind);
        const CostBreakdown flows = cost_of(machine, collective_models::flows, kind);
        CHECK(flows.transfer.count() == Approx(formula.transfer.count()).epsilon(rounding));
        CHECK(levels_of(flows) == levels_of(formula));
      }
    }
  }
  CHECK(compared > 0);
}

TEST_CASE("groups of one device of every node have a rail each") {
  const Machine machine = machine_of(without_latency(plain("dgx-h100")), 32);
  for (const CollectiveKind kind : reductions) {
    const auto cost = [&](CollectiveModel model) {
      const Placement placement(Mesh({{"node", 4}, {"device", 8}}), machine, model);
      Collective collective;
      collective.kind = kind;
      collective.payload = Bytes(GiB);
      collective.axes = {placement.mesh().whole(0)};
      return collective_cost(placement, collective).total().count();
    };
    CHECK(cost(collective_models::flows) ==
          Approx(cost(collective_models::uncalibrated)).epsilon(rounding));
  }
}

TEST_CASE("an all-to-all with all messages at once takes what the formula says") {
  // The busiest of what is inside a node and what leaves it; half a node has no other ways.
  for (const char* name : {"dgx-h100", "mi300x", "dgx-a100", "polaris"}) {
    const Profile profile = without_latency(plain(name));
    const std::int64_t per_node = std::get<ClusterProfile>(profile.network).devices_per_node.value;
    for (const std::int64_t nodes : {1, 2, 4}) {
      const Machine machine = machine_of(profile, nodes * per_node);
      INFO(name << ", " << nodes << " nodes");
      CHECK(
          cost_of(machine, collective_models::flows, CollectiveKind::all_to_all).transfer.count() ==
          Approx(cost_of(machine, collective_models::uncalibrated, CollectiveKind::all_to_all)
                     .transfer.count())
              .epsilon(rounding));
    }
  }
}

TEST_CASE("a cube of a slice takes what the formula says, and so does each of its dimensions") {
  const Machine machine = machine_of(without_latency(plain("tpu-v5p")), 64);
  for (const CollectiveKind kind : reductions) {
    CHECK(cost_of(machine, collective_models::flows, kind).transfer.count() ==
          Approx(cost_of(machine, collective_models::all_links, kind).transfer.count())
              .epsilon(rounding));
    for (const int axis : {0, 1, 2}) {
      const auto cost = [&](CollectiveModel model) {
        const Placement placement(Mesh({{"a", 4}, {"b", 4}, {"c", 4}}), machine, model);
        Collective collective;
        collective.kind = kind;
        collective.payload = Bytes(GiB);
        collective.axes = {placement.mesh().whole(axis)};
        return collective_cost(placement, collective);
      };
      const CostBreakdown flows = cost(collective_models::flows);
      CHECK(flows.algorithm == "torus");
      CHECK(flows.transfer.count() ==
            Approx(cost(collective_models::all_links).transfer.count()).epsilon(rounding));
      CHECK(levels_of(flows) == levels_of(cost(collective_models::all_links)));
    }
  }
}

TEST_CASE("folded and unfolded take the same time on every shipped machine up to 64 devices") {
  constexpr std::int64_t most = 64;
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = load_profile(name, {});
    std::vector<Machine> machines;
    for (std::int64_t devices = 2; devices <= most; devices *= 2) {
      try {
        machines.push_back(machine_of(profile, devices));
      } catch (const InputError&) {
        continue;  // not to be had in this size
      }
    }
    CHECK(!machines.empty());
    if (name == "tpu-v4") machines.push_back(machine_of(profile, 128, "4x4x8_twisted"));
    for (const Machine& machine : machines) {
      INFO(name << ", " << machine.devices << " devices");
      for (const CollectiveKind kind :
           {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
            CollectiveKind::all_to_all, CollectiveKind::collective_permute}) {
        const Bytes payload(3 * MiB + 1);
        const CostBreakdown folded = cost_of(machine, collective_models::flows, kind, payload);
        const CostBreakdown unfolded =
            cost_of(machine, collective_models::flows, kind, payload, {Folding::unfolded});
        CHECK(folded.total() == unfolded.total());
        CHECK(folded.latency == unfolded.latency);
      }
    }
  }
}

TEST_CASE("links of a machine carry what its rings send") {
  const Machine machine = machine_of(load_profile("dgx-h100", {}), 16);
  const Placement placement(Mesh({{"device", 16}}), machine);
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  collective.payload = Bytes(GiB);
  collective.axes = {placement.mesh().whole(0)};
  CollectiveCosts costs(placement);
  const NodeNames name = costs.graph().name;
  double busiest = 0;
  for (const LinkLoad& load : costs.link_loads(collective).links) {
    // 8 rings, 15 steps of 1/128 each: each device sends one ring through its NIC, seven inside.
    const std::int64_t step = 15 * GiB / 128;
    if (name(load.link.to).find("NIC") != std::string::npos) CHECK(load.bytes == Bytes(step));
    if (name(load.link.to).find("NVSwitch") != std::string::npos) {
      CHECK(load.bytes == Bytes(7 * step));
    }
    busiest = std::max(busiest, load.busy);
  }
  const CostBreakdown flows = costs.flow_cost(collective);
  CHECK(busiest == Approx(flows.transfer.count() / (flows.latency + flows.transfer).count()));
}

TEST_CASE("rings of a full mesh use every link alike") {
  for (std::int32_t ranks = 2; ranks <= 9; ++ranks) {
    const std::vector<network::Ring> rings = network::rings_of_full_mesh(ranks);
    std::vector<std::vector<int>> used(static_cast<std::size_t>(ranks),
                                       std::vector<int>(static_cast<std::size_t>(ranks)));
    for (const network::Ring& ring : rings) {
      REQUIRE(ring.size() == static_cast<std::size_t>(ranks));
      for (std::size_t i = 0; i < ring.size(); ++i) {
        ++used[static_cast<std::size_t>(ring[i])]
              [static_cast<std::size_t>(ring[(i + 1) % ring.size()])];
      }
    }
    const int each = ranks > 2 && ranks % 2 == 0 ? 2 : 1;
    for (std::size_t a = 0; a < used.size(); ++a) {
      for (std::size_t b = 0; b < used.size(); ++b) CHECK(used[a][b] == (a == b ? 0 : each));
    }
  }
}

TEST_CASE("rings over nodes stay on their rails and in pairs of their own") {
  const network::Ring first = {0, 1, 2, 3};
  const network::Ring second = {4, 5, 6, 7};
  CHECK(network::rings_over_nodes({first, second}, /*linked_in_pairs=*/false)[1] ==
        network::Ring{1, 2, 3, 0, 4, 7, 6, 5});
  CHECK(network::rings_over_nodes({first, second}, /*linked_in_pairs=*/true)[1] ==
        network::Ring{1, 2, 0, 3, 7, 4, 6, 5});
}

}  // namespace shardsim
