// Profiles as graphs: nodes and links counted by hand.
#include "hardware_profiles/network/machine_graph.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

namespace shardsim::machine_graph_test {
namespace {

MachineGraph graph_of(const std::string& name, std::int64_t devices,
                      const std::optional<std::string>& topology = std::nullopt) {
  return graph_of(make_machine(load_profile(name, {}), devices, topology, {}), {});
}

const NetworkLink& link_of(const MachineGraph& machine, const std::string& from,
                           const std::string& to) {
  const auto& links = machine.graph.links();
  const auto found = std::find_if(links.begin(), links.end(), [&](const NetworkLink& link) {
    return machine.name(link.from) == from && machine.name(link.to) == to;
  });
  INFO(from << " -> " << to);
  REQUIRE(found != links.end());
  return *found;
}

std::vector<std::string> way(const MachineGraph& machine, NodeId from, NodeId to) {
  Router router(machine.graph, machine.choice);
  std::vector<std::string> names;
  for (const LinkId link : router.route(from, to)) {
    names.push_back(machine.name(machine.graph.links()[static_cast<std::size_t>(link)].to));
  }
  return names;
}

}  // namespace

TEST_CASE("nodes of GPUs behind NVSwitch, a NIC for each, rails between nodes") {
  const Machine machine = make_machine(load_profile("dgx-a100", {}), 16, std::nullopt, {});
  const auto& cluster = std::get<ClusterProfile>(machine.profile.network);
  const MachineGraph graph = graph_of(machine, {});
  // 16 devices, 2 NVSwitches, 16 NICs, 8 rails, 1 spine.
  CHECK(graph.graph.nodes() == 16 + 2 + 16 + 8 + 1);
  // Of a device one to its NVSwitch and one to its NIC, of a NIC one on, of a rail one up.
  CHECK(graph.graph.links().size() == 2 * (16 + 16 + 16 + 8));
  const Bandwidth inside = cluster.scale_up.bandwidth.value * cluster.scale_up.efficiency.value;
  const Wire up = link_of(graph, "device 9", "node 1 NVSwitch").wire;
  CHECK(up.bandwidth == inside);
  CHECK(2 * up.latency.count() == Approx(cluster.scale_up.latency.value.count()));
  const Bandwidth nic = cluster.scale_out->bandwidth.value * cluster.scale_out->efficiency.value;
  CHECK(link_of(graph, "node 1 NIC 1", "rail 1").wire.bandwidth == nic);
  CHECK(link_of(graph, "rail 1", "spine").wire.bandwidth.count() == Approx(2 * nic.count()));
  CHECK(way(graph, 0, 3) == std::vector<std::string>{"node 0 NVSwitch", "device 3"});
  CHECK(way(graph, 1, 9) ==
        std::vector<std::string>{"node 0 NIC 1", "rail 1", "node 1 NIC 1", "device 9"});
  CHECK(way(graph, 1, 10) == std::vector<std::string>{"node 0 NIC 1", "rail 1", "spine", "rail 2",
                                                      "node 1 NIC 2", "device 10"});
  CHECK(graph.assumptions.size() == 1);
  CHECK(graph_of("dgx-a100", 8).assumptions.empty());
}

TEST_CASE("several NICs of a device are one, few are shared") {
  CHECK(way(graph_of("aws-p5", 16), 1, 9) ==
        std::vector<std::string>{"node 0 NICs 4-7", "rail 1", "node 1 NICs 4-7", "device 9"});
  CHECK(way(graph_of("polaris", 8), 3, 6) ==
        std::vector<std::string>{"node 0 NIC 1", "rail 1", "node 1 NIC 1", "device 6"});
  CHECK(way(graph_of("aws-p3dn", 16), 3, 8) ==
        std::vector<std::string>{"node 0 NIC 0", "switch", "node 1 NIC 0", "device 8"});
}

TEST_CASE("a SuperPOD has a leaf for each rail of 32 nodes, and what extends it has not") {
  const MachineGraph pod = graph_of("dgx-h100", 64 * 8);
  CHECK(pod.assumptions.empty());
  // 64 nodes are two units of 8 leaves, below one spine.
  CHECK(pod.graph.nodes() == 512 + 64 + 512 + 2 * 8 + 1);
  CHECK(link_of(pod, "node 40 NIC 2", "rail 2 leaf 1").wire.bandwidth.count() * 32 ==
        Approx(link_of(pod, "rail 2 leaf 1", "spine").wire.bandwidth.count()));
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = load_profile(name, {});
    const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
    if (cluster == nullptr || !cluster->scale_out || !cluster->scale_out->switches) continue;
    CHECK((name == "dgx-h100" || name == "dgx-b200"));
  }
}

