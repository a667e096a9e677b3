// Topology files of NCCL as profiles. The files are written by hand after what NCCL dumps on a DGX
// A100, a DGX-1 and after Azure's files, which have PCI devices only.
#include "hardware_profiles/nccl_topology.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim::nccl_topology_test {

namespace {

std::string system_of(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">" +
         inside + "</cpu></system>";
}

std::string bus(int number) { return fmt::format("0000:{:02x}:00.0", number); }

std::string gpu(int number, const std::string& links, int capability = 80) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu "
      "dev=\"{}\" sm=\"{}\">{}</gpu></pci>",
      bus(number), number, capability, links);
}

std::string links(int target, int count) {
  return fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"0x030200\"/>", bus(target),
                     count);
}
const std::string to_switch = "<nvlink target=\"0000:c0:00.0\" count=\"12\" tclass=\"0x068000\"/>";

std::string nic(int number, int speed, double latency = 0) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x020700\"><nic><net name=\"nic{}\" speed=\"{}\" "
      "latency=\"{}\"/></nic></pci>",
      bus(128 + number), number, speed, latency);
}

ImportedTopology import(const std::string& xml, const std::string& extends = "dgx-a100") {
  return import_nccl_topology(xml, "topo.xml", {"mine", extends, "2026-11"});
}

