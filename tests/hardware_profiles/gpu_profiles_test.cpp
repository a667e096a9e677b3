// The shipped GPU machines: figures as their vendors announce them, in other units than the
// profiles (sparse FLOP rates, both directions of a link, the network of a whole node), and laws
// that hold for all of them.
#include <catch2/catch.hpp>

#include <cmath>

#include "hardware_profiles/machine.hpp"

namespace shardsim::gpu_profiles_test {

namespace {

struct Announced {
  const char* machine;
  std::int64_t devices;       // of a node
  double sparse_half;         // TFLOP/s in fp16 or bf16 with 2:4 sparsity, V100 dense
  double memory;              // GB/s
  double scale_up_both_ways;  // GB/s of a device
  double network;             // Gb/s of a node
};

// NVIDIA's, AMD's and the clouds' product pages. V100 has no sparsity. B200 and B300 are announced
// with 8 TB/s; a B200 has 7680 of 8192 bits at work (github.com/pytorch/ao pull request 4002).
const std::vector<Announced> announced = {
    {"alps", 4, 1979, 4000, 900, 800},
    {"aws-p3dn", 8, 125, 900, 300, 100},
    {"aws-p4de", 8, 624, 2039, 600, 400},
    {"aws-p5", 8, 1979, 3350, 900, 3200},
    {"aws-p5en", 8, 1979, 4800, 900, 3200},
    {"aws-p6-b200", 8, 4500, 8000 * 7680 / 8192, 1800, 3200},
    {"aws-p6-b300", 8, 4500, 7700, 1800, 6400},
    {"azure-ndv4", 8, 624, 1555, 600, 1600},
    {"azure-ndv5", 8, 1979, 3350, 900, 3200},
    {"azure-ndv5-h200", 8, 1979, 4800, 900, 3200},
    {"dgx-1v", 8, 125, 900, 300, 400},
    {"dgx-a100", 8, 624, 2039, 600, 1600},
    {"dgx-b200", 8, 4500, 8000 * 7680 / 8192, 1800, 3200},
    {"dgx-b300", 8, 4500, 7700, 1800, 6400},
    {"dgx-h100", 8, 1979, 3350, 900, 3200},
    {"dgx-h200", 8, 1979, 4800, 900, 3200},
    {"gb200-nvl72", 72, 5000, 8000, 1800, 72 * 400},
    {"gb300-nvl72", 72, 5000, 8000, 1800, 72 * 800},
    {"gcp-a3-high", 8, 1979, 3350, 900, 800},
    {"gcp-a3-mega", 8, 1979, 3350, 900, 1600},
    {"gcp-a3-ultra", 8, 1979, 4800, 900, 3200},
    {"gcp-a4", 8, 4500, 8000 * 7680 / 8192, 1800, 3200},
    {"h200-nvl-pcie", 4, 1671, 4800, 900, 4 * 63 * 8},  // PCIe between two bridges
    {"kestrel", 4, 1979, 3350, 900, 800},
    {"mi300x", 8, 2614.9, 5300, 896, 3200},
    {"oci-bm-gpu-h100.8", 8, 1979, 3350, 900, 3200},
    {"oci-bm-gpu-h200.8", 8, 1979, 4800, 900, 3200},
    {"oci-bm-gpu4.8", 8, 624, 1555, 600, 1600},
    {"pcie-a100", 4, 624, 1555, 63, 0},
    {"pcie-l40s", 8, 724, 864, 63, 800},
    {"polaris", 4, 624, 1555, 600, 400},
};

std::vector<Profile> clusters() {
  std::vector<Profile> profiles;
  for (const std::string& name : shipped_profiles()) {
    if (name == "cpu-host") continue;  // for plans that run on CPUs
    Profile profile = load_profile(name, {});
    if (std::holds_alternative<ClusterProfile>(profile.network)) {
      profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

const ClusterProfile& cluster_of(const Profile& profile) {
  return std::get<ClusterProfile>(profile.network);
}

}  // namespace

TEST_CASE("every GPU machine has its vendor's figures") {
  CHECK(clusters().size() == announced.size());
  for (const Announced& of : announced) {
    CAPTURE(of.machine);
    const Profile profile = load_profile(of.machine, {});
    const ClusterProfile& cluster = cluster_of(profile);
    CHECK(cluster.devices_per_node.value == of.devices);
    const bool sparse = of.sparse_half > 125;
    CHECK(profile.device.peak.at(DType::f16).value.count() ==
          Approx(of.sparse_half * 1e12 / (sparse ? 2 : 1)).epsilon(1e-3));
    CHECK(profile.device.memory_bandwidth.value.count() == Approx(of.memory * 1e9).epsilon(0.025));
    CHECK(cluster.scale_up.bandwidth.value.count() == Approx(of.scale_up_both_ways * 1e9 / 2));
    double network = 0;
    if (cluster.scale_out) {
      const auto nics = static_cast<double>(cluster.scale_out->nics_per_node.value);
      network = nics * cluster.scale_out->bandwidth.value.count();
    }
    CHECK(network == Approx(of.network * 1e9 / 8));
  }
}

// Halving the bits of an operand never slows a tensor core, with one exception: Blackwell Ultra
// gave its int8 units up.
TEST_CASE("peaks rise as operands shrink") {
  for (const Profile& profile : clusters()) {
    CAPTURE(profile.name);
    const auto& peak = profile.device.peak;
    CHECK(peak.at(DType::f16).value > peak.at(DType::f32).value);
    if (peak.contains(DType::bf16)) {
      CHECK(peak.at(DType::bf16).value == peak.at(DType::f16).value);
    }
    if (peak.contains(DType::f8)) CHECK(peak.at(DType::f8).value > peak.at(DType::bf16).value);
    if (peak.contains(DType::f4_e2m1)) {
      CHECK(peak.at(DType::f4_e2m1).value > peak.at(DType::f8).value);
    }
  }
}

TEST_CASE("nodes are faster inside than across, and fill with devices") {
  for (const Profile& profile : clusters()) {
    CAPTURE(profile.name);
    const ClusterProfile& cluster = cluster_of(profile);
    const std::int64_t devices = cluster.devices_per_node.value;
    CHECK(make_machine(profile, devices, std::nullopt, {}).nodes == 1);
    CHECK(cluster.scale_up.bandwidth.value < profile.device.memory_bandwidth.value);
    if (!cluster.scale_out) continue;
    CHECK(make_machine(profile, 2 * devices, std::nullopt, {}).nodes == 2);
    CHECK(cluster.scale_up.latency.value < cluster.scale_out->latency.value);
    CHECK(ways_out(cluster).bandwidth < cluster.scale_up.bandwidth.value);
    CHECK(devices % ways_out(cluster).per_node == 0);
  }
}

// What NCCL sees agrees with what the rest of the profile says: a whole number of NVLinks, and a
// compute capability where there is NVLink.
TEST_CASE("the section nccl fits the rest") {
  for (const Profile& profile : clusters()) {
    CAPTURE(profile.name);
    const ClusterProfile& cluster = cluster_of(profile);
    const Fabric fabric = cluster.scale_up.fabric.value;
    const bool nvlink =
        fabric == Fabric::nvswitch || fabric == Fabric::nvlink || fabric == Fabric::cube_mesh;
    CHECK(cluster.nccl.has_value() == (fabric != Fabric::xgmi));
    if (!cluster.nccl) continue;
    CHECK(cluster.nccl->nvlink_bandwidth.has_value() == nvlink);
    CHECK(cluster.devices_per_node.value % cluster.nccl->gpus_per_pcie_switch.value == 0);
    if (!nvlink) continue;
    const double links =
        cluster.scale_up.bandwidth.value.count() / cluster.nccl->nvlink_bandwidth->value.count();
    CHECK(links == Approx(std::round(links)));
    CHECK(links <= 18);
  }
}

// V100 has six links, and both ends of a link agree on it.
TEST_CASE("the links of DGX-1's cube mesh") {
  for (std::size_t a = 0; a < cube_mesh_links.size(); ++a) {
    int links = 0;
    for (std::size_t b = 0; b < cube_mesh_links.size(); ++b) {
      links += cube_mesh_links[a][b];
      CHECK(cube_mesh_links[a][b] == cube_mesh_links[b][a]);
    }
    CHECK(links == 6);
  }
}

// A square of it with its diagonals (AWS p3.8xlarge): 4 of 6 links, a third of them to each other.
TEST_CASE("half of a cube mesh has the links inside it") {
  ClusterProfile half = cluster_of(load_profile("dgx-1v", {}));
  const Bandwidth all = half.scale_up.bandwidth.value;
  CHECK(bandwidth_inside(half, 8).count() == Approx(all.count()));
  half.devices_per_node.value = 4;
  CHECK(bandwidth_inside(half, 4).count() == Approx(all.count() * 4 / 6));
  CHECK(bandwidth_inside(half, 2).count() == Approx(all.count() * 4 / 18));
}

// 18 trays of 4 in the NVLink domain of a rack.
TEST_CASE("an NVL72 rack is one node of 18 hosts") {
  for (const char* name : {"gb200-nvl72", "gb300-nvl72"}) {
    const Profile profile = load_profile(name, {});
    CHECK(devices_per_host(cluster_of(profile)) == 4);
    CHECK(make_machine(profile, 72, std::nullopt, {}).nodes == 1);
    CHECK(make_machine(profile, 144, std::nullopt, {}).nodes == 2);
  }
  CHECK(devices_per_host(cluster_of(load_profile("dgx-h100", {}))) == 8);
}

// A host of 8 cards has two NVLink bridges, PCIe between them.
TEST_CASE("bridges join groups of a host's devices") {
  const Profile profile = load_profile("h200-nvl-pcie", {});
  CHECK(devices_per_host(cluster_of(profile)) == 8);
  CHECK(make_machine(profile, 4, std::nullopt, {}).nodes == 1);
  CHECK(make_machine(profile, 8, std::nullopt, {}).nodes == 2);
}

// Worked by hand: forward and backward are 3.5 times 4 x batch x heads x sequence^2 x head_dim,
// half of it causal; times from cuDNN's table.
TEST_CASE("attention efficiencies of Blackwell follow from their source") {
  const double operations = 3.5 * 4 * 2 * 64 * 8192.0 * 8192.0 * 128 / 2;
  CHECK(load_profile("gb200-nvl72", {}).device.attention_efficiency.value ==
        Approx(operations / (1.397e-3 + 4.127e-3) / 2500e12).margin(1e-3));
  CHECK(load_profile("gb300-nvl72", {}).device.attention_efficiency.value ==
        Approx(operations / (1.185e-3 + 3.832e-3) / 2500e12).margin(1e-3));
}

}  // namespace shardsim::gpu_profiles_test
