#include "strategies/rules/dimension_order.hpp"

#include <algorithm>
#include <numeric>

namespace shardsim {

std::vector<std::size_t> largest_dimensions_first(const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shape[a] > shape[b]; });
  return order;
}

}  // namespace shardsim