std::string error_of(const std::string& xml, const std::string& extends = "dgx-a100") {
  try {
    (void)import(xml, extends);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

ClusterProfile cluster_of(const ImportedTopology& imported) {
  return std::get<ClusterProfile>(read_profile(imported.profile, "mine.json").network);
}

}  // namespace

TEST_CASE("a dump says how GPUs, NICs and CPUs are joined") {
  std::string inside;
  for (int i = 0; i < 4; i += 2) {
    inside += fmt::format("<pci busid=\"{}\" class=\"0x060400\">", bus(64 + i)) +
              gpu(i, to_switch) + gpu(i + 1, to_switch) + nic(i, 200000, 2.5) + "</pci>";
  }
  inside += nic(9, 100000);
  const ImportedTopology imported = import(system_of(inside));
  const ClusterProfile cluster = cluster_of(imported);
  CHECK(cluster.devices_per_node.value == 4);
  CHECK(cluster.scale_up.fabric.value == Fabric::nvswitch);
  CHECK(cluster.scale_up.bandwidth.value == Bandwidth(12 * 25e9));
  CHECK(cluster.scale_up.bandwidth.source.kind == "derived");
  CHECK(cluster.scale_out->nics_per_node.value == 2);
  CHECK(cluster.scale_out->bandwidth.value == Bandwidth(25e9));
  CHECK(cluster.scale_out->bandwidth.source.reference ==
        "NCCL topology topo.xml: speed of these network devices");
  CHECK(cluster.scale_out->bandwidth.source.date == "2026-11");
  CHECK(cluster.nccl->compute_capability.value == 8.0);
  CHECK(cluster.nccl->pcie_generation.value == 4);
  CHECK(cluster.nccl->gpus_per_pcie_switch.value == 2);
  CHECK(cluster.nccl->cpu.value == HostCpu::amd);
  CHECK(cluster.nccl->network_latency->value.count() == Approx(2.5e-6));
  CHECK(imported.notes ==
        std::vector<std::string>{"network device nic9 is slower than others and not counted",
                                 "the calibrations of dgx-a100 are of its links and left out"});
  CHECK(read_profile(imported.profile, "mine.json").calibrations.empty());
  // What the file does not know comes from the other profile.
  const auto base = std::get<ClusterProfile>(load_profile("dgx-a100", {}).network);
  CHECK(cluster.scale_out->latency.value == base.scale_out->latency.value);
  CHECK(cluster.scale_up.efficiency.value == base.scale_up.efficiency.value);
}

TEST_CASE("CPUs are those of the file, not of the other profile") {
  const std::string xml = "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">" +
                          gpu(0, to_switch) + gpu(1, to_switch) + "</cpu></system>";
  CHECK(cluster_of(import(xml)).nccl->cpu.value == HostCpu::arm);
}

TEST_CASE("GPUs with one NVLink have it") {
  const std::string pair = gpu(0, links(1, 1)) + gpu(1, links(0, 1));
  CHECK(cluster_of(import(system_of(pair))).scale_up.fabric.value == Fabric::nvlink);
  // The GPU at the other end is not in the file.
  const std::string alone = gpu(0, links(1, 1));
  CHECK(cluster_of(import(system_of(alone))).scale_up.fabric.value == Fabric::nvlink);
}

TEST_CASE("direct NVLinks: between every two, or in a cube mesh") {
  std::string full;
  for (int a = 0; a < 4; ++a) {
    std::string all;
    for (int b = 0; b < 4; ++b) {
      if (a != b) all += links(b, 4);
    }
    full += gpu(a, all);
  }
  const ClusterProfile four = cluster_of(import(system_of(full)));
  CHECK(four.scale_up.fabric.value == Fabric::nvlink);
  CHECK(four.scale_up.bandwidth.value == Bandwidth(12 * 25e9));
  CHECK_FALSE(four.scale_out.has_value());

  std::string cube;
  for (std::size_t a = 0; a < cube_mesh_links.size(); ++a) {
    std::string all;
    for (std::size_t b = 0; b < cube_mesh_links.size(); ++b) {
      if (cube_mesh_links[a][b] > 0) all += links(static_cast<int>(b), cube_mesh_links[a][b]);
    }
    cube += gpu(static_cast<int>(a), all, 70);
  }
  const ClusterProfile eight = cluster_of(import(system_of(cube), "dgx-1v"));
  CHECK(eight.scale_up.fabric.value == Fabric::cube_mesh);
  CHECK(eight.nccl->compute_capability.value == 7.0);
}

// Azure's files name PCI devices, for NCCL to fill in what it finds there.
TEST_CASE("what a file leaves out is inherited, and said") {
  const ImportedTopology imported =
      import(system_of("<pci busid=\"ffff:ff:01.0\" class=\"0x060400\">"
                       "<pci busid=\"0001:00:00.0\" class=\"0x030200\"/>"
                       "<pci busid=\"0101:00:00.0\" class=\"0x020700\"/></pci>"),
             "dgx-h100");
  CHECK(imported.notes == std::vector<std::string>{
                              "how GPUs are joined is not in the file, taken from dgx-h100",
                              "the speed of its NICs is not in the file, taken from dgx-h100",
                              "the compute capability of its GPUs is not in the file, taken from "
                              "dgx-h100",
                              "the speed of PCIe is not in the file, taken from dgx-h100",
                              "the calibrations of dgx-h100 are of its links and left out"});
  const ClusterProfile cluster = cluster_of(imported);
  CHECK(cluster.scale_out->bandwidth.value == Bandwidth(50e9));
  CHECK(cluster.nccl->compute_capability.value == 9.0);
  CHECK(cluster.nccl->gpus_per_pcie_switch.value == 1);
}

TEST_CASE("the example is a profile") {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/topologies/h100x2.xml";
  const ClusterProfile cluster =
      cluster_of(import_nccl_topology(read_file(file), file, {"two", "dgx-h100", "2026-11"}));
  CHECK(cluster.devices_per_node.value == 2);
  CHECK(cluster.scale_up.bandwidth.value == Bandwidth(450e9));
  CHECK(cluster.scale_out->nics_per_node.value == 2);
}

TEST_CASE("files that are no topology of a machine") {
  CHECK_THAT(error_of("<system>"), Catch::StartsWith("topo.xml: line 1: "));
  CHECK(error_of("<a/>") == "topo.xml: is not a topology of NCCL: it has no element <system>");
  CHECK(error_of(system_of("")) == "topo.xml: has no GPU");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  CHECK(error_of(deep) == "topo.xml: is nested more than 64 levels deep");
  CHECK(error_of(system_of(gpu(0, to_switch)), "tpu-v5p") ==
        "topo.xml: tpu-v5p is no cluster, which a topology of NCCL is part of");
  CHECK_THAT(error_of(system_of(gpu(0, to_switch)), "dgx-a10"),
             Catch::Contains("did you mean \"dgx-a100\"?"));
  CHECK(error_of(system_of(gpu(0, to_switch)), "mi300x") ==
        "topo.xml: mi300x does not say what an NVLink carries, of which each GPU has 12");
  CHECK(error_of(system_of(gpu(0, "") + gpu(1, ""))) ==
        "topo.xml: its GPUs are joined by PCIe alone, but those of dgx-a100 are not: their "
        "bandwidth is not known");
  CHECK(error_of(system_of(gpu(0, to_switch) + gpu(1, ""))) ==
        "topo.xml: GPUs 0000:00:00.0 and 0000:01:00.0 have 12 and 0 NVLinks");
  CHECK(error_of(system_of(gpu(0, to_switch) + gpu(1, to_switch, 90))) ==
        "topo.xml: GPUs 0000:00:00.0 and 0000:01:00.0 differ in sm");
  CHECK(error_of(system_of(gpu(0, links(1, 2)) + gpu(1, links(0, 2)) + gpu(2, links(3, 2)) +
                           gpu(3, links(2, 2)))) ==
        "topo.xml: its NVLinks join some pairs of GPUs only, and not as in a DGX-1");
  CHECK(error_of(system_of("<pci busid=\"b\" class=\"0x060400\">" + gpu(0, to_switch) + "</pci>" +
                           gpu(1, to_switch))) ==
        "topo.xml: its GPUs are spread unevenly over PCIe switches");
  CHECK(error_of(system_of(gpu(0, "<nvlink count=\"x\"/>"))) ==
        "topo.xml: 0000:00:00.0: count \"x\" is not a number");
}

}  // namespace shardsim::nccl_topology_test
