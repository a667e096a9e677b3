#include "hardware_profiles/profile_io.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <span>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "hardware_profiles/sourced_reader.hpp"

namespace shardsim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array byte_units{
    Unit{"GB", 1e9},          Unit{"GiB", double{GiB}}, Unit{"TB", 1e12},         Unit{"MB", 1e6},
    Unit{"MiB", double{MiB}}, Unit{"kB", 1e3},          Unit{"KiB", double{KiB}}, Unit{"B", 1}};
constexpr std::array rate_units{Unit{"TB/s", 1e12}, Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6},
                                Unit{"kB/s", 1e3}, Unit{"B/s", 1}};
constexpr std::array flop_units{Unit{"TFLOP/s", 1e12}, Unit{"GFLOP/s", 1e9}, Unit{"FLOP/s", 1}};
constexpr std::array time_units{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9},
                                Unit{"ps", 1e-12}};
constexpr std::array power_units{Unit{"W", 1}};
constexpr std::array energy_units{Unit{"J", 1}, Unit{"pJ", 1e-12}};

// The shortest text with a unit, of which there is one at least or which is the smallest, that
// parses back to exactly `value`, or nothing; among equals the unit listed first. `parse` is the
// parser of this kind of quantity, which `value` comes from.
template <class Quantity>
std::string shortest_text(Quantity value, std::span<const Unit> units, bool any_unit,
                          Quantity (*parse)(std::string_view, const Place&)) {
  std::string best;
  for (const Unit& unit : units) {
    const double scaled = static_cast<double>(value.count()) / unit.factor;
    if (scaled < 1 && !any_unit && &unit != &units.back()) continue;
    // Few digits first: dividing and multiplying by the unit may differ in the last bit.
    for (int digits = 1; digits <= 17; ++digits) {
      const std::string short_text = fmt::format("{:.{}g}", scaled, digits);
      double rounded = 0;
      std::from_chars(short_text.data(), short_text.data() + short_text.size(), rounded);
      const std::string text = fmt::format("{} {}", rounded, unit.name);
      if (parse(text, {}) != value) continue;
      if (best.empty() || text.size() < best.size()) best = text;
      break;
    }
  }
  return best;
}

// In a smaller unit no number of double precision may come to `value`: 0.001027 us is no number of
// ps. In the unit with the factor 1 its own does.
template <class Quantity>
std::string exact_text(Quantity value, std::span<const Unit> units,
                       Quantity (*parse)(std::string_view, const Place&)) {
  if (value == Quantity{}) return fmt::format("0 {}", units.front().name);
  std::string text = shortest_text(value, units, /*any_unit=*/false, parse);
  if (text.empty()) text = shortest_text(value, units, /*any_unit=*/true, parse);
  assert(!text.empty());
  return text;
}

Json value_json(Bytes value) { return exact_text(value, byte_units, parse_bytes); }
Json value_json(Bandwidth value) { return exact_text(value, rate_units, parse_bandwidth); }
Json value_json(FlopRate value) { return exact_text(value, flop_units, parse_flop_rate); }
Json value_json(Seconds value) { return exact_text(value, time_units, parse_seconds); }
Json value_json(Power value) { return exact_text(value, power_units, parse_power); }
Json value_json(Energy value) { return exact_text(value, energy_units, parse_energy); }
Json value_json(double value) { return value; }
Json value_json(bool value) { return value; }
Json value_json(std::int64_t value) { return value; }
Json value_json(const std::vector<std::string>& value) { return value; }
Json value_json(WrapRule value) { return name_of(value); }
Json value_json(Fabric value) { return name_of(value); }
Json value_json(HostCpu value) { return name_of(value); }
Json value_json(AmdArchitecture architecture) { return name_of(architecture); }
Json value_json(const SliceRule& rule) {
  Json json{{"listed", Json::array()}};
  for (const auto& shape : rule.listed) json["listed"].push_back(shape_text(shape));
  if (rule.multiple > 0) {
    json["multiples_of"] = rule.multiple;
    json["largest"] = shape_text(rule.largest);
  }
  return json;
}

template <class T>
Json number_json(const Sourced<T>& number) {
  Json json{{"value", value_json(number.value)}, {"kind", number.source.kind}};
  if (number.source.kind != assumed_kind) {
    json["date"] = number.source.date;
    json["source"] = number.source.reference;
  }
  if (!number.source.note.empty()) json["note"] = number.source.note;
  return json;
}

