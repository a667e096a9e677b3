#include "validate/fit_calibration.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

namespace shardsim {
namespace {

constexpr double farthest_octaves = 0.75;
// Digits of a factor in the file: far below the spread of any measurement.
constexpr double factor_steps = 1000;
constexpr double error_steps = 10000;

struct LogSample {
  double size = 0;   // log2 of bytes
  double ratio = 0;  // log of measured over modelled
};
using SamplesByTable = std::map<std::string, std::vector<LogSample>>;

// What a table says of a size, if it has samples near: their mean.
std::optional<double> ratio_near(const std::vector<LogSample>& samples, double size) {
  double sum = 0;
  int count = 0;
  for (const LogSample& sample : samples) {
    if (std::abs(sample.size - size) > farthest_octaves) continue;
    sum += sample.ratio;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

double rounded(double value, double steps) { return std::round(value * steps) / steps; }

std::vector<CurvePoint> fit_points(const SamplesByTable& tables) {
  std::vector<CurvePoint> points;
  constexpr int largest_power = 50;
  for (int power = 0; power <= largest_power; ++power) {
    std::vector<double> ratios;
    for (const auto& [table, samples] : tables) {
      if (const auto ratio = ratio_near(samples, power)) ratios.push_back(*ratio);
    }
    if (ratios.empty()) continue;
    const double factor = std::exp(quantile(ratios, 0.5));
    points.push_back({Bytes(std::int64_t{1} << power),
                      std::max(rounded(factor, factor_steps), 1 / factor_steps)});
  }
  return points;
}

CalibrationCurve fit_curve(const CurveKey& key, const SamplesByTable& tables) {
  CalibrationCurve curve;
  curve.key = key;
  curve.points = fit_points(tables);
  std::vector<double> errors;
  for (const auto& [table, samples] : tables) {
    curve.tables.push_back(table);
    for (const LogSample& sample : samples) {
      const auto bytes = static_cast<std::int64_t>(std::llround(std::exp2(sample.size)));
      if (Bytes(bytes) < smallest_judged) continue;
      errors.push_back(std::abs(curve.factor_at(Bytes(bytes)) / std::exp(sample.ratio) - 1));
    }
  }
  curve.rows = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return curve;
  curve.median_error = rounded(quantile(errors, 0.5), error_steps);
  curve.percentile_90_error = rounded(quantile(errors, 0.9), error_steps);
  return curve;
}

}  // namespace

CalibrationTable sample_table(const CollectiveExperiment& experiment) {
  assert(experiment.measured);
  CollectiveExperiment plain = experiment;
  plain.model = CollectiveModel::uncalibrated;
  const CollectivePrediction prediction = predict_collective(plain);
  CalibrationTable table{experiment.measured->id, experiment.measured->source, {}};
  for (const CollectivePoint& point : prediction.points) {
    if (!point.measured || !point.cost.curve || !(point.cost.total() > Seconds(0))) continue;
    table.samples.push_back({*point.cost.curve, point.bytes, point.cost.total(), *point.measured});
  }
  return table;
}

Calibration fit_calibration(const Calibration& header,
                            const std::vector<CalibrationTable>& tables) {
  std::map<CurveKey, SamplesByTable> curves;
  std::map<std::string, std::string> sources;
  for (const CalibrationTable& table : tables) {
    for (const CalibrationSample& sample : table.samples) {
      const auto& regions = header.regions;
      if (std::find(regions.begin(), regions.end(), sample.key.region) == regions.end()) continue;
      curves[sample.key][table.id].push_back(
          {std::log2(static_cast<double>(sample.bytes.count())),
           std::log(sample.measured.count() / sample.modelled.count())});
      sources[table.id] = table.source;
    }
  }
  Calibration calibration = header;
  calibration.curves.clear();
  calibration.sources.clear();
  for (const auto& [key, samples] : curves) calibration.curves.push_back(fit_curve(key, samples));
  for (const auto& [table, source] : sources) calibration.sources.push_back({table, source});
  return calibration;
}

}  // namespace shardsim
