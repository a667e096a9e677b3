// `plan --explain`: a summary, then a block per row of the explanation, the most expensive first.
// As text, Markdown and JSON ("shardsim/explanation/1").
#pragma once

#include <string>

#include "base/text.hpp"
#include "reports/step/explanation.hpp"

namespace shardsim {

[[nodiscard]] std::string explain_text(const Explanation& explanation,
                                       std::size_t width = default_text_width);
[[nodiscard]] std::string explain_markdown(const Explanation& explanation);
[[nodiscard]] std::string explain_json(const Explanation& explanation);

}  // namespace shardsim
