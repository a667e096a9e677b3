// The formats of reports by the names they have on the command line.
#pragma once

#include <string>
#include <vector>

#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] std::vector<std::string> report_formats();
[[nodiscard]] Format report_format(const std::string& name);  // one of report_formats()

}  // namespace shardsim
