#include "validate/fit/fit_calibration.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "validate/fit/factor_interval.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

// Digits of a factor in the file: far below the spread of any measurement.
constexpr double factor_steps = 1000;

double rounded_factor(double factor) {
  return std::max(std::round(factor * factor_steps), 1.0) / factor_steps;
}

std::optional<FactorInterval> rounded_interval(const SamplesByTable& tables, double size,
                                               double center) {
  std::optional<FactorInterval> interval = factor_interval(tables, size, center);
  if (!interval) return std::nullopt;
  interval->low = rounded_factor(interval->low);
  interval->high = rounded_factor(interval->high);
  return interval;
}

std::vector<CurvePoint> fit_points(const SamplesByTable& tables) {
  std::vector<CurvePoint> points;
  constexpr int largest_power = 50;
  for (int power = 0; power <= largest_power; ++power) {
    const std::vector<double> ratios = ratios_near(tables, power);
    if (ratios.empty()) continue;
    const double center = quantile(ratios, 0.5);
    points.push_back({Bytes(std::int64_t{1} << power), rounded_factor(std::exp(center)),
                      rounded_interval(tables, power, center)});
  }
  return points;
}

CalibrationCurve fit_curve(const CurveKey& key, const SamplesByTable& tables) {
  CalibrationCurve curve;
  curve.key = key;
  curve.points = fit_points(tables);
  const double least = std::log2(static_cast<double>(smallest_judged.count()));
  for (const auto& [table, samples] : tables) {
    curve.tables.push_back(table);
    curve.rows += std::count_if(samples.begin(), samples.end(),
                                [&](const LogSample& sample) { return sample.size >= least; });
  }
  return curve;
}

// Few tables are of reduce-scatters, which send what all-gathers send, the other way: they share
// curves.
CurveKey pooled(CurveKey key) {
  if (key.collective == "reduce-scatter") key.collective = "all-gather";
  return key;
}

}  // namespace

CalibrationTable sample_table(const CollectiveExperiment& experiment) {
  assert(experiment.measured);
  CollectiveExperiment plain = experiment;
  plain.model = collective_models::uncalibrated;
  const CollectivePrediction prediction = predict_collective(plain);
  CalibrationTable table{experiment.measured->id, experiment.measured->source, {}};
  table.experiment = experiment;
  if (experiment.devices % prediction.nodes == 0) {
    table.members_per_node = experiment.devices / prediction.nodes;
  }
  table.named = prediction.machine.profile.calibrations;
  for (const CollectivePoint& point : prediction.points) {
    if (!point.measured || !point.cost.curve || !(point.cost.total() > Seconds(0))) continue;
    table.samples.push_back(
        {pooled(*point.cost.curve), point.bytes, point.cost.total(), *point.measured});
  }
  return table;
}

Calibration fit_calibration(const Calibration& header,
                            const std::vector<CalibrationTable>& tables) {
  std::map<CurveKey, SamplesByTable> curves;
  std::map<CurveKey, std::set<std::int64_t>> members;
  std::map<std::string, std::string> sources;
  for (const CalibrationTable& table : tables) {
    for (const CalibrationSample& sample : table.samples) {
      const auto& regions = header.regions;
      if (std::find(regions.begin(), regions.end(), sample.key.region) == regions.end()) continue;
      curves[sample.key][table.id].push_back(
          {std::log2(static_cast<double>(sample.bytes.count())),
           std::log(sample.measured.count() / sample.modelled.count())});
      members[sample.key].insert(table.members_per_node);
      sources[table.id] = table.source;
    }
  }
  Calibration calibration = header;
  calibration.curves.clear();
  calibration.sources.clear();
  for (auto& [key, by_table] : curves) {
    for (auto& [table, samples] : by_table) std::sort(samples.begin(), samples.end());
    CalibrationCurve& curve = calibration.curves.emplace_back(fit_curve(key, by_table));
    const std::set<std::int64_t>& on_a_node = members.at(key);
    if (key.region == Region::nodes && on_a_node.size() == 1) {
      curve.members_per_node = *on_a_node.begin();
    }
  }
  calibration.errors_by_size.clear();
  calibration.held_out = {};
  calibration.suspicious.clear();
  for (const auto& [table, source] : sources) calibration.sources.push_back({table, source});
  return calibration;
}

void add_errors(Calibration& calibration, const std::vector<CalibrationTable>& tables,
                const PredictedTime& predicted) {
  std::map<CurveKey, std::vector<double>> by_curve;
  for (const CalibrationCurve& curve : calibration.curves) by_curve[curve.key];
  ErrorsByRange by_range;
  for (const CalibrationTable& table : tables) {
    for (const CalibrationSample& sample : table.samples) {
      const auto curve = by_curve.find(sample.key);
      if (curve == by_curve.end() || sample.bytes < smallest_judged) continue;
      const double error = std::abs(predicted(table, sample).count() / sample.measured.count() - 1);
      curve->second.push_back(error);
      by_range[range_of(sample.bytes)].push_back(error);
    }
  }
  for (CalibrationCurve& curve : calibration.curves) {
    const ErrorSummary summary = summarize(by_curve.at(curve.key));
    curve.median_error = summary.median;
    curve.percentile_90_error = summary.percentile_90;
  }
  calibration.errors_by_size = summarize(by_range);
}

}  // namespace shardsim
