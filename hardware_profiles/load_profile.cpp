#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "hardware_profiles/embedded_profiles.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const EmbeddedFile& profile : embedded_profiles()) names.emplace_back(profile.name);
  return names;
}

namespace {

struct DeviceName {
  std::string_view device;
  std::string_view profile;
};
constexpr std::array device_names = {
    DeviceName{"a100", "dgx-a100"},     DeviceName{"b200", "dgx-b200"},
    DeviceName{"b300", "dgx-b300"},     DeviceName{"gb200", "gb200-nvl72"},
    DeviceName{"gb300", "gb300-nvl72"}, DeviceName{"gh200", "alps"},
    DeviceName{"h100", "dgx-h100"},     DeviceName{"h200", "dgx-h200"},
    DeviceName{"l40s", "pcie-l40s"},    DeviceName{"mi300x", "mi300x"},
    DeviceName{"v100", "dgx-1v"},
};

// The device of a profile by the profile's name, or by its own: h100, v5p.
DeviceProfile device_of(const std::string& name, const Place& place) {
  if (name.empty()) return {};
  std::vector<std::string> known;
  for (const DeviceName& short_name : device_names) {
    if (name == short_name.device) {
      return load_profile(std::string(short_name.profile), place).device;
    }
    known.emplace_back(short_name.device);
  }
  constexpr std::string_view tpu = "tpu-";
  for (const std::string& profile : shipped_profiles()) {
    const std::string chip = profile.starts_with(tpu) ? profile.substr(tpu.size()) : profile;
    if (name == profile || name == chip) return load_profile(profile, place).device;
    if (chip != profile) known.push_back(chip);
  }
  throw InputError(place,
                   fmt::format("unknown device \"{}\"; known are {}", name, fmt::join(known, ", ")),
                   closest(name, known));
}

Profile network_profile(const std::string& text, const Place& place) {
  NetworkDescription network = parse_network(text, place);
  Profile profile;
  profile.name = text;
  profile.title = "a network written in place";
  profile.path = place.file;
  profile.device = device_of(network.device, place);
  profile.network = std::move(network);
  return profile;
}

}  // namespace

Profile load_profile(const std::string& name, const Place& place) {
  if (is_network_text(name)) return network_profile(name, place);
  if (name.ends_with(".json")) return read_profile(load_json(name, FileKind::profile), name);
  for (const EmbeddedFile& shipped : embedded_profiles()) {
    if (shipped.name != name) continue;
    Profile profile = read_profile(parse_json(shipped.text, name), name);
    profile.path = "built in";
    return profile;
  }
  const std::vector<std::string> known = shipped_profiles();
  const std::string suggestion = closest(name, known);
  if (!suggestion.empty()) {
    throw InputError(place, fmt::format("unknown machine \"{}\"", name), suggestion);
  }
  throw InputError(
      place, fmt::format("unknown machine \"{}\"; known are {}, or a path ending in .json", name,
                         fmt::join(known, ", ")));
}

}  // namespace shardsim
