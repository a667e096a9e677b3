// What the links of a machine carry in one collective, together and over time.
//
// Example: an all-gather of 4 MB over a ring of 4 at 1 GB/s and 1 us: three steps of 1.001 ms, in
// which every link carries 1 MB. It is busy for 99.9 % of the time; of its 60 bins of 50.05 us the
// 1st, 21st and 41st begin with a latency and have 98.0 %, the others 100 %.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_cost.hpp"

namespace shardsim {

// Links with the busiest first; of links that are as busy the one that the network names first.
struct LinkView {
  struct Link {
    std::string from;  // "device 3", "leaf 0"
    std::string to;
    Bytes bytes{0};
    double busy = 0;          // of the time
    std::size_t history = 0;  // in histories
  };
  // Of links that carry as many bytes, and as much of their bandwidth at any time.
  struct History {
    std::vector<double> utilisation;  // by bin, to a millionth
    Seconds full{0};                  // how long each is at its full bandwidth,
    Seconds first_full{0};            // from when on
    Seconds last_full{0};             // and until when; in between it may not be
    std::int64_t links = 0;
  };
  Bytes size{0};
  Seconds time{0};  // that the collective takes on these links
  std::string algorithm;
  std::vector<Link> links;
  Seconds bin{0};                       // of a history; all bins together are the time
  std::vector<History> histories = {};  // in the order of links; none where nothing is carried
  bool too_many_histories = false;      // and there are none either
};

// By flows, whatever the placement's model. Throws InputError for networks and collectives that are
// too large to follow every link.
[[nodiscard]] LinkView view_links(const Collective& collective, CollectiveCosts& costs);

}  // namespace shardsim
