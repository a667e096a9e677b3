#include <fmt/format.h>
#include <fmt/ranges.h>

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

// The device of a profile by the profile's name, or by what is behind its last "-": h100, v5p.
DeviceProfile device_of(const std::string& name, const Place& place) {
  if (name.empty()) return {};
  std::vector<std::string> known;
  for (const std::string& profile : shipped_profiles()) {
    const std::string suffix = profile.substr(profile.rfind('-') + 1);
    if (name == profile || name == suffix) return load_profile(profile, place).device;
    known.push_back(suffix);
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
  if (name.ends_with(".json")) return read_profile(load_json(name), name);
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
