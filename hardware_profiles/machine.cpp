#include "hardware_profiles/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

using Shape = std::vector<std::int64_t>;

// A shape beyond what 64 bits count holds more devices than any slice.
std::int64_t devices_of(const Shape& shape) {
  std::int64_t devices = 1;
  for (const std::int64_t size : shape) {
    if (devices > std::numeric_limits<std::int64_t>::max() / size) {
      return std::numeric_limits<std::int64_t>::max();
    }
    devices *= size;
  }
  return devices;
}

// Appends every shape that continues `prefix` in ascending order with multiples up to the limits.
void add_multiples(const SliceRule& rule, Shape& prefix, std::vector<Shape>& shapes) {
  if (prefix.size() == rule.largest.size()) {
    shapes.push_back(prefix);
    return;
  }
  const std::int64_t first = prefix.empty() ? rule.multiple : prefix.back();
  for (std::int64_t size = first; size <= rule.largest[prefix.size()]; size += rule.multiple) {
    prefix.push_back(size);
    add_multiples(rule, prefix, shapes);
    prefix.pop_back();
  }
}

// By devices, then most cubic first: shortest longest side, then longest shortest side.
bool comes_before(const Shape& a, const Shape& b) {
  const auto key = [](const Shape& shape) {
    const auto [shortest, longest] = std::minmax_element(shape.begin(), shape.end());
    return std::tuple(devices_of(shape), *longest, -*shortest, shape);
  };
  return key(a) < key(b);
}

std::vector<Shape> legal_slices(const SliceRule& rule) {
  std::vector<Shape> shapes = rule.listed;
  if (rule.multiple > 0) {
    Shape prefix;
    add_multiples(rule, prefix, shapes);
  }
  std::sort(shapes.begin(), shapes.end(), comes_before);
  return shapes;
}

std::vector<bool> wraps_of(const Shape& shape, WrapRule rule) {
  if (rule == WrapRule::multiples_of_4) {
    const bool all =
        std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size % 4 == 0; });
    return std::vector<bool>(shape.size(), all);
  }
  std::vector<bool> wraps;
  const std::int64_t pod = rule == WrapRule::axis_of_16 ? 16 : 32;
  for (const std::int64_t size : shape) wraps.push_back(size == pod);
  return wraps;
}

// "64 (4x4x4) and 128 (4x4x8)": devices of the legal slices next to `chips`, of which there is
// none.
std::string nearest_slices(const std::vector<Shape>& legal, std::int64_t chips,
                           std::int64_t per_chip) {
  const auto above = std::find_if(legal.begin(), legal.end(),
                                  [&](const Shape& shape) { return devices_of(shape) > chips; });
  std::vector<std::string> near;
  const auto add = [&](const Shape& shape) {
    near.push_back(fmt::format("{} ({})", devices_of(shape) * per_chip, shape_text(shape)));
  };
  if (above != legal.begin()) {
    const std::int64_t below = devices_of(*(above - 1));
    add(*std::find_if(legal.begin(), above,
                      [&](const Shape& s) { return devices_of(s) == below; }));
  }
  if (above != legal.end()) add(*above);
  return fmt::format("{}", fmt::join(near, " and "));
}

// `shape` was asked for by name and is not legal: the same sides in legal order, else the slices of
// as many devices, else those next to it.
[[noreturn]] void fail_shape(const Profile& profile, const std::vector<Shape>& legal,
                             const Shape& shape, std::int64_t per_chip, const Place& place) {
  const std::string message = fmt::format("{} has no slice {}", profile.name, shape_text(shape));
  std::vector<std::string> same_count;
  for (const Shape& candidate : legal) {
    if (std::is_permutation(candidate.begin(), candidate.end(), shape.begin(), shape.end())) {
      throw InputError(place, message, shape_text(candidate));
    }
    if (devices_of(candidate) == devices_of(shape)) same_count.push_back(shape_text(candidate));
  }
  if (!same_count.empty()) {
    throw InputError(place, fmt::format("{}; of {} devices it has {}", message,
                                        devices_of(shape) * per_chip, fmt::join(same_count, ", ")));
  }
  throw InputError(place, fmt::format("{}; the nearest are of {} devices", message,
                                      nearest_slices(legal, devices_of(shape), per_chip)));
}

enum class Closing : std::uint8_t { by_rule, open, closed, twisted };

struct Topology {
  Shape shape;
  Closing closing = Closing::by_rule;
};

// "4x4x8", "4x4x8_twisted"
Topology parse_topology(const std::string& text, const Place& place) {
  const std::size_t bar = text.find('_');
  if (bar == std::string::npos) return {parse_shape(text, place), Closing::by_rule};
  Topology topology{parse_shape(text.substr(0, bar), place), Closing::by_rule};
  const std::string option = text.substr(bar + 1);
  const std::vector<std::string> options = {"open", "closed", "twisted"};
  const auto found = std::find(options.begin(), options.end(), option);
  if (found == options.end()) {
    throw InputError(
        place,
        fmt::format("unknown \"{}\" behind a shape; known are open, closed, twisted", option),
        closest(option, options));
  }
  topology.closing = static_cast<Closing>(found - options.begin() + 1);
  return topology;
}

