#include "base/counting_loop.hpp"

#include "base/units.hpp"

namespace shardsim {

std::optional<std::int64_t> counted_rounds(std::int64_t first, std::int64_t step,
                                           std::string_view direction, std::int64_t bound) {
  if (direction == "LE") return counted_rounds(first, step, "LT", bound + 1);
  if (direction == "GE") return counted_rounds(first, step, "GT", bound - 1);
  if (direction == "GT") return counted_rounds(-first, -step, "LT", -bound);
  if (direction == "NE") {
    const std::int64_t distance = bound - first;
    if (distance == 0) return 0;
    const bool meets = step != 0 && distance % step == 0 && distance / step > 0;
    return meets ? std::optional(distance / step) : std::nullopt;
  }
  if (direction != "LT") return std::nullopt;
  if (first >= bound) return 0;
  if (step <= 0) return std::nullopt;
  return ceil_div(bound - first, step);
}

std::string_view mirrored(std::string_view direction) {
  if (direction == "LT") return "GT";
  if (direction == "LE") return "GE";
  if (direction == "GT") return "LT";
  if (direction == "GE") return "LE";
  return direction;
}

}  // namespace shardsim
