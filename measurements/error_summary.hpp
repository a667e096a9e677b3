// How far predictions are from what was measured: quantiles of errors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace shardsim {

// Of the absolute relative errors. Between two of them quantiles are interpolated: of 1, 2 and 4 %
// the median is 2 %, the 90th percentile 2 + 0.8 * 2 = 3.6 %.
struct ErrorSummary {
  std::size_t rows = 0;  // that have a time
  double median = 0;
  double percentile_90 = 0;
};

// Nothing where there are no errors.
[[nodiscard]] std::optional<ErrorSummary> summary_of(const std::vector<double>& errors);

// `fraction` from 0 to 1; at least one value.
[[nodiscard]] double quantile(std::vector<double> values, double fraction);

}  // namespace shardsim
