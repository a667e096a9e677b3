// What a link, or each of a class of links, carries while a collective runs: bytes in bins, parts
// of its time that are equally long, and when it is at its full bandwidth.
//
// Example: 1 MB over a link of 1 GB/s, from 0.5 ms of 2 ms on, in four bins:
//   0, 500 kB, 500 kB, 0; at full bandwidth for 1 ms, from 0.5 ms to 1.5 ms
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.hpp"

namespace shardsim::network {

// Of the time that a collective takes: fine enough to see the phases of an algorithm, few enough
// for a row of a page.
inline constexpr std::size_t default_bins = 60;

struct LinkHistory {
  std::vector<double> bytes = {};  // by bin; together what the link carries
  Seconds full{0};                 // how long it is at its full bandwidth,
  Seconds first_full{0};           // from when on
  Seconds last_full{0};            // and until when; in between it may not be
};

}  // namespace shardsim::network
