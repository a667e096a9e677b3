// The sizes of a sweep, as text:
//
//   64MiB                 one
//   1MiB,64MiB,1GiB       several, in the order given; each may be a range
//   1KiB:8GiB:x2          from 1 KiB, every time twice as much, none beyond 8 GiB: 24 sizes
//   1MiB:16MiB:+5MiB      1, 6, 11 and 16 MiB
//
// A size has a unit ("8 B"), is at least 1 B and at most 2^60 B.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim {

inline constexpr std::int64_t largest_size = std::int64_t{1} << 60;  // twice that is still counted
inline constexpr std::int64_t most_sizes = 10'000;

// Throws InputError: what is no size, step or range; a range that begins beyond its end; more than
// most_sizes.
[[nodiscard]] std::vector<Bytes> parse_sizes(std::string_view text, const Place& place);

}  // namespace shardsim
