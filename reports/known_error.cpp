#include "reports/known_error.hpp"

#include <fmt/format.h>

namespace shardsim {

bool is_tie(SimTime shorter, SimTime longer) {
  return static_cast<double>(longer.count()) <=
         known_error.between_two * static_cast<double>(shorter.count());
}

std::string known_error_sentence() {
  return fmt::format(
      "measured steps took {:.2f} times the predicted time ({:.2f} to {:.2f} times in 8 of 10; {} "
      "steps, {})",
      known_error.median, known_error.low, known_error.high, known_error.steps, known_error_source);
}

}  // namespace shardsim
