// What happens from `begin` to `end`, cut up at the edges of bins of one width: add(bin, length)
// for each that it reaches into. The lengths add up to end - begin; the last bin has no end.
//
//   spread(3, 12, /*width=*/5, /*bins=*/2, add)     add(0, 2), add(1, 7)
#pragma once

#include <algorithm>
#include <cstddef>

namespace shardsim {

template <class Add>
void spread(double begin, double end, double width, std::size_t bins, Add add) {
  std::size_t bin = std::min(bins - 1, static_cast<std::size_t>(begin / width));
  while (true) {
    const double edge = static_cast<double>(bin + 1) * width;
    const bool is_last = bin + 1 == bins || edge >= end;
    add(bin, (is_last ? end : edge) - begin);
    if (is_last) return;
    begin = edge;
    ++bin;
  }
}

}  // namespace shardsim
