#include "sim/collectives/calibrated_cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace shardsim {
namespace {

// Between these powers of two times are corrected; beyond them as at them.
constexpr int smallest_power = 3;
constexpr int largest_power = 40;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct Block {
  std::vector<double> values;
  double level = 0;
};

Block joined(Block low, const Block& high) {
  low.values.insert(low.values.end(), high.values.begin(), high.values.end());
  low.level = median(low.values);
  return low;
}

// One function of those that never fall and have the least sum of absolute differences: adjacent
// violators are pooled (Robertson, Wright, Dykstra: Order Restricted Statistical Inference, 1988).
std::vector<double> never_falling(const std::vector<double>& values) {
  std::vector<Block> blocks;
  for (const double value : values) {
    blocks.push_back({{value}, value});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].level > blocks.back().level) {
      const Block high = std::move(blocks.back());
      blocks.pop_back();
      blocks.back() = joined(std::move(blocks.back()), high);
    }
  }
  std::vector<double> result;
  for (const Block& block : blocks) result.insert(result.end(), block.values.size(), block.level);
  return result;
}

// Transfer over what comes before it: how long pieces are beside the hops that they make.
double length_of(const CostBreakdown& cost) {
  return cost.transfer.count() / (cost.launch + cost.latency).count();
}

// Sizes that groups with other numbers of members on each node have their length at.
class AlikeSizes {
 public:
  explicit AlikeSizes(const CostWithMembers& with_members) : with_members_(with_members) {}

  // Of the group that `curve` was measured with: as long as `here`, which is of `payload`.
  Bytes size(const CalibrationCurve& curve, const CostBreakdown& here, Bytes payload) {
    if (!with_members_ || curve.members_per_node == 0) return payload;
    const auto [place, is_new] = lengths_.try_emplace(curve.members_per_node);
    if (is_new) place->second = lengths(curve.members_per_node);
    const std::vector<double>& of_powers = place->second;
    const double length = std::log2(length_of(here));
    if (of_powers.empty() || !std::isfinite(length)) return payload;
    const auto after = std::upper_bound(of_powers.begin(), of_powers.end(), length);
    const auto next = std::clamp<std::ptrdiff_t>(after - of_powers.begin(), 1,
                                                 static_cast<std::ptrdiff_t>(of_powers.size()) - 1);
    const double low = of_powers[static_cast<std::size_t>(next - 1)];
    const double step = of_powers[static_cast<std::size_t>(next)] - low;
    const double share = step > 0 ? std::clamp((length - low) / step, 0.0, 1.0) : 0;
    const double power = smallest_power + static_cast<double>(next - 1) + share;
    return Bytes(std::llround(std::exp2(power)));
  }

 private:
  // log2, at every power of two, never falling: a protocol with longer steps begins anew.
  [[nodiscard]] std::vector<double> lengths(std::int64_t members_per_node) const {
    const std::optional<CostOfSize> cost = with_members_(members_per_node);
    std::vector<double> result;
    if (!cost) return result;
    for (int power = smallest_power; power <= largest_power; ++power) {
      const double length = std::log2(length_of((*cost)(Bytes(std::int64_t{1} << power))));
      if (!std::isfinite(length)) return {};
      result.push_back(result.empty() ? length : std::max(length, result.back()));
    }
    return result;
  }

  const CostWithMembers& with_members_;
  std::map<std::int64_t, std::vector<double>> lengths_;
};

// The curves for a key, looked for once: sizes next to each other mostly have the same.
class CurveSearch {
 public:
  explicit CurveSearch(const std::vector<Calibration>& calibrations)
      : calibrations_(calibrations) {}

  const std::optional<CurvesAround>& find(const std::optional<CurveKey>& key) {
    if (key != last_) {
      found_ = key ? find_curves(calibrations_, *key) : std::nullopt;
      last_ = key;
    }
    return found_;
  }

 private:
  const std::vector<Calibration>& calibrations_;
  std::optional<CurveKey> last_;
  std::optional<CurvesAround> found_;
};

// log2 of the corrected times of all powers of two. Below the sizes that have been measured they
// are what they are, no more than what follows.
std::vector<double> corrected_times(const CostOfSize& cost, CurveSearch& search, AlikeSizes& alike,
                                    double least) {
  std::vector<double> times;
  std::size_t unmeasured = 0;
  for (int power = smallest_power; power <= largest_power; ++power) {
    const Bytes payload(std::int64_t{1} << power);
    const CostBreakdown here = cost(payload);
    const std::optional<CurvesAround>& curves = search.find(here.curve);
    double factor = 1;
    bool is_measured = false;
    if (curves) {
      const Bytes of_fewer = alike.size(*curves->fewer, here, payload);
      const Bytes of_more = alike.size(*curves->more, here, payload);
      factor = curves->factor_at(of_fewer, of_more);
      is_measured = curves->reaches(of_fewer, of_more);
    }
    if (!is_measured) unmeasured = times.size() + 1;
    times.push_back(
        std::log2(std::max(here.total().count() * factor, here.transfer.count() * least)));
  }
  if (unmeasured >= times.size()) unmeasured = 0;
  const auto measured = times.begin() + static_cast<std::ptrdiff_t>(unmeasured);
  const std::vector<double> rising = never_falling({measured, times.end()});
  std::copy(rising.begin(), rising.end(), measured);
  for (std::size_t i = unmeasured; i > 0; --i) times[i - 1] = std::min(times[i - 1], times[i]);
  return times;
}

StandIn stand_in_for(const CurveKey& key, const CurvesAround& curves) {
  StandIn result;
  const CurveKey& measured = curves.fewer->key;
  // A reduce-scatter sends what an all-gather sends, the other way.
  const bool is_alike = measured.collective == key.collective ||
                        (measured.collective == "all-gather" && key.collective == "reduce-scatter");
  result.other_algorithm = !is_alike || measured.algorithm != key.algorithm;
  const bool is_between = measured.nodes <= key.nodes && key.nodes <= curves.more->key.nodes;
  if (!is_between) result.nodes = measured.nodes;
  return result;
}

}  // namespace

CostBreakdown calibrated_cost(const CostOfSize& cost, const std::vector<Calibration>& calibrations,
                              double least, Bytes payload, const CostWithMembers& with_members) {
  CostBreakdown result = cost(payload);
  CurveSearch search(calibrations);
  const std::optional<CurvesAround> curves = search.find(result.curve);
  if (!curves) return result;
  result.stand_in = stand_in_for(*result.curve, *curves);
  if (!(result.total() > Seconds(0)) || payload < Bytes(1)) return result;
  AlikeSizes alike(with_members);
  const std::vector<double> times = corrected_times(cost, search, alike, least);
  const double size = std::log2(static_cast<double>(payload.count())) - smallest_power;
  const double within = std::clamp(size, 0.0, static_cast<double>(times.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(within), times.size() - 2);
  const double share = within - static_cast<double>(below);
  // Past the last power the transfer is all.
  const double beyond = std::max(0.0, size - within);
  const double time = std::exp2(times[below] + share * (times[below + 1] - times[below]) + beyond);
  result.factor = time / result.total().count();
  for (Seconds* term : {&result.launch, &result.latency, &result.transfer}) {
    *term = *term * result.factor;
  }
  return result;
}

}  // namespace shardsim
