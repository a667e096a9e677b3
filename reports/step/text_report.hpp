// For the terminal: aligned tables, sentences for the verdicts.
#pragma once

#include <string>
#include <vector>

#include "reports/format/figures.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] std::string text_run(const Figures& figures, std::size_t width);
[[nodiscard]] std::string text_comparison(const std::vector<Figures>& all, const Choice& choice,
                                          std::size_t width);

}  // namespace shardsim
