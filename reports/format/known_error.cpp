#include "reports/format/known_error.hpp"

#include <fmt/format.h>

namespace shardsim {

bool is_tie(double shorter, double longer) { return longer <= known_error.between_two * shorter; }

std::string known_error_sentence() {
  return fmt::format(
      "measured steps took {:.2f} times the predicted time ({:.2f} to {:.2f} times in 8 of 10; {} "
      "steps, {})",
      known_error.median, known_error.low, known_error.high, known_error.steps, known_error_source);
}

}  // namespace shardsim
