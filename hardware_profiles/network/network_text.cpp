#include "hardware_profiles/network/network_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

struct Kind {
  const char* name;
  NetworkKind kind;
  std::size_t fewest_sizes;  // in its shape
  std::size_t most_sizes;
  const char* key;  // besides bandwidth, latency and device; "" for none
};

constexpr std::size_t any_number = 8;

constexpr auto kinds = std::to_array<Kind>({
    {"ring", NetworkKind::ring, 0, 1, ""},
    {"torus", NetworkKind::torus, 1, any_number, "wrap"},
    {"full", NetworkKind::full, 0, 1, ""},
    {"switch", NetworkKind::switched, 0, 1, ""},
    {"fat-tree", NetworkKind::fat_tree, 1, any_number, "oversubscription"},
    {"dragonfly", NetworkKind::dragonfly, 3, 3, ""},
});

// "ring(a, b=c)" as "ring", {"a"}, {{"b", "c"}}.
struct Call {
  std::string name;
  std::string shape;
  std::map<std::string, std::string> keys;
};

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

Call read_call(const std::string& text, const Place& place) {
  const std::size_t open = text.find('(');
  if (text.back() != ')')
    throw InputError(place, fmt::format("\"{}\": expected \")\" at the end", text));
  const std::string_view whole = text;
  Call call{trimmed(whole.substr(0, open)), "", {}};
  std::string_view rest = whole.substr(open + 1, whole.size() - open - 2);
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view argument = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = argument.find('=');
    if (equals == std::string_view::npos) {
      if (!is_first) {
        throw InputError(place, fmt::format("\"{}\": expected key=value", trimmed(argument)));
      }
      call.shape = trimmed(argument);
      continue;
    }
    const std::string key = trimmed(argument.substr(0, equals));
    if (!call.keys.emplace(key, trimmed(argument.substr(equals + 1))).second) {
      throw InputError(place, fmt::format("\"{}\" is given twice", key));
    }
  }
  return call;
}

const Kind& kind_of(const Call& call, const Place& place) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (call.name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  throw InputError(
      place, fmt::format("unknown network \"{}\"; known are {}", call.name, fmt::join(names, ", ")),
      closest(call.name, names));
}

void check_keys(const Call& call, const Kind& kind, const Place& place) {
  std::vector<std::string> known{"bandwidth", "latency", "device"};
  if (*kind.key != '\0') known.emplace_back(kind.key);
  for (const auto& [key, value] : call.keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw InputError(place, fmt::format("unknown key \"{}\" of {}", key, kind.name),
                     closest(key, known));
  }
  for (const char* key : {"bandwidth", "latency"}) {
    if (call.keys.find(key) == call.keys.end()) {
      throw InputError(place, fmt::format("{} has no {}: {}=...", kind.name, key, key));
    }
  }
}

bool yes_or_no(const std::string& text, const Place& place) {
  if (text != "yes" && text != "no") {
    throw InputError(place, fmt::format("wrap is yes or no, not \"{}\"", text));
  }
  return text == "yes";
}

// One number for all tiers, or one for each.
std::vector<std::int64_t> read_oversubscription(const std::string& text, std::size_t tiers,
                                                const Place& place) {
  std::vector<std::int64_t> ratios = parse_shape(text, place);
  if (ratios.size() == 1) ratios.resize(tiers, ratios.front());
  if (ratios.size() != tiers) {
    throw InputError(place, fmt::format("{} oversubscriptions for {}", ratios.size(),
                                        counted(static_cast<std::int64_t>(tiers), "tier")));
  }
  return ratios;
}

}  // namespace

bool is_network_text(const std::string& text) { return text.find('(') != std::string::npos; }

NetworkDescription parse_network(const std::string& text, const Place& place) {
  const Call call = read_call(text, place);
  const Kind& kind = kind_of(call, place);
  check_keys(call, kind, place);
  NetworkDescription result;
  result.text = text;
  result.kind = kind.kind;
  if (!call.shape.empty()) result.shape = parse_shape(call.shape, place);
  if (result.shape.size() < kind.fewest_sizes || result.shape.size() > kind.most_sizes) {
    throw InputError(
        place, fmt::format("{} with {}: {} are needed", kind.name,
                           counted(static_cast<std::int64_t>(result.shape.size()), "size"),
                           kind.fewest_sizes == kind.most_sizes
                               ? fmt::format("{}", kind.most_sizes)
                               : fmt::format("{} to {}", kind.fewest_sizes, kind.most_sizes)));
  }
  result.wire = {parse_bandwidth(call.keys.at("bandwidth"), place),
                 parse_seconds(call.keys.at("latency"), place)};
  if (result.wire.bandwidth == Bandwidth(0)) throw InputError(place, "a bandwidth of zero");
  if (const auto device = call.keys.find("device"); device != call.keys.end()) {
    result.device = device->second;
  }
  if (const auto wrap = call.keys.find("wrap"); wrap != call.keys.end()) {
    result.wraps = yes_or_no(wrap->second, place);
  }
  if (kind.kind == NetworkKind::fat_tree) {
    const std::size_t tiers = result.shape.size() - 1;
    const auto given = call.keys.find("oversubscription");
    result.oversubscription = given == call.keys.end()
                                  ? std::vector<std::int64_t>(tiers, 1)
                                  : read_oversubscription(given->second, tiers, place);
  }
  return result;
}

std::optional<std::int64_t> devices_of(const NetworkDescription& description, const Place& place) {
  if (description.graph) return description.graph->devices;
  if (description.shape.empty()) return std::nullopt;
  std::vector<std::int64_t> sizes = description.shape;
  if (description.kind == NetworkKind::dragonfly) {
    const std::int64_t ports = checked_nodes({sizes[0], sizes[2]}, place);
    sizes = {ports + 1, sizes[0], sizes[1]};
  }
  return checked_nodes(sizes, place);
}

void check_devices(const NetworkDescription& description, std::int64_t devices,
                   const Place& place) {
  const std::optional<std::int64_t> own = devices_of(description, place);
  if (!own || *own == devices) return;
  throw InputError(place,
                   fmt::format("the network has {}, not {}", counted(*own, "device"), devices));
}

NetworkGraph build(const NetworkDescription& description, std::int64_t devices,
                   const Place& place) {
  check_devices(description, devices, place);
  switch (description.kind) {
    case NetworkKind::ring:
      return ring(devices, description.wire, place);
    case NetworkKind::torus:
      return torus(description.shape,
                   std::vector<bool>(description.shape.size(), description.wraps), description.wire,
                   place);
    case NetworkKind::full:
      return full(devices, description.wire, place);
    case NetworkKind::switched:
      return switched(devices, description.wire, place);
    case NetworkKind::fat_tree:
      return fat_tree(description.shape, description.oversubscription, description.wire, place);
    case NetworkKind::graph:
      return build(*description.graph, place);
    case NetworkKind::dragonfly:
      break;
  }
  return dragonfly({description.shape[0], description.shape[1], description.shape[2]},
                   description.wire, place);
}

RouteChoice route_choice(NetworkKind kind) {
  const bool has_spines = kind == NetworkKind::fat_tree || kind == NetworkKind::graph;
  return has_spines ? RouteChoice::by_destination : RouteChoice::first;
}

}  // namespace shardsim
