// "shardsim/result/1" and "shardsim/comparison/1". Times in seconds, sizes in bytes, the unit as
// suffix of the key. `tokens_per_s_per_device` and `mfu` are there only where they mean something.
//
//   "links_over_time": {"count", "start_s", "duration_s", "per_device_class":
//     [{"name", "levels": [{"level", "direction", "utilisation": [n...]}...]}...]}
//
// is how much a device of each class takes of each level of links, in "count" bins of the step, to
// a millionth (sim/step/link_usage.hpp); where anything is taken. Levels: scale-up, scale-out, of
// tori x, y, z and chip, dcn; directions: out, in, or both alike. On networks written in place
// level is "network", "link" the name of one, "links" how many carry as much: the busiest, at most
// eight.
//
// "breakdown" is where the step goes by cause (sim/step/time_parts.hpp): {"compute_forward_s",
// ..., "contention_s", "exposed_data_s", ..., "idle_bubble_s"}, of the class that computes longest
// and of each class in "per_device_class" and "stages"; together the step.
//
// "known_error" is that of step times (evidence/evidence.hpp): {"measured_over_predicted":
// {"percentile_10", "median", "percentile_90"}, "steps", "of" which, "between_two", "nearest":
// [{"id", "measured_s", "predicted_s"}], "outside": [text]}, "situation" what it is looked up by;
// of memory "peak_bytes" are live buffers, "allocated_bytes" these as the allocator rounds them,
// "reserved_bytes" with its fragmentation, "process_bytes" with context and communication buffers
// (sim/step/reserved_memory.hpp, outside_memory.hpp; all the peak where the allocator is not
// PyTorch's): "fits" is by these. "not_counted_bytes" the least and the most that a device may hold
// beside them (not_counted.hpp), "suggestions", of what does not fit, what
// would: [{"set": {path: value...}, "step_time_s", "peak_bytes", "fits",
// "fits_narrowly"}...], the paths as --set takes them.
// "host_bytes" are what a device keeps in the memory of its host, "host_capacity_bytes" what there
// is, where that is known, for all of its devices.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] Json result_to_json(const Figures& figures);
[[nodiscard]] Json comparison_to_json(const std::vector<Figures>& all, const Choice& choice);
// Indented text with a newline at its end. What is not UTF-8 in user text becomes U+FFFD.
[[nodiscard]] std::string json_text(const Json& document);

}  // namespace shardsim
