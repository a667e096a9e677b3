#include "validate/fit/size_errors.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t range_factor = 16;
constexpr double error_steps = 10000;

}  // namespace

Bytes range_of(Bytes bytes) {
  std::int64_t low = smallest_judged.count();
  while (bytes.count() >= range_factor * low) low *= range_factor;
  return Bytes(low);
}

std::string range_text(Bytes from) {
  return fmt::format("{} to {}", format_bytes(from), format_bytes(from * range_factor));
}

ErrorSummary summarize(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  const auto rounded = [&](double fraction) {
    return std::round(quantile(errors, fraction) * error_steps) / error_steps;
  };
  return {errors.size(), rounded(0.5), rounded(0.9)};
}

std::vector<SizeErrors> summarize(const ErrorsByRange& errors) {
  std::vector<SizeErrors> result;
  for (const auto& [from, of_range] : errors) {
    const ErrorSummary summary = summarize(of_range);
    if (summary.rows == 0) continue;
    result.push_back(
        {from, static_cast<std::int64_t>(summary.rows), summary.median, summary.percentile_90});
  }
  return result;
}

std::map<Bytes, double> errors_of(const CollectiveExperiment& experiment) {
  std::map<Bytes, double> errors;
  for (const CollectivePoint& point : predict_collective(experiment).points) {
    const auto error = point.relative_error();
    if (point.bytes >= smallest_judged && error) errors[point.bytes] = std::abs(*error);
  }
  return errors;
}

}  // namespace shardsim
