#include "validate/fit/collective_terms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace shardsim {
namespace {

double carried(const LinkProfile& link) {
  return link.bandwidth.value.count() * link.efficiency.value;
}

// The level whose time the transfer is.
bool is_bound_across(const CostBreakdown& cost) {
  return std::none_of(cost.links.begin(), cost.links.end(), [](const LinkUse& use) {
    return use.level == LinkLevel::scale_up && use.out == 1;
  });
}

struct CollectiveTerms {
  double launches = 0;
  double steps_inside = 0;
  double bytes_inside = 0;
  double steps_across = 0;
  double bytes_across = 0;
};

// Columns of what is fitted.
constexpr std::size_t inside_terms = 1;  // a step, then a byte
constexpr std::size_t across_terms = 3;

std::vector<std::vector<double>> columns_of(const std::vector<CollectiveTerms>& terms,
                                            bool goes_across) {
  std::vector<std::vector<double>> rows;
  for (const CollectiveTerms& of : terms) {
    rows.push_back({of.launches, of.steps_inside, of.bytes_inside});
    if (!goes_across) continue;
    rows.back().push_back(of.steps_across);
    rows.back().push_back(of.bytes_across);
  }
  return rows;
}

// But for rounding.
bool nearly_same(const std::vector<std::vector<double>>& a,
                 const std::vector<std::vector<double>>& b) {
  constexpr double rounding = 1e-6;
  const auto near = [&](double x, double y) { return std::abs(x - y) <= rounding * (x + y); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::equal(a[i].begin(), a[i].end(), b[i].begin(), near)) return false;
  }
  return true;
}

// `profile` with these numbers, where they are told; latencies above 0, as TermsByProfile needs
// them.
Profile with_fitted(Profile profile, const RobustFit& fit) {
  constexpr double least = 1e-9;
  const auto set_latency = [&](Sourced<Seconds>& latency, const FittedTerm& term) {
    if (term.determined) latency.value = Seconds(std::max(term.value, least));
  };
  const auto set_link = [&](LinkProfile& link, std::size_t first) {
    set_latency(link.latency, fit.terms[first]);
    if (!is_told(fit.terms[first + 1])) return;
    link.bandwidth.value = Bandwidth(1 / fit.terms[first + 1].value);
    link.efficiency.value = 1;
  };
  auto& cluster = std::get<ClusterProfile>(profile.network);
  set_latency(profile.collective_launch, fit.terms.front());
  set_link(cluster.scale_up, inside_terms);
  if (cluster.scale_out) set_link(*cluster.scale_out, across_terms);
  return profile;
}

// How often each number of a profile is in the cost of a record. Latencies and the launch are above
// 0.
class TermsByProfile {
 public:
  TermsByProfile(const Profile& profile, std::int64_t processes)
      : profile_(profile), costs_(profile, processes, collective_models::uncalibrated) {
    if (!cluster().scale_out) return;
    Profile slower = profile;
    std::get<ClusterProfile>(slower.network).scale_out->latency.value =
        step_across() * (1 + little);
    slower_.emplace(slower, processes, collective_models::uncalibrated);
  }

  [[nodiscard]] CollectiveTerms of(const SweptCollective& swept) {
    const CostBreakdown whole = costs_.of(swept);
    CollectiveTerms terms;
    terms.launches = whole.launch.count() / profile_.collective_launch.value.count();
    Seconds latency_inside = whole.latency;
    if (slower_) {
      const Seconds grown = slower_->of(swept).latency - whole.latency;
      terms.steps_across = std::round(grown.count() / (step_across().count() * little));
      latency_inside -= step_across() * terms.steps_across;
    }
    constexpr double rounding = 1e-3;  // of a step
    const double steps = latency_inside.count() / cluster().scale_up.latency.value.count();
    terms.steps_inside = steps < rounding ? 0 : steps;
    if (is_bound_across(whole)) {
      terms.bytes_across = whole.transfer.count() * carried(*cluster().scale_out);
    } else {
      terms.bytes_inside = whole.transfer.count() * carried(cluster().scale_up);
    }
    return terms;
  }

 private:
  // By so much more latency across, the cost grows and what bounds it stays.
  static constexpr double little = 1e-6;

  [[nodiscard]] const ClusterProfile& cluster() const {
    return std::get<ClusterProfile>(profile_.network);
  }
  [[nodiscard]] Seconds step_across() const { return cluster().scale_out->latency.value; }

  const Profile& profile_;
  SweptCosts costs_;
  std::optional<SweptCosts> slower_;
};

}  // namespace

SweptCosts::SweptCosts(const Profile& profile, std::int64_t processes, const CollectiveModel& model)
    : placement_(Mesh({{"processes", processes}}),
                 make_machine(profile, processes, std::nullopt, {"", "/collectives"}), model),
      costs_(placement_) {}

CostBreakdown SweptCosts::of(const SweptCollective& swept) {
  Collective collective;
  collective.kind = swept.kind;
  collective.dtype = DType::f32;
  collective.payload = swept.payload;
  for (std::int64_t i = 0; i < swept.groups; ++i) {
    std::vector<std::int64_t> group(static_cast<std::size_t>(swept.group_size));
    std::iota(group.begin(), group.end(), i * swept.group_size);
    collective.groups.push_back(std::move(group));
  }
  return costs_.cost(collective);
}

bool is_told(const FittedTerm& term) { return term.determined && term.value > 0; }

CollectiveFit fit_terms(const Profile& profile, const std::vector<SweptCollective>& collectives,
                        std::int64_t processes) {
  const bool goes_across =
      std::get<ClusterProfile>(profile.network).scale_out.has_value() &&
      std::get<ClusterProfile>(profile.network).devices_per_node.value < processes;
  const auto columns_by = [&](const Profile& of) {
    TermsByProfile by_profile(of, processes);
    std::vector<CollectiveTerms> terms;
    for (const SweptCollective& swept : collectives) terms.push_back(by_profile.of(swept));
    return columns_of(terms, goes_across);
  };
  std::vector<double> times;
  for (const SweptCollective& swept : collectives) times.push_back(swept.time.median.count());
  std::vector<std::vector<double>> columns = columns_by(profile);
  RobustFit fit = fit_nonnegative(columns, times);
  constexpr int most_rounds = 20;  // where two sets of numbers lead to each other either will do
  for (int round = 1; round < most_rounds && goes_across; ++round) {
    std::vector<std::vector<double>> next = columns_by(with_fitted(profile, fit));
    if (nearly_same(next, columns)) break;
    columns = std::move(next);
    fit = fit_nonnegative(columns, times);
  }
  const auto link = [&](std::size_t first) {
    LinkFit of{fit.terms[first], fit.terms[first + 1]};
    for (std::size_t i = 0; i < times.size(); ++i) {
      of.most = std::max(of.most, columns[i][first + 1] / times[i]);
    }
    return of;
  };
  CollectiveFit result{fit.terms.front(), link(inside_terms), std::nullopt};
  if (goes_across) result.across = link(across_terms);
  return result;
}

}  // namespace shardsim
