// Profiles as text and JSON, in and out.
//
// The JSON ("shardsim/profile/1") is what the files in profiles/ hold. Every number is an object:
//
//   "bandwidth": {"value": "450 GB/s", "kind": "vendor", "date": "2026-08",
//                 "source": "NVIDIA NVLink 4, 18 links of 25 GB/s each way", "note": "one way"}
//
// The unit is in the text and required; efficiencies (above 0, at most 1) and counts are plain
// numbers. A torus may have "chip": {"devices", "link"}. `kind` is one of vendor, code, measured,
// derived, estimate; `date` is YYYY-MM or YYYY-MM-DD; `note` may be left out, everything else may
// not. A machine may be a graph of one's own (network/given_graph.hpp) in place of a cluster or a
// torus; its links need no source. Unknown keys are errors. A profile may extend another
// (extend_profile.hpp), and names or holds calibrations (calibration.hpp). What a sweep showed
// beside it, "contention" and "algorithms" (validate/sweep/sweep_findings.hpp), may stand in it
// unread.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

// Throws InputError with the place in `file`.
[[nodiscard]] Profile read_profile(const Json& document, const std::string& file);
// Of a document that stands there in a file.
[[nodiscard]] Profile read_profile(const Json& document, const Place& place);
// Reads back to the same profile. Values are written in the shortest unit that is exact.
[[nodiscard]] Json profile_to_json(const Profile& profile);

struct ProfileNumber {
  std::string quantity;  // by the way to it: "torus.link.latency"
  std::string value;     // "1 us"
  std::string kind;
  std::string date;
  std::string source;
  std::string note;
};
// All of them, in the order of the JSON.
[[nodiscard]] std::vector<ProfileNumber> numbers_of(const Profile& profile);
// "dgx-h100: NVIDIA DGX H100, ... (built in)"
[[nodiscard]] std::string profile_heading(const Profile& profile);
// A table that ends in the number of a source; below it the sources and notes, which are sentences
// and too long for columns, each once.
[[nodiscard]] std::string profile_numbers_text(const Profile& profile,
                                               std::size_t width = default_text_width);
[[nodiscard]] std::string profile_to_text(const Profile& profile,
                                          std::size_t width = default_text_width);  // both

// One line per profile. The JSON is "shardsim/profiles/1": {"profiles": [{"name", "title"}...]}.
[[nodiscard]] std::string profile_list_text(const std::vector<Profile>& profiles,
                                            std::size_t width = default_text_width);
[[nodiscard]] Json profile_list_json(const std::vector<Profile>& profiles);

[[nodiscard]] std::string_view name_of(WrapRule rule);  // "axis_of_16"
[[nodiscard]] std::string_view name_of(Fabric fabric);  // "nvswitch"
[[nodiscard]] std::string_view name_of(HostCpu cpu);    // "intel"
[[nodiscard]] std::string_view name_of(AmdArchitecture architecture);
// "4x4x8" and back. Throws InputError for text that is not sizes with an x between them.
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& sizes);
[[nodiscard]] std::vector<std::int64_t> parse_shape(const std::string& text, const Place& place);

}  // namespace shardsim
