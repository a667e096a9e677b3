#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/device_reader.hpp"
#include "hardware_profiles/extend_profile.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "hardware_profiles/sourced_reader.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_devices_per_chip = 64;

// One of the values of an enumeration, by name.
template <class Choice>
auto one_of(std::initializer_list<Choice> choices) {
  return [choices = std::vector<Choice>(choices)](const JsonReader& value) {
    std::vector<std::string> names;
    for (const Choice choice : choices) names.emplace_back(name_of(choice));
    const auto found = std::find(names.begin(), names.end(), value.choice(names));
    return choices[static_cast<std::size_t>(found - names.begin())];
  };
}

ScaleUpProfile read_scale_up(const JsonReader& reader, std::int64_t devices_per_node) {
  reader.only_keys({"fabric", "bandwidth", "efficiency", "latency"});
  const auto read_fabric =
      one_of({Fabric::nvswitch, Fabric::nvlink, Fabric::cube_mesh, Fabric::xgmi, Fabric::pcie});
  ScaleUpProfile scale_up{read_link(reader), read_sourced(reader.at("fabric"), read_fabric)};
  constexpr auto corners = static_cast<std::int64_t>(cube_mesh_links.size());
  if (scale_up.fabric.value == Fabric::cube_mesh && devices_per_node != corners &&
      2 * devices_per_node != corners) {
    reader.at("fabric").fail(fmt::format("a cube mesh joins {} devices, and half of it {}, not {}",
                                         corners, corners / 2, devices_per_node));
  }
  return scale_up;
}

SwitchTier read_switch_tier(const JsonReader& reader) {
  reader.only_keys({"nodes", "oversubscription"});
  const auto read_ratio = [](const JsonReader& value) {
    const double ratio = value.number();
    if (!(ratio >= 1 && std::isfinite(ratio))) {
      value.fail(fmt::format("{} is not an oversubscription, must be at least 1", ratio));
    }
    return ratio;
  };
  return {read_sourced(reader.at("nodes"), read_count),
          read_sourced(reader.at("oversubscription"), read_ratio)};
}

SwitchProfile read_switches(const JsonReader& reader) {
  reader.only_keys({"rails", "leaf", "spine"});
  SwitchProfile switches{
      read_sourced(reader.at("rails"), read_flag), read_switch_tier(reader.at("leaf")), {}};
  if (const auto spine = reader.find("spine")) {
    switches.spine = read_switch_tier(*spine);
    const std::int64_t below = switches.leaf.nodes.value;
    if (switches.spine->nodes.value % below != 0) {
      spine->at("nodes").fail(fmt::format("leaves of {} do not make up a spine of {}",
                                          counted(below, "node"), switches.spine->nodes.value));
    }
  }
  return switches;
}

ReductionProfile read_reduction(const JsonReader& reader) {
  reader.only_keys({"efficiency", "all_gather", "reduce_scatter"});
  ReductionProfile reduction;
  reduction.efficiency = read_sourced(reader.at("efficiency"), read_fraction);
  if (const auto gather = reader.find("all_gather")) {
    reduction.all_gather = read_sourced(*gather, read_flag);
  }
  if (const auto scatter = reader.find("reduce_scatter")) {
    reduction.reduce_scatter = read_sourced(*scatter, read_flag);
  }
  return reduction;
}

ScaleOutProfile read_scale_out(const JsonReader& reader, std::int64_t devices_per_node) {
  reader.only_keys(
      {"nics_per_node", "bandwidth", "efficiency", "latency", "switches", "reduction"});
  const JsonReader nics = reader.at("nics_per_node");
  ScaleOutProfile scale_out{read_link(reader), read_sourced(nics, read_count), {}};
  if (const auto switches = reader.find("switches")) scale_out.switches = read_switches(*switches);
  if (const auto reduction = reader.find("reduction")) {
    scale_out.reduction = read_reduction(*reduction);
  }
  const std::int64_t count = scale_out.nics_per_node.value;
  if (count % devices_per_node != 0 && devices_per_node % count != 0) {
    nics.fail(fmt::format("{} NICs cannot be shared out evenly among {} devices", count,
                          devices_per_node));
  }
  return scale_out;
}

// Capabilities are numbers such as 9.0: a generation and a digit.
double read_compute_capability(const JsonReader& value) {
  const double capability = value.number();
  if (!(capability >= 1 && capability < 100) ||
      std::abs(std::round(capability * 10) - capability * 10) > 1e-9) {
    value.fail(fmt::format("{} is not a compute capability, expected for example 9.0", capability));
  }
  return capability;
}

