#include "reports/format/known_error.hpp"

#include <fmt/format.h>

namespace shardsim {

bool is_tie(double shorter, double longer) { return longer <= known_error.between_two * shorter; }

std::string known_error_sentence(const KnownError& error) {
  return fmt::format(
      "measured steps took {:.2f} times the predicted time ({:.2f} to {:.2f} times in 8 of 10; {} "
      "steps, {})",
      error.median, error.low, error.high, error.steps, known_error_source);
}

}  // namespace shardsim
