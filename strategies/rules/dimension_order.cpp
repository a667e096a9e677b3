#include "strategies/rules/dimension_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

constexpr std::size_t lanes = 8;  // 64-bit integers in a register of AVX-512

struct Lane {
  std::int64_t size = std::numeric_limits<std::int64_t>::max();  // lanes that are left over: last
  std::size_t dimension = 0;
};

using Register = std::array<Lane, lanes>;

void exchange(Register& values, std::size_t low, std::size_t high) {
  if (values[low].size > values[high].size) std::swap(values[low], values[high]);
}

// Batcher's bitonic sort: runs of `run` lanes are merged from their halves, which are compared
// mirrored, and then sorted at halving distances.
void sort_bitonic(Register& values) {
  for (std::size_t run = 2; run <= lanes; run *= 2) {
    for (std::size_t start = 0; start < lanes; start += run) {
      for (std::size_t i = 0; i < run / 2; ++i) exchange(values, start + i, start + run - 1 - i);
    }
    for (std::size_t distance = run / 4; distance >= 1; distance /= 2) {
      for (std::size_t i = 0; i < lanes; ++i) {
        if ((i & distance) == 0) exchange(values, i, i + distance);
      }
    }
  }
}

std::vector<std::size_t> by_network(const std::vector<std::int64_t>& values, const Place& place) {
  if (values.size() > lanes) {
    throw RuleError("NotImplementedError", place,
                    fmt::format("\"argsort\": \"simd\" is known for {} dimensions at most, not {}",
                                lanes, values.size()));
  }
  Register sorted{};
  for (std::size_t i = 0; i < values.size(); ++i) sorted[i] = {values[i], i};
  sort_bitonic(sorted);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i) order.push_back(sorted[i].dimension);
  return order;
}

}  // namespace

EqualDimensions read_equal_dimensions(const JsonReader& json) {
  return json.choice({"stable", "simd"}) == "simd" ? EqualDimensions::simd
                                                   : EqualDimensions::stable;
}

std::vector<std::size_t> argsort(const std::vector<std::int64_t>& values, EqualDimensions ties,
                                 const Place& place) {
  if (ties == EqualDimensions::simd) return by_network(values, place);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

std::vector<std::size_t> largest_dimensions_first(const std::vector<std::int64_t>& shape,
                                                  EqualDimensions ties, const Place& place) {
  std::vector<std::size_t> order = argsort(shape, ties, place);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace shardsim
