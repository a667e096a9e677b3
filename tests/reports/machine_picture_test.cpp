// Machines drawn. Expected pictures are drawn by hand from what the headers say; counts of lines
// are those of the graphs.
#include "reports/machine/machine_picture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reports/machine/machine_report.hpp"

namespace shardsim::machine_picture_test {

namespace {

using Part = MachinePicture::Part;

Machine machine_of(const std::string& name, std::int64_t devices,
                   const std::optional<std::string>& topology = std::nullopt) {
  return make_machine(load_profile(name, {}), devices, topology, {});
}

MachinePicture drawn(const Machine& machine) { return picture_of(machine, {}).value(); }

const std::string two_hosts = SHARDSIM_SOURCE_DIR "/examples/topologies/two-hosts.json";

std::vector<Machine> networks() {
  std::vector<Machine> machines = {machine_of(two_hosts, 8)};
  for (const auto& [shape, devices] :
       std::map<std::string, std::int64_t>{{"ring(", 6},
                                           {"full(", 6},
                                           {"switch(", 6},
                                           {"switch(60,", 60},
                                           {"fat-tree(4x4,oversubscription=2,", 16},
                                           {"fat-tree(8x4x2,", 64},
                                           {"dragonfly(2x1x1,", 6},
                                           {"torus(3x3,", 9},
                                           {"torus(4x2x3,wrap=no,", 24}}) {
    machines.push_back(machine_of(shape + "bandwidth=1GB/s,latency=1us)", devices));
  }
  return machines;
}

// From the least to the greatest of some places.
struct Extent {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void add(double place) {
    least = std::min(least, place);
    most = std::max(most, place);
  }
  [[nodiscard]] double middle() const { return (least + most) / 2; }
};

// There is as much room on the left as on the right, and above as below.
void check_is_in_the_middle(const MachinePicture& picture) {
  Extent across;
  Extent down;
  for (const auto& box : picture.boxes) {
    for (const double side : {-0.5, 0.5}) {
      across.add(box.x + side * box.width);
      down.add(box.y + side * box.height);
    }
  }
  for (const auto& line : picture.lines) {
    for (const double x : {line.x1, line.x2}) across.add(x);
    for (const double y : {line.y1, line.y2}) down.add(y);
  }
  CHECK(across.middle() == Approx(picture.width / 2));
  CHECK(down.middle() == Approx(picture.height / 2));
}

std::int64_t lines_of(const MachinePicture& picture, Part part) {
  return std::count_if(picture.lines.begin(), picture.lines.end(),
                       [&](const auto& line) { return line.part == part; });
}
std::int64_t boxes_of(const MachinePicture& picture, Part part) {
  return std::count_if(picture.boxes.begin(), picture.boxes.end(),
                       [&](const auto& box) { return box.part == part; });
}

std::string begin_of(const std::string& text) { return text.substr(0, text.find("\n\n") + 1); }

}  // namespace

TEST_CASE("a node in characters: the bar that joins devices, their NICs, the network") {
  CHECK(begin_of(machine_text(machine_of("gcp-a3-high", 8), {})) ==
        "  [                       NVSwitch                         ]\n"
        "      |      |      |      |      |      |      |      |\n"
        "     [0]    [1]    [2]    [3]    [4]    [5]    [6]    [7]\n"
        "      |      |      |      |      |      |      |      |\n"
        "      +-NIC--+      +-NIC--+      +-NIC--+      +-NIC--+\n"
        "         |             |             |             |\n"
        "  [                 network between nodes                  ]\n");
  CHECK(begin_of(machine_text(machine_of("alps", 4), {})) ==
        "      +------+------+------+  every two joined\n"
        "      |      |      |      |\n"
        "     [0]    [1]    [2]    [3]\n"
        "      |      |      |      |\n"
        "     NIC    NIC    NIC    NIC\n"
        "      |      |      |      |\n"
        "  [   network between nodes    ]\n");
  CHECK(begin_of(machine_text(machine_of("pcie-a100", 4), {})) ==
        "  [           PCIe             ]\n"
        "      |      |      |      |\n"
        "     [0]    [1]    [2]    [3]\n");
}

TEST_CASE("a graph in rows, by how far nodes are from devices; links named alike in a line") {
  const Machine machine = machine_of(two_hosts, 8);
  const MachinePicture picture = drawn(machine);
  CHECK(boxes_of(picture, Part::device) == 8);
  CHECK(boxes_of(picture, Part::fabric) == 2 * 3 + 3);
  std::map<std::string, double> heights;
  for (const auto& box : picture.boxes) heights[box.title] = box.y;
  // Higher is less: devices, NVSwitches and NICs, rails, the spine.
  CHECK(heights.at("host0.gpu0") == heights.at("host1.gpu3"));
  CHECK(heights.at("host0.nvswitch") == heights.at("host1.nic1"));
  CHECK(heights.at("host0.nic0") < heights.at("host0.gpu0"));
  CHECK(heights.at("rail0") < heights.at("host0.nic0"));
  CHECK(heights.at("spine") < heights.at("rail0"));
  const std::vector<std::string> legend = machine_legend(machine, {});
  CHECK(legend[0] == "8 devices (host0.gpu0 to host1.gpu3), 9 switches");
  CHECK(legend[1] == "host*.gpu* -> host*.nvswitch: 8 links of 450.0 GB/s, 500.000 ns");
  CHECK(machine_report_text(machine, {}).find("device.memory_capacity") != std::string::npos);
}

TEST_CASE("a torus in characters: what sticks out comes in on the other side") {
  CHECK(begin_of(machine_text(machine_of("torus(3x3,bandwidth=1GB/s,latency=1us)", 9), {})) ==
        "    |  |  |\n"
        "  --o--o--o--\n"
        "    |  |  |\n"
        "  --o--o--o--\n"
        "    |  |  |\n"
        "  --o--o--o--\n"
        "    |  |  |\n");
  // Two have one wire between them.
  CHECK(begin_of(machine_text(machine_of("torus(2,bandwidth=1GB/s,latency=1us)", 2), {})) ==
        "    o--o\n");
  CHECK(begin_of(machine_text(machine_of("tpu-v5e", 4), {})) ==
        "    o--o\n"
        "    |  |\n"
        "    o--o\n");
}

TEST_CASE("legends say what joins devices, nodes and hosts") {
  CHECK(
      machine_legend(machine_of("aws-p5", 16), {}) ==
      std::vector<std::string>{"2 nodes of 8 x H100 SXM5 80 GB, of which one is drawn",
                               "inside a node: NVSwitch, 450.0 GB/s each way for every device",
                               "between nodes: 32 NICs of 12.5 GB/s each way, 4 for every device"});
  CHECK(machine_legend(machine_of("mi300x", 8), {}).at(1) ==
        "inside a node: direct Infinity Fabric, 448.0 GB/s each way for every device, 64.0 GB/s to "
        "each of the 7 others");
  CHECK(machine_legend(machine_of("gb200-nvl72", 72), {}).at(1) ==
        "a node is one NVLink domain of 18 hosts with 4 devices each");
  CHECK(machine_legend(machine_of("pcie-a100", 4), {}).back() ==
        "between nodes: nothing, this is one machine");
  CHECK(machine_legend(machine_of("tpu-v5p", 64), {}).back() == "closed to rings: x, y, z");
  CHECK(machine_legend(machine_of("tpu7x", 8), {}).front() ==
        "slice of 2x2x1: 8 x " + load_profile("tpu7x", {}).device.name +
            ", 2 on each chip, which is what is drawn");
  CHECK(machine_legend(machine_of("tpu-v5e", 4), {}).back() == "no dimension closes to a ring");
  const Machine slices = make_machine(load_profile("tpu-v5p", {}), 128, std::nullopt, {}, 2);
  CHECK(machine_legend(slices, {}).front() ==
        "2 slices of 4x4x4: 128 x TPU v5p, of which one slice is drawn");
  CHECK(machine_legend(slices, {}).back() ==
        "6.25 GB/s each way between slices for each chip, by its host");
  CHECK(machine_legend(machine_of("ring(bandwidth=50GB/s,latency=500ns)", 8), {}) ==
        std::vector<std::string>{"8 devices, 0 switches",
                                 "8 links of 50.0 GB/s each way, 500.000 ns"});
}

TEST_CASE("pictures have a line for every link") {
  const MachinePicture h100 = drawn(machine_of("dgx-h100", 8));
  CHECK(boxes_of(h100, Part::device) == 8);
  CHECK(boxes_of(h100, Part::nic) == 8);
  CHECK(lines_of(h100, Part::link) == 8);
  CHECK(lines_of(h100, Part::link_out) == 16);  // to the NIC and on
  CHECK(lines_of(drawn(machine_of("mi300x", 8)), Part::link) == 8 * 7 / 2);
  // Each V100 of a DGX-1 has NVLinks to four others.
  CHECK(lines_of(drawn(machine_of("dgx-1v", 8)), Part::link) == 8 * 4 / 2);
  CHECK(boxes_of(drawn(machine_of("aws-p3dn", 8)), Part::nic) == 1);
  CHECK(boxes_of(drawn(machine_of("gb200-nvl72", 72)), Part::device) == 72);

  // 4x4x4: 3 of 4 links of every line along each dimension, the fourth as two stubs.
  const MachinePicture torus = drawn(machine_of("tpu-v5p", 64));
  constexpr std::int64_t rows = 3 * 16;
  CHECK(lines_of(torus, Part::link) == rows * 3);
  CHECK(lines_of(torus, Part::wrap) == rows * 2);
  CHECK(lines_of(drawn(machine_of("tpu-v5e", 64)), Part::wrap) == 0);

  const auto links = [](const std::string& network, std::int64_t devices) {
    return lines_of(drawn(machine_of(network + "bandwidth=1GB/s,latency=1us)", devices)),
                    Part::link);
  };
  CHECK(links("ring(", 6) == 6);
  CHECK(links("full(", 6) == 15);
  CHECK(links("switch(", 6) == 6);
  CHECK(links("fat-tree(4x4,oversubscription=2,", 16) == 16 + 4 * 2);
  // 3 groups of 2 switches with one device: 6 + 3 + every two groups joined, 3.
  CHECK(links("dragonfly(2x1x1,", 6) == 6 + 3 + 3);
}

TEST_CASE("everything is drawn in the middle of the picture") {
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = load_profile(name, {});
    const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
    const std::int64_t devices = cluster != nullptr
                                     ? cluster->devices_per_node.value
                                     : largest_slice(std::get<TorusProfile>(profile.network), 64);
    CAPTURE(name);
    const MachinePicture picture = drawn(machine_of(name, devices));
    const auto* torus = std::get_if<TorusProfile>(&profile.network);
    const std::int64_t per_chip = torus == nullptr ? 1 : devices_per_chip(*torus);
    CHECK(boxes_of(picture, Part::device) == devices / per_chip);
    // A circle with few NICs reaches further to one side.
    if (cluster == nullptr || !is_direct(cluster->scale_up.fabric.value)) {
      check_is_in_the_middle(picture);
    }
    for (const auto& box : picture.boxes) {
      CHECK(box.x - box.width / 2 >= 0);
      CHECK(box.y - box.height / 2 >= 0);
      CHECK(box.x + box.width / 2 <= picture.width);
      CHECK(box.y + box.height / 2 <= picture.height);
    }
  }
  for (const Machine& machine : networks()) {
    CAPTURE(machine.profile.name);
    check_is_in_the_middle(drawn(machine));
  }
}