// k k 2k or k 2k 2k, in any order.
bool can_twist(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape.size() == 3 && shape[2] == 2 * shape[0] &&
         (shape[1] == shape[0] || shape[1] == shape[2]);
}

std::string_view explain(WrapRule rule) {
  switch (rule) {
    case WrapRule::axis_of_16:
      return "a dimension closes where it has 16 chips";
    case WrapRule::axis_of_32:
      return "a dimension closes where it has 32 chips";
    case WrapRule::multiples_of_4:
      break;
  }
  return "all dimensions close where all are multiples of 4";
}

// Closes the slice as the topology says.
TorusShape close_slice(const Profile& profile, const TorusProfile& torus, const Topology& topology,
                       std::int64_t per_chip, const Place& place) {
  const WrapRule rule = torus.wraparound.value;
  TorusShape shape{topology.shape, wraps_of(topology.shape, rule), per_chip, /*twisted=*/false};
  const bool all = std::find(shape.wraps.begin(), shape.wraps.end(), false) == shape.wraps.end();
  if (topology.closing == Closing::open) shape.wraps.assign(shape.sizes.size(), false);
  shape.twisted = topology.closing == Closing::twisted;
  const bool asks_for_all = topology.closing == Closing::closed || shape.twisted;
  if (asks_for_all && !all) {
    throw InputError(place, fmt::format("{} cannot close all dimensions of {}: {}", profile.name,
                                        shape_text(shape.sizes), explain(rule)));
  }
  if (shape.twisted && !can_twist(shape.sizes)) {
    throw InputError(place, fmt::format("{} cannot be twisted: twisted tori are k x k x 2k or "
                                        "k x 2k x 2k, as 4x4x8 and 4x8x8",
                                        shape_text(shape.sizes)));
  }
  return shape;
}

TorusShape choose_slice(const Profile& profile, const TorusProfile& torus, std::int64_t devices,
                        const std::optional<std::string>& text, const Place& place) {
  const std::vector<Shape> legal = legal_slices(torus.slices.value);
  const std::int64_t per_chip = devices_per_chip(torus);
  const auto holds = [&](const Shape& candidate) {
    return devices % per_chip == 0 && devices_of(candidate) == devices / per_chip;
  };
  Topology topology;
  if (text) {
    topology = parse_topology(*text, place);
    if (std::find(legal.begin(), legal.end(), topology.shape) == legal.end()) {
      fail_shape(profile, legal, topology.shape, per_chip, place);
    }
    if (!holds(topology.shape)) {
      throw InputError(place, fmt::format("topology {} has {} devices, but the mesh has {}", *text,
                                          devices_of(topology.shape) * per_chip, devices));
    }
  } else {
    const auto found = std::find_if(legal.begin(), legal.end(), holds);
    if (found == legal.end()) {
      throw InputError(
          place, fmt::format("{} has no slice of {} devices; the nearest are of {}", profile.name,
                             devices, nearest_slices(legal, devices / per_chip, per_chip)));
    }
    topology.shape = *found;
  }
  return close_slice(profile, torus, topology, per_chip, place);
}

void check_slices(const Profile& profile, std::int64_t devices, std::int64_t slices,
                  const Place& place) {
  if (slices == 1) return;
  const auto* torus = std::get_if<TorusProfile>(&profile.network);
  if (torus == nullptr) {
    throw InputError(place, fmt::format("{} slices: only TPUs come in slices, {} does not", slices,
                                        profile.name));
  }
  if (!torus->dcn) {
    throw InputError(place, fmt::format("{} slices of {}, whose profile has no network \"dcn\" "
                                        "between slices",
                                        slices, profile.name));
  }
  if (devices % slices != 0) {
    throw InputError(place, fmt::format("{} devices do not fill {} slices", devices, slices));
  }
}

// Racks that are one domain are used in whole hosts where the devices do not fill them: 256 devices
// of gb200-nvl72 are four domains of 64 of their 72.
void use_whole_hosts(ClusterProfile& cluster, std::int64_t devices) {
  const std::int64_t per_node = cluster.devices_per_node.value;
  const std::int64_t per_host = devices_per_host(cluster);
  if (devices <= per_node || devices % per_node == 0) return;
  for (std::int64_t used = per_node - per_host; used > per_host; used -= per_host) {
    if (devices % used != 0) continue;
    cluster.devices_per_node.value = used;
    cluster.devices_per_node.source.note = fmt::format(
        "{} of {}, in whole hosts, as {} devices do not fill more", used, per_node, devices);
    return;
  }
}