TEST_CASE("leaves, spines and what is above them are as the profile says") {
  Machine machine = make_machine(load_profile("dgx-a100", {}), 8 * 8, std::nullopt, {});
  auto& out = *std::get<ClusterProfile>(machine.profile.network).scale_out;
  out.efficiency.value = 1;
  out.switches = SwitchProfile{{true, {}}, {{2, {}}, {2, {}}}, SwitchTier{{4, {}}, {4, {}}}};
  const MachineGraph rails = graph_of(machine, {});
  CHECK(rails.assumptions.empty());
  // 8 nodes: of each rail 4 leaves, 2 spines, a core.
  CHECK(rails.graph.nodes() == 64 + 8 + 64 + 8 * 4 + 2 + 1);
  const double nic = out.bandwidth.value.count();
  CHECK(link_of(rails, "node 5 NIC 3", "rail 3 leaf 2").wire.bandwidth.count() == nic);
  CHECK(link_of(rails, "rail 3 leaf 2", "spine 1").wire.bandwidth.count() == 2 * nic / 2);
  // A spine has 16 leaves of a NIC's bandwidth up each, and a quarter of that up itself.
  CHECK(link_of(rails, "spine 1", "core").wire.bandwidth.count() == 16 * nic / 4);

  out.switches->rails.value = false;
  const MachineGraph leaves = graph_of(machine, {});
  CHECK(leaves.graph.nodes() == 64 + 8 + 64 + 4 + 2 + 1);
  CHECK(link_of(leaves, "node 5 NIC 3", "leaf 2").wire.bandwidth.count() == nic);
  CHECK(link_of(leaves, "leaf 2", "spine 1").wire.bandwidth.count() == 16 * nic / 2);
}

TEST_CASE("direct links, the cube mesh, PCIe switches") {
  const MachineGraph mesh = graph_of("mi300x", 8);
  CHECK(mesh.graph.nodes() == 8);
  CHECK(mesh.graph.links().size() == 8 * 7);
  // Two of 8 have one link of 7.
  const Machine two = make_machine(load_profile("mi300x", {}), 2, std::nullopt, {});
  const auto& cluster = std::get<ClusterProfile>(two.profile.network);
  CHECK(graph_of(two, {}).graph.links()[0].wire.bandwidth.count() ==
        Approx(bandwidth_inside(cluster, 2).count() * cluster.scale_up.efficiency.value));

  const MachineGraph cube = graph_of("dgx-1v", 8);
  CHECK(cube.graph.links().size() == 8 * 4);  // to four others each, doubled or not
  CHECK(link_of(cube, "device 0", "device 3").wire.bandwidth.count() ==
        Approx(2 * link_of(cube, "device 0", "device 1").wire.bandwidth.count()));
  CHECK(way(cube, 0, 5).size() == 2);  // over a device that has links to both
  CHECK(way(graph_of("dgx-1v", 16), 0, 5).size() == 2);

  const MachineGraph pcie = graph_of("pcie-l40s", 8);
  CHECK(way(pcie, 0, 1) == std::vector<std::string>{"PCIe switch 0", "device 1"});
  CHECK(way(pcie, 0, 7) ==
        std::vector<std::string>{"PCIe switch 0", "host", "PCIe switch 1", "device 7"});
}

TEST_CASE("slices of TPUs are tori, twisted or not") {
  const MachineGraph cube = graph_of("tpu-v5p", 64);
  CHECK(cube.graph.nodes() == 64);
  CHECK(cube.graph.links().size() == 64 * 6);
  CHECK(way(cube, 0, 3) == std::vector<std::string>{"device 3 (3, 0, 0)"});
  // Half way round: up from even coordinates, down from odd ones.
  CHECK(way(cube, 0, 2) == std::vector<std::string>{"device 1 (1, 0, 0)", "device 2 (2, 0, 0)"});
  CHECK(way(cube, 1, 3) == std::vector<std::string>{"device 0 (0, 0, 0)", "device 3 (3, 0, 0)"});
  CHECK(graph_of("tpu-v5p", 64, "4x4x4_open").graph.links().size() == 2 * 3 * 3 * 16);
  CHECK(graph_of("tpu-v5e", 64).graph.links().size() == 2 * 2 * 7 * 8);

  const MachineGraph twisted = graph_of("tpu-v4", 128, "4x4x8_twisted");
  CHECK(twisted.graph.links().size() == 128 * 6);
  // Up from (3, 0, 0) comes (0, 0, 4).
  CHECK(link_of(twisted, "device 3 (3, 0, 0)", "device 64 (0, 0, 4)").wire.bandwidth ==
        link_of(twisted, "device 64 (0, 0, 4)", "device 3 (3, 0, 0)").wire.bandwidth);
}

TEST_CASE("where a chip is two devices they share its links") {
  const MachineGraph slice = graph_of("tpu7x", 8);  // 2x2x1 chips
  CHECK(slice.graph.devices() == 8);
  CHECK(slice.graph.nodes() == 8 + 4);
  CHECK(way(slice, 0, 4) == std::vector<std::string>{"device 4 (0, 0, 0)"});  // of one chip
  CHECK(way(slice, 0, 5) ==
        std::vector<std::string>{"chip (0, 0, 0)", "chip (1, 0, 0)", "device 5 (1, 0, 0)"});
}

}  // namespace shardsim::machine_graph_test
