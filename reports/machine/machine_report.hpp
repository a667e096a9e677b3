// A machine for `shardsim profiles show`: what it is, its picture, every number with its source.
#pragma once

#include <string>

#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

// A network written in place has no numbers but those of its legend.
[[nodiscard]] std::string machine_report_text(const Machine& machine, const Place& place,
                                              std::size_t width = default_text_width);
// One self-contained page.
[[nodiscard]] std::string machine_report_html(const Machine& machine, const Place& place);

}  // namespace shardsim