std::int64_t count_nodes(const Profile& profile, const ClusterProfile& cluster,
                         std::int64_t devices, const Place& place) {
  const std::int64_t per_node = cluster.devices_per_node.value;
  check_network_between_nodes(profile, devices, place);
  const std::int64_t full = devices / per_node;
  if (devices > per_node && devices % per_node != 0) {
    throw InputError(
        place,
        fmt::format("{} devices do not fill nodes of {} of {}; the nearest that do "
                    "are {} and {}",
                    devices, per_node, profile.name, full * per_node, (full + 1) * per_node));
  }
  return std::max<std::int64_t>(full, 1);
}

}  // namespace

std::int64_t devices_per_host(const ClusterProfile& cluster) {
  return (cluster.devices_per_host ? *cluster.devices_per_host : cluster.devices_per_node).value;
}

namespace {

// Of half a cube mesh a device has no use for the links to the other half.
Bandwidth bandwidth_to_node(const ClusterProfile& cluster) {
  const Bandwidth all = cluster.scale_up.bandwidth.value;
  if (cluster.scale_up.fabric.value != Fabric::cube_mesh) return all;
  const auto& links = cube_mesh_links[0];
  const auto devices = static_cast<std::ptrdiff_t>(cluster.devices_per_node.value);
  const int used = std::accumulate(links.begin(), links.begin() + devices, 0);
  return all * (used / double{cube_mesh_links_of_a_device});
}

}  // namespace

Bandwidth bandwidth_inside(const ClusterProfile& cluster, std::int64_t members) {
  const Bandwidth all = bandwidth_to_node(cluster);
  const std::int64_t devices = cluster.devices_per_node.value;
  if (!is_direct(cluster.scale_up.fabric.value) || members < 2 || members >= devices) return all;
  return all * (static_cast<double>(members - 1) / static_cast<double>(devices - 1));
}

WaysOut ways_out(const ClusterProfile& cluster) {
  const std::int64_t nics = cluster.scale_out->nics_per_node.value;
  const std::int64_t ways = std::min(nics, cluster.devices_per_node.value);
  const std::int64_t nics_per_way = nics / ways;
  return {ways, cluster.scale_out->bandwidth.value * static_cast<double>(nics_per_way)};
}

std::int64_t way_of(std::int64_t device, const ClusterProfile& cluster) {
  const std::int64_t devices_per_way = cluster.devices_per_node.value / ways_out(cluster).per_node;
  return device / devices_per_way;
}

std::int64_t devices_per_chip(const TorusProfile& torus) {
  return torus.chip ? torus.chip->devices.value : 1;
}

std::int64_t largest_slice(const TorusProfile& torus, std::int64_t most) {
  const std::int64_t per_chip = devices_per_chip(torus);
  std::int64_t largest = 0;
  for (const Shape& shape : legal_slices(torus.slices.value)) {
    const std::int64_t chips = devices_of(shape);
    if (chips <= most / per_chip) largest = std::max(largest, chips * per_chip);
  }
  return largest;
}

void check_network_between_nodes(const Profile& profile, std::int64_t devices, const Place& place) {
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  if (cluster.scale_out || devices <= cluster.devices_per_node.value) return;
  throw InputError(place, fmt::format("{} devices need several nodes of {}, whose profile has one "
                                      "of {} and no \"scale_out\" network between nodes",
                                      devices, profile.name, cluster.devices_per_node.value));
}

std::string TorusShape::text() const { return shape_text(sizes) + (twisted ? "_twisted" : ""); }

bool TorusShape::twists(std::size_t dimension) const {
  return twisted && sizes[dimension] == *std::min_element(sizes.begin(), sizes.end());
}

std::string Machine::topology() const {
  return slices == 1 ? torus->text() : fmt::format("{} slices of {}", slices, torus->text());
}

std::vector<std::int64_t> TorusShape::device_sizes() const {
  std::vector<std::int64_t> all = sizes;
  if (devices_per_chip > 1) all.push_back(devices_per_chip);
  return all;
}

Machine make_machine(const Profile& profile, std::int64_t devices,
                     const std::optional<std::string>& topology, const Place& place,
                     std::int64_t slices) {
  if (devices < 1)
    throw InputError(place, fmt::format("{} devices: at least 1 is needed", devices));
  check_slices(profile, devices, slices, place);
  Machine machine{profile, devices, /*nodes=*/1, /*torus=*/std::nullopt};
  if (auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network)) {
    if (topology) {
      throw InputError(place, fmt::format("topology {} is given, but {} is a cluster and has none",
                                          *topology, profile.name));
    }
    use_whole_hosts(*cluster, devices);
    machine.nodes = count_nodes(profile, *cluster, devices, place);
  } else if (const auto* network = std::get_if<NetworkDescription>(&profile.network)) {
    if (topology) {
      throw InputError(place,
                       fmt::format("topology {} is given beside {}", *topology, profile.name));
    }
    check_devices(*network, devices, place);
  } else {
    machine.slices = slices;
    machine.torus = choose_slice(profile, std::get<TorusProfile>(profile.network), devices / slices,
                                 topology, place);
  }
  return machine;
}

}  // namespace shardsim
