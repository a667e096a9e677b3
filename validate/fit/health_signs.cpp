#include "validate/fit/health_signs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.hpp"

namespace shardsim {
namespace {

// Launches and steps are then less than what faults are told by.
constexpr double transfer_share = 0.9;
constexpr double farthest_neighbour = 4;

constexpr const char* sign_names[sign_count] = {"slow", "sagging", "too fast", "falling", "odd"};

using JudgedRows = std::vector<JudgedRow>;

double ratio_of(Seconds over, Seconds under) { return over.count() / under.count(); }

double log_size(const JudgedRow& row) { return std::log(static_cast<double>(row.bytes.count())); }

bool is_transfer(const JudgedRow& row) {
  return row.modelled > Seconds(0) && ratio_of(row.transfer, row.modelled) >= transfer_share;
}

std::optional<Finding> slow(const JudgedRows& rows) {
  const auto factor = plateau_factor(rows);
  if (!factor || *factor < suspicious_factor) return std::nullopt;
  return Finding{Sign::slow, std::find_if(rows.begin(), rows.end(), is_transfer)->bytes, *factor};
}

double rate_of(const JudgedRow& row) {
  return static_cast<double>(row.bytes.count()) / row.measured.count();
}

std::optional<Finding> sagging(const JudgedRows& rows) {
  double best = 0;
  for (const JudgedRow& row : rows) {
    if (row.bytes < rows.back().bytes) best = std::max(best, rate_of(row));
  }
  const double factor = best / rate_of(rows.back());
  if (factor < suspicious_factor) return std::nullopt;
  return Finding{Sign::sagging, rows.back().bytes, factor};
}

std::optional<Finding> too_fast(const JudgedRows& rows) {
  std::optional<Finding> worst;
  for (const JudgedRow& row : rows) {
    if (!(row.measured < row.fastest)) continue;
    const double factor = ratio_of(row.measured, row.fastest);
    if (!worst || factor < worst->factor) worst = Finding{Sign::too_fast, row.bytes, factor};
  }
  return worst;
}

std::optional<Finding> falling(const JudgedRows& rows) {
  std::optional<Finding> worst;
  const JudgedRow* longest = nullptr;  // of the smaller sizes
  for (const JudgedRow& row : rows) {
    if (longest != nullptr && longest->bytes < row.bytes) {
      const double factor = ratio_of(row.measured, longest->measured);
      if (factor <= 1 / suspicious_factor && (!worst || factor < worst->factor)) {
        worst = Finding{Sign::falling, row.bytes, factor};
      }
    }
    if (longest == nullptr || row.measured > longest->measured) longest = &row;
  }
  return worst;
}

// A row over what those beside it say; nothing where they are too far away.
std::optional<double> beside(const JudgedRow& before, const JudgedRow& row,
                             const JudgedRow& after) {
  const double reach = std::log(farthest_neighbour) + 1e-9;
  const double left = log_size(row) - log_size(before);
  const double right = log_size(after) - log_size(row);
  if (!(left > 0) || !(right > 0) || left > reach || right > reach) return std::nullopt;
  const double said =
      (right * std::log(before.measured.count()) + left * std::log(after.measured.count())) /
      (left + right);
  return row.measured.count() / std::exp(said);
}

// The farthest first: a row that is out of line makes those beside it look so.
std::vector<Finding> odd_rows(const JudgedRows& rows) {
  struct Candidate {
    std::size_t index;
    double factor;
    double distance;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
    const auto factor = beside(rows[i - 1], rows[i], rows[i + 1]);
    if (!factor) continue;
    const double distance = std::max(*factor, 1 / *factor);
    if (distance >= suspicious_factor) candidates.push_back({i, *factor, distance});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.distance > b.distance; });
  std::vector<std::size_t> taken;
  std::vector<Finding> findings;
  for (const Candidate& candidate : candidates) {
    const bool is_beside = std::any_of(taken.begin(), taken.end(), [&](std::size_t index) {
      return index + 1 == candidate.index || candidate.index + 1 == index;
    });
    if (is_beside) continue;
    taken.push_back(candidate.index);
    findings.push_back({Sign::odd, rows[candidate.index].bytes, candidate.factor});
  }
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return a.bytes < b.bytes; });
  return findings;
}

