// What the links of a machine carry in a collective: the busiest in sentences and a table, all of
// them as a heat map of HTML, over time in link_history_map.hpp.
#pragma once

#include <string>

#include "experiments/collective_experiment.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

// "bottleneck: device 3 -> leaf 0, 98.0 % busy, and 15 links as busy; of 48 links 8 carry nothing"
[[nodiscard]] std::string bottleneck_sentence(const LinkView& view);
// When that link has all its bandwidth taken; empty where links are not followed over time.
// "device 3 -> leaf 0 is at its full bandwidth from 2.000 us to 1.50 ms"
// "device 3 -> leaf 0 is at its full bandwidth for 1.20 ms between 2.000 us and 1.50 ms"
// "device 3 -> leaf 0 is never at its full bandwidth"
[[nodiscard]] std::string full_bandwidth_sentence(const LinkView& view);
// "device 3 -> leaf 0"
[[nodiscard]] std::string way_of(const LinkView::Link& link);
// The busiest `limit` links. `over_time`: for fonts of one width, how busy each is in every
// twentieth of the time, in tenths of its bandwidth: "." less than half of one, "#" all of it.
[[nodiscard]] Table link_table(const LinkView& view, bool over_time,
                               std::size_t limit = default_row_limit);
// A row for every node, of the nodes that send most first, a cell for every link out of it, busiest
// first; what does not fit is left out and counted.
[[nodiscard]] std::string link_heat_map(const LinkView& view);

}  // namespace shardsim
