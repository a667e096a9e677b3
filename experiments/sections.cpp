#include "experiments/sections.hpp"

#include "base/json.hpp"
#include "experiments/missing_key.hpp"

namespace shardsim {

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> names = {
      "name",      "workload",   "program",     "like",        "mesh",   "roles",
      "devices",   "strategy",   "machine",     "topology",    "slices", "collectives",
      "placement", "algorithms", "calibration", "allow_uneven"};
  return names;
}

Sections::Sections(const Json& base, const Json* variant, const Place& base_place,
                   const Place& variant_place)
    : merged_(base), root_(base_place) {
  for (const std::string& section : section_names()) {
    Place& place = places_[section];
    place = variant != nullptr && variant->contains(section) ? variant_place : base_place;
    place.pointer += "/" + section;
  }
  if (variant != nullptr) merged_->merge_patch(*variant);
  JsonReader(*merged_, variant != nullptr ? variant_place : base_place).only_keys(section_names());
}

std::optional<JsonReader> Sections::find(const std::string& section) const {
  const auto found = merged_->find(section);
  if (found == merged_->end() || found->is_null()) return std::nullopt;
  return JsonReader(*found, places_.at(section));
}

JsonReader Sections::at(const std::string& section) const {
  const auto found = find(section);
  if (!found) throw InputError(root_, missing_key(section));
  return *found;
}

}  // namespace shardsim
