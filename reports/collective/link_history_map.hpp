// What the links of a machine carry over time, as a heat map of HTML: a row for links that carry
// the same at any time, the busiest first, time from left to right, the colour by how much of their
// bandwidth they use. It needs no script: cells are elements of the page, those beside each other
// that say the same are one, with its figure where there is room and when it is in its title.
#pragma once

#include <string>

#include "experiments/link_view.hpp"

namespace shardsim {

// Empty where links are not followed over time. What does not fit is left out and counted.
[[nodiscard]] std::string link_history_map(const LinkView& view);

}  // namespace shardsim
