#include "reports/format/known_error.hpp"

namespace shardsim {

StepEvidence known_error() {
  StepEvidence error;
  error.steps = 136;
  error.low = 1.13;
  error.median = 1.31;
  error.high = 1.82;
  error.pairs = 33;
  error.between_two = 1.15;
  error.of = "136 steps, docs/accuracy.md";
  return error;
}

bool is_tie(double shorter, double longer, double between_two) {
  return longer <= between_two * shorter;
}

}  // namespace shardsim
