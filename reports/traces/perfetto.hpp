// A step as ui.perfetto.dev opens it: Perfetto's protobuf trace format.
//
//   write_file("step.perfetto-trace", perfetto_trace(trace_of(prediction)));
//
// Times are whole nanoseconds there: beginnings and ends are rounded down alike, so that slices of
// a stream still follow each other, and a sum over n slices is less than n nanoseconds off.
#pragma once

#include <string>

#include "reports/traces/step_trace.hpp"

namespace shardsim {

// The bytes of the file.
[[nodiscard]] std::string perfetto_trace(const StepTrace& trace);

}  // namespace shardsim