Json nccl_json(const NcclProfile& nccl) {
  Json json{{"compute_capability", number_json(nccl.compute_capability)}};
  if (nccl.nvlink_bandwidth) json["nvlink_bandwidth"] = number_json(*nccl.nvlink_bandwidth);
  json["pcie_generation"] = number_json(nccl.pcie_generation);
  json["gpus_per_pcie_switch"] = number_json(nccl.gpus_per_pcie_switch);
  json["cpu"] = number_json(nccl.cpu);
  if (nccl.network_latency) json["network_latency"] = number_json(*nccl.network_latency);
  if (nccl.unpacks_on_gpu) json["unpacks_on_gpu"] = number_json(*nccl.unpacks_on_gpu);
  return json;
}

Json rccl_json(const RcclProfile& rccl) {
  return {{"architecture", number_json(rccl.architecture)},
          {"link_bandwidth", number_json(rccl.link_bandwidth)},
          {"pcie_generation", number_json(rccl.pcie_generation)},
          {"cpu", number_json(rccl.cpu)}};
}

Json link_json(const LinkProfile& link) {
  return {{"bandwidth", number_json(link.bandwidth)},
          {"efficiency", number_json(link.efficiency)},
          {"latency", number_json(link.latency)}};
}

Json tier_json(const SwitchTier& tier) {
  return {{"nodes", number_json(tier.nodes)},
          {"oversubscription", number_json(tier.oversubscription)}};
}

Json switches_json(const SwitchProfile& switches) {
  Json json{{"rails", number_json(switches.rails)}, {"leaf", tier_json(switches.leaf)}};
  if (switches.spine) json["spine"] = tier_json(*switches.spine);
  return json;
}

Json reduction_json(const ReductionProfile& reduction) {
  Json json{{"efficiency", number_json(reduction.efficiency)}};
  if (reduction.all_gather) json["all_gather"] = number_json(*reduction.all_gather);
  if (reduction.reduce_scatter) json["reduce_scatter"] = number_json(*reduction.reduce_scatter);
  return json;
}

Json cluster_json(const ClusterProfile& cluster) {
  Json json{{"devices_per_node", number_json(cluster.devices_per_node)}};
  if (cluster.devices_per_host) json["devices_per_host"] = number_json(*cluster.devices_per_host);
  json["scale_up"] = {{"fabric", number_json(cluster.scale_up.fabric)}};
  json["scale_up"].update(link_json(cluster.scale_up));
  if (cluster.scale_out) {
    json["scale_out"] = {{"nics_per_node", number_json(cluster.scale_out->nics_per_node)}};
    json["scale_out"].update(link_json(*cluster.scale_out));
    if (cluster.scale_out->switches) {
      json["scale_out"]["switches"] = switches_json(*cluster.scale_out->switches);
    }
    if (cluster.scale_out->reduction) {
      json["scale_out"]["reduction"] = reduction_json(*cluster.scale_out->reduction);
    }
  }
  if (cluster.nccl) json["nccl"] = nccl_json(*cluster.nccl);
  if (cluster.rccl) json["rccl"] = rccl_json(*cluster.rccl);
  return json;
}

Json surfaces_json(const EfficiencySurfaces& surfaces) {
  Json json = Json::object();
  for (const auto& [dtype, surface] : surfaces) {
    Json& of_type = json[std::string(name_of(dtype))];
    of_type["efficiency"] = number_json(surface.efficiency);
    if (surface.depth) of_type["depth"] = number_json(*surface.depth);
    if (surface.side) of_type["side"] = number_json(*surface.side);
    if (surface.overhead) of_type["overhead"] = number_json(*surface.overhead);
  }
  return json;
}

Json host_link_json(const HostLinkProfile& link) {
  Json json = link_json(link);
  if (link.devices) json["devices"] = number_json(*link.devices);
  if (link.full_duplex) json["full_duplex"] = number_json(*link.full_duplex);
  return json;
}

Json power_json(const PowerProfile& power) {
  Json json{{"limit", number_json(power.limit)}, {"idle", number_json(power.idle)}};
  for (const auto& [dtype, energy] : power.per_flop) {
    json["per_flop"][std::string(name_of(dtype))] = number_json(energy);
  }
  json["moving"] = number_json(power.moving);
  if (power.spread) json["spread"] = number_json(*power.spread);
  return json;
}

