// GitHub-flavoured Markdown, with the tables of the text report.
#pragma once

#include <string>
#include <vector>

#include "reports/format/figures.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

[[nodiscard]] std::string markdown_run(const Figures& figures);
[[nodiscard]] std::string markdown_comparison(const std::vector<Figures>& all,
                                              const Choice& choice);

}  // namespace shardsim
