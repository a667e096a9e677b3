#include "hardware_profiles/read_calibrations.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file_kind.hpp"
#include "base/json.hpp"

namespace shardsim {

std::vector<Calibration> read_calibrations(const JsonReader& json) {
  const auto read = [](const JsonReader& one) {
    if (!one.is_string()) return read_calibration(one);
    const std::string name = one.string();
    if (!name.ends_with(".json")) return load_calibration(name, one.place());
    const std::string path =
        (std::filesystem::path(one.place().file).parent_path() / name).string();
    const Json document = load_json(path, FileKind::calibration);
    return read_calibration(JsonReader(document, {path, ""}));
  };
  if (!json.is_array()) return {read(json)};
  std::vector<Calibration> calibrations;
  for (const JsonReader& one : json.elements()) calibrations.push_back(read(one));
  return calibrations;
}

void set_calibrations(Profile& profile, std::vector<Calibration> calibrations, const Place& place) {
  if (!calibrations.empty() && !std::holds_alternative<ClusterProfile>(profile.network)) {
    throw InputError(place,
                     fmt::format("collectives on {} are not corrected by calibrations, which "
                                 "are for clusters with nodes",
                                 profile.name));
  }
  profile.calibrations = std::move(calibrations);
}

}  // namespace shardsim