TEST_CASE("rows of a network stand above each other, no box on another") {
  for (const Machine& machine : networks()) {
    CAPTURE(machine.profile.name);
    const MachinePicture picture = drawn(machine);
    for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        const auto& a = picture.boxes[i];
        const auto& b = picture.boxes[k];
        CHECK((std::abs(a.x - b.x) > (a.width + b.width) / 2 ||
               std::abs(a.y - b.y) > (a.height + b.height) / 2));
      }
    }
    const NetworkKind kind = std::get<NetworkDescription>(machine.profile.network).kind;
    if (kind != NetworkKind::switched && kind != NetworkKind::fat_tree &&
        kind != NetworkKind::graph) {
      continue;
    }
    std::map<double, Extent> rows;
    for (const auto& box : picture.boxes) rows[box.y].add(box.x);
    CHECK(rows.size() > 1);
    for (const auto& [y, row] : rows) CHECK(row.middle() == Approx(picture.width / 2));
  }
  // Six devices have room for boxes as large as anywhere.
  const std::string wires = "bandwidth=1GB/s,latency=1us)";
  CHECK(drawn(machine_of("switch(" + wires, 6)).boxes[0].width ==
        drawn(machine_of("ring(" + wires, 6)).boxes[0].width);
}

TEST_CASE("every device has one way out of its node") {
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = load_profile(name, {});
    const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
    if (cluster == nullptr || !cluster->scale_out) continue;
    CAPTURE(name);
    const MachinePicture picture = drawn(machine_of(name, cluster->devices_per_node.value));
    for (const auto& box : picture.boxes) {
      if (box.part != Part::device) continue;
      CHECK(std::count_if(picture.lines.begin(), picture.lines.end(), [&](const auto& line) {
              return line.part == Part::link_out && line.x1 == Approx(box.x) &&
                     line.y1 == Approx(box.y);
            }) == 1);
    }
  }
}