NcclProfile read_nccl(const JsonReader& reader) {
  reader.only_keys({"compute_capability", "nvlink_bandwidth", "pcie_generation",
                    "gpus_per_pcie_switch", "cpu", "network_latency", "unpacks_on_gpu"});
  const auto read_generation = [](const JsonReader& value) { return value.integer(1, 9); };
  NcclProfile nccl;
  nccl.compute_capability = read_sourced(reader.at("compute_capability"), read_compute_capability);
  if (const auto link = reader.find("nvlink_bandwidth")) {
    nccl.nvlink_bandwidth = read_sourced(*link, read_bandwidth);
  }
  nccl.pcie_generation = read_sourced(reader.at("pcie_generation"), read_generation);
  nccl.gpus_per_pcie_switch = read_sourced(reader.at("gpus_per_pcie_switch"), read_count);
  nccl.cpu = read_sourced(reader.at("cpu"),
                          one_of({HostCpu::intel, HostCpu::amd, HostCpu::arm, HostCpu::power}));
  if (const auto latency = reader.find("network_latency")) {
    nccl.network_latency = read_sourced(*latency, read_seconds);
  }
  if (const auto unpacks = reader.find("unpacks_on_gpu")) {
    nccl.unpacks_on_gpu = read_sourced(*unpacks, read_flag);
  }
  return nccl;
}

RcclProfile read_rccl(const JsonReader& reader) {
  reader.only_keys({"architecture", "link_bandwidth", "pcie_generation", "cpu"});
  const auto read_generation = [](const JsonReader& value) { return value.integer(1, 9); };
  RcclProfile rccl;
  rccl.architecture = read_sourced(reader.at("architecture"), one_of({AmdArchitecture::gfx942}));
  rccl.link_bandwidth = read_sourced(reader.at("link_bandwidth"), read_bandwidth);
  rccl.pcie_generation = read_sourced(reader.at("pcie_generation"), read_generation);
  rccl.cpu = read_sourced(reader.at("cpu"), one_of({HostCpu::intel, HostCpu::amd}));
  return rccl;
}

ClusterProfile read_cluster(const JsonReader& reader) {
  reader.only_keys(
      {"devices_per_node", "devices_per_host", "scale_up", "scale_out", "nccl", "rccl"});
  ClusterProfile cluster;
  cluster.devices_per_node = read_sourced(reader.at("devices_per_node"), read_count);
  const std::int64_t devices = cluster.devices_per_node.value;
  if (const auto host = reader.find("devices_per_host")) {
    cluster.devices_per_host = read_sourced(*host, read_count);
    const std::int64_t of_host = cluster.devices_per_host->value;
    if (devices % of_host != 0 && of_host % devices != 0) {
      host->fail(fmt::format("hosts of {} do not make up a node of {}", of_host, devices));
    }
  }
  cluster.scale_up = read_scale_up(reader.at("scale_up"), devices);
  if (const auto out = reader.find("scale_out")) cluster.scale_out = read_scale_out(*out, devices);
  if (const auto nccl = reader.find("nccl")) cluster.nccl = read_nccl(*nccl);
  if (const auto rccl = reader.find("rccl")) {
    if (cluster.nccl) rccl->fail("stands beside \"nccl\": one of the two libraries runs");
    cluster.rccl = read_rccl(*rccl);
  }
  return cluster;
}

SliceRule read_slices(const JsonReader& reader) {
  reader.only_keys({"listed", "multiples_of", "largest"});
  SliceRule rule;
  for (const JsonReader& shape : reader.at("listed").elements()) {
    rule.listed.push_back(parse_shape(shape.string(), shape.place()));
    if (rule.listed.back().size() != rule.listed.front().size()) {
      shape.fail("has another number of dimensions than the shapes before it");
    }
  }
  if (rule.listed.empty()) reader.at("listed").fail("is empty, expected at least one shape");
  const std::size_t dimensions = rule.listed.front().size();
  if (dimensions > 3) reader.at("listed").fail("a torus has at most 3 dimensions");
  if (const auto multiple = reader.find("multiples_of")) {
    rule.multiple = multiple->integer(1, 1024);
    const JsonReader largest = reader.at("largest");
    rule.largest = parse_shape(largest.string(), largest.place());
    if (rule.largest.size() != dimensions)
      largest.fail("has another number of dimensions than \"listed\"");
    // make_machine looks through all of them.
    std::int64_t shapes = 1;
    for (const std::int64_t size : rule.largest) {
      shapes *= std::max<std::int64_t>(size / rule.multiple, 1);
      if (shapes > 1'000'000) largest.fail("allows more than a million shapes");
    }
  } else if (reader.find("largest")) {
    reader.fail("\"largest\" is given without \"multiples_of\"");
  }
  return rule;
}

