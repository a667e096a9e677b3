// How often a loop runs that counts: while (value DIRECTION bound) value += step.
//
//   counted_rounds(0, 2, "LT", 7) == 4     0, 2, 4, 6
//   counted_rounds(3, -1, "GE", 1) == 3    3, 2, 1
//   counted_rounds(0, 1, "GT", -1)         nothing: it does not end
//
// Directions are LT, LE, GT, GE and NE, as HLO and StableHLO write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardsim {

// Magnitudes up to 2^61. Nothing where the loop does not end, or the direction is another one.
[[nodiscard]] std::optional<std::int64_t> counted_rounds(std::int64_t first, std::int64_t step,
                                                         std::string_view direction,
                                                         std::int64_t bound);

// The direction when the two sides change places: "GT" for "LT".
[[nodiscard]] std::string_view mirrored(std::string_view direction);

}  // namespace shardsim
