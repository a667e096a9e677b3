// One self-contained HTML page: styles, scripts, Chart.js and data inline, nothing from a network.
//
//   verdict       which is best and why, or whether it fits
//   comparison    table, memory by category against capacity, time split, communication
//   per configuration: the figures, one step as lanes with memory beneath, tables, remarks
//   all figures   the columns of the CSV, with the very same text
#pragma once

#include <string>
#include <vector>

#include "reports/format/figures.hpp"
#include "reports/format/report.hpp"
#include "reports/format/timeline.hpp"

namespace shardsim {

// Timelines sized so that all together keep the page under about a megabyte.
[[nodiscard]] std::vector<Timeline> timelines_of(const std::vector<Prediction>& predictions);

[[nodiscard]] std::string html_run(const Figures& figures, const Timeline& timeline);
[[nodiscard]] std::string html_comparison(const std::vector<Figures>& all, const Choice& choice,
                                          const std::vector<Timeline>& timelines);

}  // namespace shardsim
