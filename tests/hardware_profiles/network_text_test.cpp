// Networks written in place, and what is wrong with some.
#include "hardware_profiles/network/network_text.hpp"

#include <catch2/catch.hpp>

#include "hardware_profiles/network/node_names.hpp"

namespace shardsim::network_text_test {
namespace {
using Catch::Matchers::Contains;

const Place place{"--machine", ""};

NetworkGraph graph_of(const std::string& text, std::int64_t devices) {
  return build(parse_network(text, place), devices, place);
}

void check_error(const std::string& text, const std::string& expected) {
  INFO(text);
  CHECK_THROWS_WITH(graph_of(text, 8), Contains(expected));
}

}  // namespace

TEST_CASE("networks are what their text says") {
  const NetworkGraph ring = graph_of("ring(bandwidth=50GiB/s,latency=500ns)", 8);
  CHECK(ring.links().size() == 16);
  CHECK(ring.links()[0].wire.bandwidth == Bandwidth(50.0 * GiB));
  CHECK(ring.links()[0].wire.latency.count() == Approx(500e-9));
  CHECK(graph_of("full(8, bandwidth = 1 GB/s, latency = 1 us)", 8).links().size() == 56);
  CHECK(graph_of("switch(bandwidth=1GB/s,latency=0s)", 8).nodes() == 9);
  CHECK(graph_of("torus(4x2,bandwidth=1GB/s,latency=1us)", 8).links().size() == 2U * 8 + 8);
  CHECK(graph_of("torus(4x2,wrap=no,bandwidth=1GB/s,latency=1us)", 8).links().size() == 2U * 6 + 8);
  CHECK(graph_of("fat-tree(4x2,bandwidth=1GB/s,latency=1us)", 8).nodes() == 8 + 2 + 4);
  CHECK(graph_of("fat-tree(4x2,oversubscription=2,bandwidth=1GB/s,latency=1us)", 8).nodes() ==
        8 + 2 + 2);
  CHECK(graph_of("dragonfly(1x2x3,bandwidth=1GB/s,latency=1us)", 8).nodes() == 8 + 4);
  CHECK(is_network_text("ring()"));
  CHECK_FALSE(is_network_text("tpu-v5p"));
}

TEST_CASE("nodes are called what they are") {
  const auto names = [](const std::string& network, std::int64_t devices) {
    const NetworkDescription parsed =
        parse_network(network + "bandwidth=1GB/s,latency=1us)", place);
    std::vector<std::string> all;
    const NetworkGraph graph = build(parsed, devices, place);
    for (NodeId node = graph.devices(); node < graph.nodes(); ++node) {
      all.push_back(node_name(parsed, devices, node));
    }
    return all;
  };
  using Names = std::vector<std::string>;
  CHECK(names("switch(", 4) == Names{"switch"});
  CHECK(names("fat-tree(2x2,", 4) == Names{"leaf 0", "leaf 1", "spine 0", "spine 1"});
  // Two wires up from a node of every tier but the last: 2 leaves, 2 x 2 above them, 4 spines.
  CHECK(names("fat-tree(2x2x1,", 4) == Names{"leaf 0", "leaf 1", "tier 2 switch 0",
                                             "tier 2 switch 1", "spine 0", "spine 1", "spine 2",
                                             "spine 3"});
  CHECK(names("dragonfly(2x1x1,", 6) == Names{"group 0 switch 0", "group 0 switch 1",
                                              "group 1 switch 0", "group 1 switch 1",
                                              "group 2 switch 0", "group 2 switch 1"});
}

TEST_CASE("a network has the devices that its text names, or none") {
  const std::string wires = "bandwidth=1GB/s,latency=1us";
  CHECK(parse_network("ring(" + wires + ",device=h100)", place).device == "h100");
  CHECK(parse_network("ring(" + wires + ")", place).device.empty());
}

TEST_CASE("networks that are not understood say what is wrong") {
  const std::string wires = "bandwidth=1GB/s,latency=1us";
  check_error("rign(" + wires + ")", "unknown network \"rign\"");
  check_error("rign(" + wires + ")", "did you mean \"ring\"?");
  check_error("ring(" + wires, "expected \")\" at the end");
  check_error("ring(bandwith=1GB/s,latency=1us)",
              "unknown key \"bandwith\" of ring, did you mean \"bandwidth\"?");
  check_error("ring(wrap=no," + wires + ")", "unknown key \"wrap\" of ring");
  check_error("ring(bandwidth=1GB/s)", "ring has no latency: latency=...");
  check_error("ring(" + wires + ",latency=2us)", "\"latency\" is given twice");
  check_error("ring(bandwidth=1,latency=1us)", "1");
  check_error("ring(bandwidth=0GB/s,latency=1us)", "a bandwidth of zero");
  check_error("ring(bandwidth=1GB/s,latency=-1us)", "-1us");
  check_error("ring(" + wires + ",8)", "\"8\": expected key=value");
  check_error("ring(4," + wires + ")", "the network has 4 devices, not 8");
  check_error("torus(" + wires + ")", "torus with 0 sizes: 1 to 8 are needed");
  check_error("torus(4x2,wrap=maybe," + wires + ")", "wrap is yes or no, not \"maybe\"");
  check_error("torus(1000000000," + wires + ")", "1000000000 nodes are more than the 4194304");
  check_error("fat-tree(4x2,oversubscription=2x2," + wires + ")", "2 oversubscriptions for 1 tier");
  check_error("fat-tree(4x2,oversubscription=3," + wires + ")",
              "an oversubscription of 3 does not divide 4 wires");
  check_error("dragonfly(4x2," + wires + ")", "dragonfly with 2 sizes: 3 are needed");
}

}  // namespace shardsim::network_text_test
