#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "base/text.hpp"
#include "reports/machine/machine_picture.hpp"

namespace shardsim {
namespace {

std::string fabric_text(Fabric fabric) {
  switch (fabric) {
    case Fabric::nvswitch:
      return "NVSwitch";
    case Fabric::nvlink:
      return "direct NVLinks";
    case Fabric::cube_mesh:
      return "NVLinks in a hybrid cube mesh";
    case Fabric::xgmi:
      return "direct Infinity Fabric";
    case Fabric::pcie:
      return "PCIe";
  }
  assert(false);
  return {};
}

std::string inside_text(const ClusterProfile& cluster) {
  const std::int64_t devices = cluster.devices_per_node.value;
  const Bandwidth all = cluster.scale_up.bandwidth.value;
  const Bandwidth pair = bandwidth_inside(cluster, 2);
  std::string text = fmt::format("inside a node: {}, {} each way for every device",
                                 fabric_text(cluster.scale_up.fabric.value), format_bandwidth(all));
  if (cluster.scale_up.fabric.value == Fabric::cube_mesh) {
    text += fmt::format(", {} on average to each of the {} others", format_bandwidth(pair),
                        devices - 1);
  } else if (pair < all) {
    text += fmt::format(", {} to each of the {} others", format_bandwidth(pair), devices - 1);
  }
  return text;
}

std::string across_text(const ClusterProfile& cluster) {
  if (!cluster.scale_out) return "between nodes: nothing, this is one machine";
  const std::int64_t devices = cluster.devices_per_node.value;
  const std::int64_t nics = cluster.scale_out->nics_per_node.value;
  std::string share = "one for every device";
  if (nics > devices) share = fmt::format("{} for every device", nics / devices);
  if (nics < devices) share = fmt::format("one for every {} devices", devices / nics);
  return fmt::format("between nodes: {} of {} each way, {}", counted(nics, "NIC"),
                     format_bandwidth(cluster.scale_out->bandwidth.value), share);
}

std::vector<std::string> legend_of(const ClusterProfile& cluster, const Machine& machine) {
  const std::int64_t devices = cluster.devices_per_node.value;
  std::vector<std::string> legend = {
      fmt::format("{} of {} x {}{}", counted(machine.nodes, "node"), devices,
                  machine.profile.device.name, machine.nodes > 1 ? ", of which one is drawn" : "")};
  const std::int64_t hosts = devices / devices_per_host(cluster);
  if (hosts > 1) {
    legend.push_back(fmt::format("a node is one NVLink domain of {} hosts with {} devices each",
                                 hosts, devices_per_host(cluster)));
  }
  legend.push_back(inside_text(cluster));
  legend.push_back(across_text(cluster));
  return legend;
}

std::vector<std::string> legend_of(const TorusProfile& torus, const Machine& machine) {
  std::vector<std::string> rings;
  for (std::size_t i = 0; i < machine.torus->wraps.size(); ++i) {
    if (machine.torus->wraps[i]) rings.emplace_back(1, "xyz"[i]);
  }
  std::string slice =
      fmt::format("{}: {} x {}{}",
                  machine.slices == 1 ? "slice of " + machine.torus->text() : machine.topology(),
                  machine.devices, machine.profile.device.name,
                  machine.slices == 1 ? "" : ", of which one slice is drawn");
  const std::int64_t per_chip = machine.torus->devices_per_chip;
  if (per_chip > 1) slice += fmt::format(", {} on each chip, which is what is drawn", per_chip);
  std::vector<std::string> legend = {
      std::move(slice),
      fmt::format("links of {} each way between neighbours",
                  format_bandwidth(torus.link.bandwidth.value)),
      rings.empty() ? std::string("no dimension closes to a ring")
                    : fmt::format("closed to rings: {}", fmt::join(rings, ", "))};
  if (machine.slices > 1) {
    legend.push_back(fmt::format("{:g} GB/s each way between slices for each chip, by its host",
                                 torus.dcn->bandwidth.value.count() * 1e-9));
  }
  return legend;
}

// "host0.gpu12" as "host*.gpu*".
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) pattern += c;
    if (is_digit && !pattern.ends_with('*')) pattern += '*';
  }
  return pattern;
}

// Links whose ends are named alike in a line: "host*.gpu* -> rail*: 16 links of 50.0 GB/s, 1 us".
std::vector<std::string> legend_of(const GivenGraph& graph) {
  using Ends = std::pair<std::string, std::string>;  // how they are named, and the wire
  std::vector<Ends> classes;
  std::map<Ends, std::int64_t> links;
  for (const NetworkLink& link : graph.links) {
    Ends ends{fmt::format("{} -> {}", pattern_of(graph.names[at(link.from)]),
                          pattern_of(graph.names[at(link.to)])),
              fmt::format("{}, {}", format_bandwidth(link.wire.bandwidth),
                          format_seconds(link.wire.latency))};
    if (++links[ends] == 1) classes.push_back(std::move(ends));
  }
  const auto switches = static_cast<std::int64_t>(graph.names.size()) - graph.devices;
  std::vector<std::string> legend = {
      fmt::format("{} ({} to {}), {}", counted(graph.devices, "device"), graph.names.front(),
                  graph.names[at(graph.devices - 1)],
                  switches == 1 ? "1 switch" : format_count(switches) + " switches")};
  for (const Ends& ends : classes) {
    legend.push_back(
        fmt::format("{}: {} of {}", ends.first, counted(links.at(ends), "link"), ends.second));
  }
  return legend;
}

std::vector<std::string> legend_of(const NetworkDescription& network, const Machine& machine,
                                   const Place& place) {
  if (network.graph) return legend_of(*network.graph);
  const NetworkGraph graph = build(network, machine.devices, place);
  const auto links = static_cast<std::int64_t>(graph.links().size()) / 2;
  const std::int64_t switches = graph.nodes() - graph.devices();
  return {
      fmt::format("{}, {}", counted(machine.devices, "device"),
                  switches == 1 ? "1 switch" : fmt::format("{} switches", switches)),
      fmt::format("{} of {} each way, {}", counted(links, "link"),
                  format_bandwidth(network.wire.bandwidth), format_seconds(network.wire.latency))};
}

}  // namespace

std::vector<std::string> machine_legend(const Machine& machine, const Place& place) {
  const auto& network = machine.profile.network;
  if (const auto* cluster = std::get_if<ClusterProfile>(&network)) {
    return legend_of(*cluster, machine);
  }
  if (const auto* torus = std::get_if<TorusProfile>(&network)) return legend_of(*torus, machine);
  return legend_of(std::get<NetworkDescription>(network), machine, place);
}

}  // namespace shardsim