// Links at their full bandwidth, of the modelled transfer. Nothing where there is no cluster.
std::optional<double> full_share(const Profile& profile, const CostBreakdown& cost) {
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr || !cost.curve) return std::nullopt;
  const bool is_inside = cost.curve->region == Region::node;
  if (!is_inside && !cluster->scale_out) return std::nullopt;
  return is_inside ? cluster->scale_up.efficiency.value : cluster->scale_out->efficiency.value;
}

// What no algorithm or protocol goes below, of that: links without the flags that take half of
// every line in NCCL's LL, and an all-reduce whose sums switches make, which sends once what rings
// send twice.
double fastest_share(CollectiveKind kind, const CostBreakdown& cost) {
  double share = 1;
  if (cost.protocol == "LL") share /= 2;
  if (kind == CollectiveKind::all_reduce) share /= 2;
  return share;
}

}  // namespace

std::string_view name_of(Sign sign) { return sign_names[static_cast<int>(sign)]; }

bool is_of_table(Sign sign) {
  return sign == Sign::slow || sign == Sign::sagging || sign == Sign::too_fast;
}

std::optional<double> plateau_factor(const std::vector<JudgedRow>& rows) {
  std::vector<double> ratios;
  for (const JudgedRow& row : rows) {
    if (is_transfer(row)) ratios.push_back(ratio_of(row.measured, row.modelled));
  }
  if (ratios.empty()) return std::nullopt;
  return quantile(ratios, 0.5);
}

std::vector<JudgedRow> judged_rows(const CollectiveExperiment& experiment) {
  CollectiveExperiment plain = experiment;
  plain.model = collective_models::uncalibrated;
  const CollectivePrediction prediction = predict_collective(plain);
  JudgedRows rows;
  for (const CollectivePoint& point : prediction.points) {
    if (!point.measured) continue;
    JudgedRow row{point.bytes, *point.measured, point.cost.total(), point.cost.transfer};
    row.algorithm = point.cost.algorithm;
    if (const auto share = full_share(prediction.machine.profile, point.cost)) {
      row.full = row.transfer * *share;
      row.fastest = row.full * fastest_share(experiment.kind, point.cost);
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<Finding> find_signs(std::vector<JudgedRow> rows) {
  std::vector<Finding> findings;
  if (rows.empty()) return findings;
  std::sort(rows.begin(), rows.end(), [](const JudgedRow& a, const JudgedRow& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.measured < b.measured;
  });
  for (const auto& finding : {slow(rows), sagging(rows), too_fast(rows), falling(rows)}) {
    if (finding) findings.push_back(*finding);
  }
  const std::vector<Finding> odd = odd_rows(rows);
  findings.insert(findings.end(), odd.begin(), odd.end());
  return findings;
}

std::string beyond_links(const std::vector<JudgedRow>& rows) {
  std::int64_t count = 0;
  const JudgedRow* smallest = nullptr;
  for (const JudgedRow& row : rows) {
    if (row.measured >= row.full) continue;
    ++count;
    if (smallest == nullptr || row.bytes < smallest->bytes) smallest = &row;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} from {} on take less than {}'s links do at their full bandwidth, below which nothing is "
      "predicted: the library took another algorithm, or the profile's links are too slow",
      counted(count, "size"), format_bytes(smallest->bytes), smallest->algorithm);
}

std::string describe(const Finding& finding) {
  const std::string size = format_bytes(finding.bytes);
  const double slower = std::max(finding.factor, 1 / finding.factor);
  switch (finding.sign) {
    case Sign::slow:
      return fmt::format("slow: sizes from {} on take {:.1f} times what their links carry", size,
                         slower);
    case Sign::sagging:
      return fmt::format("sagging: {} go at 1/{:.1f} of the rate of a smaller size", size, slower);
    case Sign::too_fast:
      return fmt::format("too fast: {} take {:.2f} of what they take at full bandwidth", size,
                         finding.factor);
    case Sign::falling:
      return fmt::format("falling: {} take 1/{:.1f} of the time of a smaller size", size, slower);
    case Sign::odd:
      return fmt::format("odd: {} take {:.2g} times what the sizes beside it say", size,
                         finding.factor);
  }
  return {};
}

}  // namespace shardsim
