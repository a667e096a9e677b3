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

Profile load_profile(const std::string& name, const Place& place) {
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
