// A step in Chrome's trace event format: JSON that chrome://tracing, ui.perfetto.dev and scripts
// read. Times are microseconds with six decimals: exact, to the picosecond.
#pragma once

#include <string>

#include "reports/traces/step_trace.hpp"

namespace shardsim {

// The text of the file: an event a line.
[[nodiscard]] std::string chrome_trace(const StepTrace& trace);

}  // namespace shardsim
