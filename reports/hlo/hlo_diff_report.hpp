// Two compiled programs side by side as text, Markdown, JSON (shardsim/hlo-diff/1) and CSV. Text
// and Markdown show the largest differences, JSON and CSV all.
#pragma once

#include <string>

#include "base/text.hpp"
#include "hlo/diff.hpp"

namespace shardsim {

[[nodiscard]] std::string hlo_diff_text(const HloDiff& diff,
                                        std::size_t width = default_text_width);
[[nodiscard]] std::string hlo_diff_markdown(const HloDiff& diff);
[[nodiscard]] std::string hlo_diff_json(const HloDiff& diff);
// A row per figure that can be compared and per collective that differs:
// section,item,before,after,difference,reason
[[nodiscard]] std::string hlo_diff_csv(const HloDiff& diff);

}  // namespace shardsim
