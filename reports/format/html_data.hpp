// The data that the scripts of the HTML page draw from, as one JSON document.
//
//   { "categories": [{"key", "label"}...], "kinds": [name...],
//     "configurations": [
//       { "name", "fits", "capacity_bytes", "peak_bytes", "category_bytes": [by categories...],
//         "step_s", "compute_s", "contention_s", "exposed_s", "idle_s",
//         "communication": [{"label", "time_s", "exposed_s", "wire_bytes"}...],
//         "timeline": null or
//           { "names": [...], "merged": b,
//             "classes": [{ "name", "streams": [...], "peak_ns", "peak_bytes",
//                           "segments": [[start_ns, length_ns, stream, kind, layer, name, tasks,
//                           busy_ns]...], "memory": [[time_ns, bytes by categories...]...],
//                           "links": [{"name", "permille": [of bins...]}...] }...] }
//                           }...] }
#pragma once

#include <vector>

#include "base/json_reader.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/timeline.hpp"

namespace shardsim {

[[nodiscard]] Json page_data(const std::vector<Figures>& all,
                             const std::vector<Timeline>& timelines);

}  // namespace shardsim
