#include "base/tile.hpp"

#include <algorithm>

namespace shardsim {
namespace {

constexpr std::int64_t columns = 128;
constexpr std::int64_t largest_unit = 1024;

std::int64_t tile_rows(int bits, std::int64_t second_minor) {
  if (bits <= 4) return second_minor % 64 == 0 ? 64 : 8;
  if (bits == 8 && second_minor % 32 == 0) return 32;
  const std::int64_t fewest = bits == 8 ? 4 : bits == 16 ? 2 : 1;
  std::int64_t rows = fewest;
  while (rows < 8 && rows < second_minor) rows *= 2;
  return rows;
}

std::int64_t vector_elements(int bits, std::int64_t size) {
  std::int64_t unit = std::min(largest_unit, tpu_alignment * 8 / bits);
  while (unit < largest_unit && unit < size) unit *= 2;
  return ceil_div(size, unit) * unit;
}

}  // namespace

void apply_tile(const std::vector<std::int64_t>& tile, std::vector<std::int64_t>& physical) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> whole = physical;
  for (std::size_t i = tile.size(); i-- > 0;) {
    const std::int64_t dim = whole.empty() ? 1 : whole.back();
    if (!whole.empty()) whole.pop_back();
    if (tile[i] == combined_dimension && !whole.empty()) {
      whole.back() *= dim;
      continue;
    }
    if (tile[i] == combined_dimension) {
      whole.push_back(dim);
      continue;
    }
    sizes.insert(sizes.begin(), ceil_div(dim, tile[i]));
  }
  physical = std::move(whole);
  physical.insert(physical.end(), sizes.begin(), sizes.end());
  for (const std::int64_t size : tile) {
    if (size != combined_dimension) physical.push_back(size);
  }
}

Bytes tpu_array_bytes(const std::vector<std::int64_t>& dims, DType dtype) {
  const int element_bits = bits_of(dtype);
  const int bits = std::min(element_bits, 32);
  const std::int64_t words = element_bits / bits;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= dim;
  if (elements == 0) return Bytes(0);
  if (dims.size() < 2) return Bytes(words * vector_elements(bits, elements) * bits / 8);
  std::int64_t fewest = 0;
  for (std::size_t minor = 0; minor < dims.size(); ++minor) {
    for (std::size_t second = 0; second < dims.size(); ++second) {
      if (minor == second) continue;
      const std::int64_t rows = tile_rows(bits, dims[second]);
      const std::int64_t padded = elements / dims[minor] / dims[second] *
                                  (ceil_div(dims[minor], columns) * columns) *
                                  (ceil_div(dims[second], rows) * rows);
      if (fewest == 0 || padded < fewest) fewest = padded;
    }
  }
  return Bytes(words * fewest * bits / 8);
}

}  // namespace shardsim
