// What the links of a machine carry in a collective: the busiest in a sentence and a table, all of
// them as a heat map of HTML.
#pragma once

#include <string>

#include "experiments/collective_experiment.hpp"
#include "reports/tables.hpp"

namespace shardsim {

// "bottleneck: device 3 -> leaf 0, 98.0 % busy, and 15 links as busy; of 48 links 8 carry nothing"
[[nodiscard]] std::string bottleneck_sentence(const LinkView& view);
// The busiest `limit` links.
[[nodiscard]] Table link_table(const LinkView& view, std::size_t limit = default_row_limit);
// A row for every node, of the nodes that send most first, a cell for every link out of it, busiest
// first; what does not fit is left out and counted.
[[nodiscard]] std::string link_heat_map(const LinkView& view);

}  // namespace shardsim
