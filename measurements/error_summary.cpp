#include "measurements/error_summary.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shardsim {

std::optional<ErrorSummary> summary_of(const std::vector<double>& errors) {
  constexpr double ninety = 0.9;
  if (errors.empty()) return std::nullopt;
  return ErrorSummary{errors.size(), quantile(errors, 0.5), quantile(errors, ninety)};
}

double quantile(std::vector<double> values, double fraction) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace shardsim