Json device_json(const DeviceProfile& device) {
  Json peak = Json::object();
  for (const auto& [dtype, rate] : device.peak)
    peak[std::string(name_of(dtype))] = number_json(rate);
  Json json{{"name", device.name},
            {"memory_capacity", number_json(device.memory_capacity)},
            {"memory_bandwidth", number_json(device.memory_bandwidth)},
            {"peak", std::move(peak)},
            {"matmul_efficiency", number_json(device.matmul_efficiency)},
            {"attention_efficiency", number_json(device.attention_efficiency)},
            {"memory_efficiency", number_json(device.memory_efficiency)}};
  const auto add = [&](const char* kernel_class, const EfficiencySurfaces& surfaces) {
    if (!surfaces.empty()) json["surfaces"][kernel_class] = surfaces_json(surfaces);
  };
  add("matmul", device.matmul_surfaces);
  add("attention", device.attention_surfaces);
  add("attention_backward", device.attention_backward_surfaces);
  json["kernel_launch"] = number_json(device.kernel_launch);
  for (const auto& [stack, time] : device.host_launch) {
    json["host_launch"][stack] = number_json(time);
  }
  for (const auto& [stack, bytes] : device.workspaces) {
    json["workspaces"][stack] = number_json(bytes);
  }
  if (device.sms) json["sms"] = number_json(*device.sms);
  if (device.sms_per_block) json["sms_per_block"] = number_json(*device.sms_per_block);
  if (device.matrix_unit) json["matrix_unit"] = number_json(*device.matrix_unit);
  if (device.host_link) json["host_link"] = host_link_json(*device.host_link);
  if (device.host_memory) {
    json["host_memory"] = {{"bandwidth", number_json(device.host_memory->bandwidth)},
                           {"efficiency", number_json(device.host_memory->efficiency)}};
    if (device.host_memory->capacity) {
      json["host_memory"]["capacity"] = number_json(*device.host_memory->capacity);
    }
  }
  if (device.kernels) json["kernels"] = device.kernels->name;
  if (device.power) json["power"] = power_json(*device.power);
  if (device.power_limit) json["power_limit"] = number_json(*device.power_limit);
  return json;
}

}  // namespace

std::string_view name_of(Fabric fabric) {
  switch (fabric) {
    case Fabric::nvswitch:
      return "nvswitch";
    case Fabric::nvlink:
      return "nvlink";
    case Fabric::cube_mesh:
      return "cube_mesh";
    case Fabric::xgmi:
      return "xgmi";
    case Fabric::pcie:
      return "pcie";
  }
  assert(false);
  return {};
}

std::string_view name_of(HostCpu cpu) {
  switch (cpu) {
    case HostCpu::intel:
      return "intel";
    case HostCpu::amd:
      return "amd";
    case HostCpu::arm:
      return "arm";
    case HostCpu::power:
      return "power";
  }
  assert(false);
  return {};
}

std::string_view name_of(AmdArchitecture architecture) {
  switch (architecture) {
    case AmdArchitecture::gfx942:
      return "gfx942";
  }
  assert(false);
  return {};
}

std::string_view name_of(WrapRule rule) {
  if (rule == WrapRule::multiples_of_4) return "multiples_of_4";
  return rule == WrapRule::axis_of_16 ? "axis_of_16" : "axis_of_32";
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  return fmt::format("{}", fmt::join(sizes, "x"));
}

Json profile_to_json(const Profile& profile) {
  Json json{{"schema", "shardsim/profile/1"},
            {"shardsim", program_version},
            {"name", profile.name},
            {"title", profile.title},
            {"device", device_json(profile.device)},
            {"collective_launch", number_json(profile.collective_launch)}};
  for (const Calibration& calibration : profile.calibrations) {
    // Refitted under the name of a shipped one it is another.
    const bool is_same =
        is_shipped(calibration) && calibration_to_json(calibration) ==
                                       calibration_to_json(load_calibration(calibration.name, {}));
    json["calibration"].push_back(is_same ? Json(calibration.name)
                                          : calibration_to_json(calibration));
  }
  if (const auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    json["cluster"] = cluster_json(*cluster);
  } else if (const auto* network = std::get_if<NetworkDescription>(&profile.network)) {
    if (network->graph) {
      json["graph"] = parse_json(network->text, profile.path);
    } else {
      json["network"] = network->text;
    }
  } else {
    const auto& torus = std::get<TorusProfile>(profile.network);
    json["torus"] = {{"link", link_json(torus.link)}};
    if (torus.chip) {
      json["torus"]["chip"] = {{"devices", number_json(torus.chip->devices)},
                               {"link", link_json(torus.chip->link)}};
    }
    if (torus.dcn) json["torus"]["dcn"] = link_json(*torus.dcn);
    json["torus"]["slices"] = number_json(torus.slices);
    json["torus"]["wraparound"] = number_json(torus.wraparound);
    if (torus.synchronous) json["torus"]["synchronous"] = number_json(*torus.synchronous);
  }
  return json;
}

}  // namespace shardsim
