#include "validate/sweep/sweep_findings.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "validate/fit/collective_terms.hpp"
#include "validate/fit/fit_profile.hpp"

namespace shardsim {
namespace {

using KindAndSize = std::pair<CollectiveKind, std::int64_t>;
using ByPayload = std::multimap<Bytes, const SweptCollective*>;

bool are_all(const SweptCollective& swept, std::int64_t processes) {
  return swept.group_size * swept.groups == processes;
}

// The shortest of each payload.
std::map<Bytes, const SweptCollective*> shortest(const ByPayload& records) {
  std::map<Bytes, const SweptCollective*> result;
  for (const auto& [payload, swept] : records) {
    const SweptCollective*& best = result.emplace(payload, swept).first->second;
    if (swept->time.median < best->time.median) best = swept;
  }
  return result;
}

std::vector<Contention> contention_in(const DeviceSweep& sweep, const Profile& fitted) {
  std::map<KindAndSize, ByPayload> all_at_once;
  std::map<KindAndSize, ByPayload> alone;
  for (const SweptCollective& swept : sweep.collectives) {
    if (!swept.algorithm.empty()) continue;
    const KindAndSize key{swept.kind, swept.group_size};
    if (are_all(swept, sweep.on.processes)) {
      all_at_once[key].emplace(swept.payload, &swept);
    } else if (swept.groups == 1) {
      alone[key].emplace(swept.payload, &swept);
    }
  }
  std::vector<Contention> rows;
  if (alone.empty()) return rows;
  SweptCosts costs(fitted, sweep.on.processes, collective_models::simulated);
  const auto predicted = [&](const SweptCollective& swept) {
    return costs.of(swept).total().count();
  };
  for (const auto& [key, records] : alone) {
    const auto together = shortest(all_at_once[key]);
    std::vector<double> ratios;
    std::vector<double> predictions;
    for (const auto& [payload, one] : shortest(records)) {
      const auto found = together.find(payload);
      if (found == together.end()) continue;
      ratios.push_back(found->second->time.median.count() / one->time.median.count());
      predictions.push_back(predicted(*found->second) / predicted(*one));
    }
    if (ratios.empty()) continue;
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    rows.push_back({key.first, key.second, sweep.on.processes / key.second,
                    static_cast<std::int64_t>(ratios.size()), quantile(ratios, 0.5), *low, *high,
                    quantile(predictions, 0.5)});
  }
  return rows;
}

AlgorithmFit fit_of(const std::string& algorithm, const ByPayload& records) {
  std::vector<std::vector<double>> terms;
  std::vector<double> times;
  for (const auto& [payload, swept] : records) {
    terms.push_back({1, static_cast<double>(payload.count())});
    times.push_back(swept->time.median.count());
  }
  const RobustFit fit = fit_nonnegative(terms, times);
  return {algorithm, static_cast<std::int64_t>(shortest(records).size()), fit.terms[0],
          fit.terms[1], fit.median_error};
}

// Of payloads of which two algorithms or more are there.
std::vector<FastestAlgorithm> fastest_of(const std::map<std::string, ByPayload>& algorithms) {
  std::map<Bytes, std::vector<std::pair<Seconds, std::string>>> candidates;
  for (const auto& [algorithm, records] : algorithms) {
    for (const auto& [payload, swept] : shortest(records)) {
      candidates[payload].emplace_back(swept->time.median, algorithm);
    }
  }
  std::vector<FastestAlgorithm> fastest;
  for (auto& [payload, times] : candidates) {
    if (times.size() < 2) continue;
    std::sort(times.begin(), times.end());
    fastest.push_back({payload, times[0].second, times[0].first, times[1].first});
  }
  return fastest;
}

std::vector<ComparedAlgorithms> algorithms_in(const DeviceSweep& sweep) {
  std::map<KindAndSize, std::map<std::string, ByPayload>> records;
  for (const SweptCollective& swept : sweep.collectives) {
    if (!are_all(swept, sweep.on.processes)) continue;
    records[{swept.kind, swept.group_size}][swept.algorithm].emplace(swept.payload, &swept);
  }
  std::vector<ComparedAlgorithms> all;
  for (const auto& [key, algorithms] : records) {
    ComparedAlgorithms compared{key.first, key.second, sweep.on.processes / key.second, {}, {}};
    for (const auto& [algorithm, of] : algorithms) {
      compared.fits.push_back(fit_of(algorithm, of));
    }
    compared.fastest = fastest_of(algorithms);
    all.push_back(std::move(compared));
  }
  return all;
}

Json term_json(const FittedTerm& term) {
  if (!term.determined) return nullptr;
  Json json = {{"time_s", term.value}, {"low_s", term.low}};
  if (std::isfinite(term.high)) json["high_s"] = term.high;
  return json;
}

Json contention_json(const Contention& row) {
  return {{"kind", name_of(row.kind)}, {"group_size", row.group_size}, {"groups", row.groups},
          {"sizes", row.sizes},        {"ratio", row.ratio},           {"low", row.low},
          {"high", row.high},          {"predicted", row.predicted}};
}

Json algorithms_json(const ComparedAlgorithms& compared) {
  const auto named = [](const std::string& algorithm, Json json) {
    if (!algorithm.empty()) json["algorithm"] = algorithm;
    return json;
  };
  Json json = {{"kind", name_of(compared.kind)},
               {"group_size", compared.group_size},
               {"groups", compared.groups},
               {"fits", Json::array()},
               {"fastest", Json::array()}};
  for (const AlgorithmFit& fit : compared.fits) {
    json["fits"].push_back(named(fit.algorithm, {{"sizes", fit.sizes},
                                                 {"median_error", fit.median_error},
                                                 {"start", term_json(fit.start)},
                                                 {"byte", term_json(fit.byte)}}));
  }
  for (const FastestAlgorithm& fastest : compared.fastest) {
    json["fastest"].push_back(named(fastest.algorithm, {{"payload_bytes", fastest.payload.count()},
                                                        {"time_s", fastest.time.count()},
                                                        {"next_s", fastest.next.count()}}));
  }
  return json;
}

}  // namespace

SweepFindings find_in_sweep(const DeviceSweep& sweep, const Profile& fitted) {
  return {contention_in(sweep, fitted), algorithms_in(sweep)};
}

void add_findings(Json& document, const SweepFindings& findings) {
  document["contention"] = Json::array();
  for (const Contention& row : findings.contention) {
    document["contention"].push_back(contention_json(row));
  }
  document["algorithms"] = Json::array();
  for (const ComparedAlgorithms& compared : findings.algorithms) {
    document["algorithms"].push_back(algorithms_json(compared));
  }
}

}  // namespace shardsim