TEST_CASE("what is too large is described") {
  const Machine ring = machine_of("ring(bandwidth=1GB/s,latency=1us)", 513);
  CHECK_FALSE(picture_of(ring, {}).has_value());
  CHECK_THAT(machine_report_html(ring, {}), Catch::Contains("513 devices are too many to draw."));
  CHECK_THAT(machine_text(ring, {}), Catch::Contains("...---[512]"));
  const Machine torus = machine_of("torus(3x3x3x3,bandwidth=1GB/s,latency=1us)", 81);
  CHECK_FALSE(picture_of(torus, {}).has_value());
}

TEST_CASE("the page has the picture and every number; names cannot leave their place") {
  Machine machine = machine_of("dgx-a100", 8);
  machine.profile.title = "<script>";
  const std::string page = machine_report_html(machine, {});
  CHECK_THAT(page, Catch::Contains("<svg class=\"machine\"") && Catch::Contains("NVSwitch") &&
                       Catch::Contains("cluster.scale_out.nics_per_node") &&
                       !Catch::Contains("<script>"));
  const std::string text = machine_report_text(machine_of("dgx-a100", 8), {});
  CHECK_THAT(text, Catch::StartsWith("dgx-a100: NVIDIA DGX A100") &&
                       Catch::Contains("[0]    [1]") && Catch::Contains("device.memory_capacity"));
}

}  // namespace shardsim::machine_picture_test