WrapRule read_wrap(const JsonReader& value) {
  const std::string rule = value.choice({"axis_of_16", "axis_of_32", "multiples_of_4"});
  if (rule == "multiples_of_4") return WrapRule::multiples_of_4;
  return rule == "axis_of_16" ? WrapRule::axis_of_16 : WrapRule::axis_of_32;
}

std::vector<std::string> read_kinds(const JsonReader& value) {
  std::vector<std::string> kinds;
  for (const JsonReader& kind : value.elements()) {
    kinds.push_back(kind.choice({"all-gather", "reduce-scatter", "all-reduce", "all-to-all",
                                 "collective-permute", "broadcast"}));
  }
  return kinds;
}

ChipProfile read_chip(const JsonReader& reader) {
  reader.only_keys({"devices", "link"});
  const auto read_count = [](const JsonReader& value) {
    return value.integer(2, most_devices_per_chip);
  };
  return {read_sourced(reader.at("devices"), read_count), read_link(reader.at("link"))};
}

TorusProfile read_torus(const JsonReader& reader) {
  reader.only_keys({"link", "chip", "dcn", "slices", "wraparound", "synchronous"});
  TorusProfile torus;
  reader.at("link").only_keys({"bandwidth", "efficiency", "latency"});
  torus.link = read_link(reader.at("link"));
  if (const auto chip = reader.find("chip")) torus.chip = read_chip(*chip);
  if (const auto dcn = reader.find("dcn")) {
    dcn->only_keys({"bandwidth", "efficiency", "latency"});
    torus.dcn = read_link(*dcn);
  }
  torus.slices = read_sourced(reader.at("slices"), read_slices);
  torus.dimensions = static_cast<int>(torus.slices.value.listed.front().size());
  torus.wraparound = read_sourced(reader.at("wraparound"), read_wrap);
  if (const auto kinds = reader.find("synchronous")) {
    torus.synchronous = read_sourced(*kinds, read_kinds);
  }
  return torus;
}

}  // namespace

std::vector<std::int64_t> parse_shape(const std::string& text, const Place& place) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [next, status] = std::from_chars(at, end, size);
    const bool separated = next == end || *next == 'x';
    if (status != std::errc{} || size < 1 || size > most_counted || !separated) {
      throw InputError(place,
                       fmt::format("\"{}\" is not a shape, expected for example \"4x4x4\"", text));
    }
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

Profile read_profile(const Json& document, const std::string& file) {
  return read_profile(document, Place{file, ""});
}

Profile read_profile(const Json& document, const Place& place) {
  const std::string& file = place.file;
  const Json whole = extended(document, file);
  const JsonReader reader(whole, place);
  // What `calibrate` found in a sweep beside the profile is for people: "contention", "algorithms".
  reader.only_keys({"schema", "shardsim", "name", "title", "device", "collective_launch", "cluster",
                    "torus", "graph", "calibration", "contention", "algorithms"});
  (void)reader.at("schema").choice({"shardsim/profile/1"});
  Profile profile;
  profile.name = read_text(reader.at("name"));
  profile.title = read_text(reader.at("title"));
  profile.path = file;
  profile.device = read_device(reader.at("device"));
  profile.collective_launch = read_sourced(reader.at("collective_launch"), read_seconds);
  if (const auto calibration = reader.find("calibration")) {
    profile.calibrations = read_calibrations(*calibration);
  }
  const auto cluster = reader.find("cluster");
  const auto torus = reader.find("torus");
  const auto graph = reader.find("graph");
  if (int{cluster.has_value()} + int{torus.has_value()} + int{graph.has_value()} != 1) {
    reader.fail("expected exactly one of \"cluster\", \"torus\" and \"graph\"");
  }
  if (cluster) {
    profile.network = read_cluster(*cluster);
  } else if (graph) {
    NetworkDescription network;
    network.text = graph->json().dump();
    network.kind = NetworkKind::graph;
    network.graph = read_graph(*graph);
    profile.network = std::move(network);
  } else {
    profile.network = read_torus(*torus);
  }
  return profile;
}

}  // namespace shardsim
