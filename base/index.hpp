// Subscripts: ids, dimensions and positions are signed, containers count unsigned.
//
//   shape.dims[at(dim)]    // dim is an int, an std::int64_t, an id ...
//
// Ids that mean "none" are negative: whoever subscripts with one has a bug.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>

namespace shardsim {

constexpr std::size_t at(std::signed_integral auto id) {
  assert(id >= 0);
  return static_cast<std::size_t>(id);
}

}  // namespace shardsim
