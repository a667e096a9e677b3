#include "validate/fit/factor_interval.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "validate/fit/student_t.hpp"

namespace shardsim {
namespace {

constexpr int window_octaves = 2;
constexpr double widest = 100;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variance(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / static_cast<double>(values.size() - 1);
}

// Between tables, about `size`; there are several at it.
double variance_between(const SamplesByTable& tables, double size) {
  std::vector<double> variances;
  for (int octave = -window_octaves; octave <= window_octaves; ++octave) {
    const std::vector<double> ratios = ratios_near(tables, size + octave);
    if (ratios.size() > 1) variances.push_back(variance(ratios));
  }
  return mean(variances);
}

// Of every row that has one on either side its squared difference from the line through them, in
// units of one row's variance; by size. Rows of one size are one, their mean.
std::map<double, double> squared_differences(const std::vector<LogSample>& samples) {
  std::map<double, std::vector<double>> by_size;
  for (const LogSample& sample : samples) by_size[sample.size].push_back(sample.ratio);
  std::vector<LogSample> rows;
  for (const auto& [size, ratios] : by_size) rows.push_back({size, mean(ratios)});
  std::map<double, double> result;
  for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
    const double after = (rows[i].size - rows[i - 1].size) / (rows[i + 1].size - rows[i - 1].size);
    const double before = 1 - after;
    const double difference =
        rows[i].ratio - before * rows[i - 1].ratio - after * rows[i + 1].ratio;
    result[rows[i].size] = difference * difference / (1 + before * before + after * after);
  }
  return result;
}

// `reach` of a logarithm that is `center`.
std::optional<FactorInterval> interval_of(double center, double reach, std::size_t tables) {
  if (!(reach <= std::log(widest))) return std::nullopt;
  return FactorInterval{std::exp(center - reach), std::exp(center + reach),
                        static_cast<std::int64_t>(tables)};
}

std::optional<FactorInterval> interval_of_rows(const std::vector<LogSample>& samples, double size,
                                               double center) {
  std::vector<double> near;
  std::vector<double> all;
  for (const auto& [at, squared] : squared_differences(samples)) {
    all.push_back(squared);
    if (std::abs(at - size) <= window_octaves) near.push_back(squared);
  }
  if (all.empty()) return std::nullopt;
  const std::vector<double>& squares = near.size() > 1 ? near : all;
  const double reach = student_t_95(static_cast<double>(squares.size())) * std::sqrt(mean(squares));
  // The factor is itself such a row.
  return interval_of(center, reach * std::numbers::sqrt2, 1);
}

}  // namespace

std::vector<double> ratios_near(const SamplesByTable& tables, double size) {
  std::vector<double> result;
  for (const auto& [table, samples] : tables) {
    std::vector<double> near;
    for (const LogSample& sample : samples) {
      if (std::abs(sample.size - size) <= farthest_octaves) near.push_back(sample.ratio);
    }
    if (!near.empty()) result.push_back(mean(near));
  }
  return result;
}

std::optional<FactorInterval> factor_interval(const SamplesByTable& tables, double size,
                                              double center) {
  const std::vector<double> ratios = ratios_near(tables, size);
  if (ratios.empty()) return std::nullopt;
  if (ratios.size() > 1) {
    const auto count = static_cast<double>(ratios.size());
    const double reach = student_t_95(count - 1) * std::sqrt(variance_between(tables, size)) *
                         std::sqrt(1 + std::numbers::pi / (2 * count));
    return interval_of(center, reach, ratios.size());
  }
  for (const auto& [table, samples] : tables) {
    if (!ratios_near({{table, samples}}, size).empty()) {
      return interval_of_rows(samples, size, center);
    }
  }
  return std::nullopt;
}

}  // namespace shardsim
