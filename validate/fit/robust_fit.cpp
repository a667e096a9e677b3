#include "validate/fit/robust_fit.hpp"

#include <Eigen/SVD>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "measurements/error_summary.hpp"
#include "validate/fit/nonnegative_least_squares.hpp"
#include "validate/fit/student_t.hpp"

namespace shardsim {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double huber_k = 1.345;
constexpr double bisquare_c = 4.685;
// The median absolute deviation of a normal distribution.
constexpr double normal_mad = 0.6745;
// What is fitted to less than this is fitted exactly: arithmetic on doubles.
constexpr double least_scale = 1e-9;
// Fitted times below this share of the measured one are as far off as anything can be.
constexpr double least_share = 1e-3;
constexpr double largest_condition = 1e4;
constexpr int most_steps = 200;
constexpr int most_halvings = 20;
constexpr double settled = 1e-13;
// A loss that grew by less did not grow: near its minimum it is a sum's rounding that changes.
constexpr double loss_slack = 1e-10;

// A function rho of residuals in units of their scale: how it weighs a row, its derivative psi and
// that one's.
struct Loss {
  double (*rho)(double);
  double (*weight)(double);  // psi(u) / u
  double (*psi_slope)(double);
};

constexpr Loss huber = {[](double u) {
                          const double a = std::abs(u);
                          return a <= huber_k ? u * u / 2 : huber_k * (a - huber_k / 2);
                        },
                        [](double u) { return std::min(1.0, huber_k / std::abs(u)); },
                        [](double u) { return std::abs(u) <= huber_k ? 1.0 : 0.0; }};

// 1 - (u / c)^2, 0 beyond c.
double inside(double u) {
  const double share = u / bisquare_c;
  return std::max(0.0, 1 - share * share);
}

constexpr Loss bisquare = {
    [](double u) { return bisquare_c * bisquare_c / 6 * (1 - std::pow(inside(u), 3)); },
    [](double u) { return inside(u) * inside(u); },
    [](double u) { return inside(u) * (5 * inside(u) - 4); }};

// Rows in an order of their own; columns whose largest entry beside the measured time is 1.
struct Problem {
  MatrixXd terms;
  VectorXd known;  // of each time
  VectorXd measured;
  VectorXd units;  // of columns: a value here is one of the caller's times this
};

Problem make_problem(const std::vector<std::vector<double>>& terms,
                     const std::vector<double>& measured, const std::vector<double>& known) {
  std::vector<std::size_t> order(terms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(measured[a], terms[a], known[a]) < std::tie(measured[b], terms[b], known[b]);
  });
  const auto rows = static_cast<Index>(terms.size());
  const auto columns = static_cast<Index>(terms.front().size());
  Problem problem{MatrixXd(rows, columns), VectorXd(rows), VectorXd(rows), VectorXd::Zero(columns)};
  for (Index i = 0; i < rows; ++i) {
    const std::size_t row = order[static_cast<std::size_t>(i)];
    problem.measured[i] = measured[row];
    problem.known[i] = known[row];
    for (Index j = 0; j < columns; ++j) {
      problem.terms(i, j) = terms[row][static_cast<std::size_t>(j)];
      problem.units[j] = std::max(problem.units[j], problem.terms(i, j) / problem.measured[i]);
    }
  }
  for (Index j = 0; j < columns; ++j) {
    if (!(problem.units[j] > 0)) problem.units[j] = 1;
    problem.terms.col(j) /= problem.units[j];
  }
  return problem;
}

// What values say: of every row the time, and how far the measured one is from it.
struct Fitted {
  VectorXd values;
  VectorXd times;
  VectorXd residuals;  // logarithms
};

VectorXd times_of(const Problem& problem, const VectorXd& values) {
  return problem.known + problem.terms * values;
}

Fitted fitted_with(const Problem& problem, VectorXd values) {
  Fitted fitted{std::move(values), {}, {}};
  fitted.times = times_of(problem, fitted.values).cwiseMax(least_share * problem.measured);
  fitted.residuals = problem.measured.cwiseQuotient(fitted.times).array().log().matrix();
  return fitted;
}

// From the median absolute residual, leaving out as many of the smallest as there are terms, which
// are small because the terms were fitted to them (DuMouchel & O'Brien, Computer Science and
// Statistics, 1989).
double scale_of(const VectorXd& residuals, Index terms) {
  std::vector<double> sizes;
  for (const double residual : residuals) sizes.push_back(std::abs(residual));
  std::sort(sizes.begin(), sizes.end());
  const auto drop = std::min(static_cast<std::size_t>(terms), sizes.size() - 1);
  sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(drop));
  return std::max(quantile(sizes, 0.5) / normal_mad, least_scale);
}

double loss_of(const Fitted& fitted, const Loss& loss, double scale) {
  double sum = 0;
  for (const double residual : fitted.residuals) sum += loss.rho(residual / scale);
  return sum;
}

VectorXd weights_of(const VectorXd& residuals, const Loss& loss, double scale) {
  return residuals.unaryExpr([&](double residual) { return loss.weight(residual / scale); });
}

// The values that fit best what `residuals` beside `times` say of rows of these weights.
VectorXd solve(const Problem& problem, const VectorXd& times, const VectorXd& targets,
               const VectorXd& weights) {
  const VectorXd roots = weights.cwiseSqrt();
  return nonnegative_least_squares(roots.cwiseQuotient(times).asDiagonal() * problem.terms,
                                   roots.cwiseProduct(targets));
}

// Relative to the measured time the problem is convex: a start that needs none. It leans towards
// times that are too small, since rows that took too long are nearer in this measure.
VectorXd first_values(const Problem& problem) {
  const VectorXd ones = VectorXd::Ones(problem.measured.size());
  const VectorXd unknown = ones - problem.known.cwiseQuotient(problem.measured);
  VectorXd weights = ones;
  VectorXd values = VectorXd::Zero(problem.terms.cols());
  for (int step = 0; step < most_steps; ++step) {
    const VectorXd before = values;
    values = solve(problem, problem.measured, unknown, weights);
    if ((values - before).norm() <= settled * values.norm()) break;
    const VectorXd residuals = ones - times_of(problem, values).cwiseQuotient(problem.measured);
    weights = weights_of(residuals, huber, scale_of(residuals, problem.terms.cols()));
  }
  return values;
}

// A Gauss-Newton step on the logarithms, half as long until the loss is no more than before.
Fitted improve(const Problem& problem, const Fitted& from, const Loss& loss, double scale) {
  const VectorXd targets = (problem.terms * from.values).cwiseQuotient(from.times) + from.residuals;
  const VectorXd goal =
      solve(problem, from.times, targets, weights_of(from.residuals, loss, scale));
  const double most = loss_of(from, loss, scale) * (1 + loss_slack);
  double share = 1;
  for (int halving = 0; halving < most_halvings; ++halving) {
    Fitted fitted = fitted_with(problem, from.values + share * (goal - from.values));
    if (loss_of(fitted, loss, scale) <= most) return fitted;
    share /= 2;
  }
  return from;
}

bool alike(const Fitted& a, const Fitted& b) {
  return (a.residuals - b.residuals).cwiseAbs().maxCoeff() <= settled;
}

// With `scale` not given it follows the residuals.
Fitted descend(const Problem& problem, Fitted fitted, const Loss& loss, const double* scale) {
  for (int step = 0; step < most_steps; ++step) {
    const double current =
        scale != nullptr ? *scale : scale_of(fitted.residuals, problem.terms.cols());
    Fitted next = improve(problem, fitted, loss, current);
    if (alike(next, fitted)) return next;
    fitted = std::move(next);
  }
  return fitted;
}

// The rows that have weight, each beside its fitted time, with columns of length 1.
struct Design {
  MatrixXd rows;
  VectorXd lengths;
};

Design design_of(const Problem& problem, const Fitted& fitted, double scale) {
  std::vector<Index> kept;
  for (Index i = 0; i < fitted.residuals.size(); ++i) {
    if (bisquare.weight(fitted.residuals[i] / scale) > 0) kept.push_back(i);
  }
  Design design;
  design.rows = (fitted.times.cwiseInverse().asDiagonal() * problem.terms)(kept, Eigen::all);
  design.lengths = design.rows.colwise().norm().transpose();
  for (Index j = 0; j < design.lengths.size(); ++j) {
    if (design.lengths[j] > 0) design.rows.col(j) /= design.lengths[j];
  }
  return design;
}

// Of every value the variance for errors of variance 1; negative where it is not determined: where
// the directions that the rows do not tell have a part in it.
VectorXd variances_of(const Design& design) {
  const Index columns = design.rows.cols();
  if (design.rows.rows() == 0) return VectorXd::Constant(columns, -1);
  const Eigen::JacobiSVD<MatrixXd> svd(design.rows, Eigen::ComputeFullV);
  const VectorXd& strengths = svd.singularValues();
  const double least = strengths[0] / largest_condition;
  VectorXd variances = VectorXd::Zero(columns);
  VectorXd unseen = VectorXd::Zero(columns);
  for (Index k = 0; k < columns; ++k) {
    const VectorXd parts = svd.matrixV().col(k).cwiseAbs2();
    if (k < strengths.size() && strengths[k] > least) {
      variances += parts / (strengths[k] * strengths[k]);
    } else {
      unseen += parts;
    }
  }
  for (Index j = 0; j < columns; ++j) {
    // A direction is known as well as the weakest one that the rows tell.
    const bool told = design.lengths[j] > 0 && std::sqrt(unseen[j]) <= 1 / largest_condition;
    variances[j] = told ? variances[j] / (design.lengths[j] * design.lengths[j]) : -1;
  }
  return variances;
}

// Huber 1981, 7.6: the variance of errors that a normal least-squares fit would need for the same
// covariance. Nothing is left to tell it from where there are as many terms as rows.
double error_variance(const VectorXd& residuals, double scale, Index terms) {
  double rows = 0;
  double psi_squares = 0;
  double slope_sum = 0;
  double slope_squares = 0;
  for (const double residual : residuals) {
    const double u = residual / scale;
    if (!(bisquare.weight(u) > 0)) continue;
    const double slope = bisquare.psi_slope(u);
    rows += 1;
    psi_squares += std::pow(bisquare.weight(u) * u, 2);
    slope_sum += slope;
    slope_squares += slope * slope;
  }
  const auto count = static_cast<double>(terms);
  const double slope = slope_sum / rows;
  if (rows <= count || slope <= 0) return std::numeric_limits<double>::infinity();
  const double spread = slope_squares / rows - slope * slope;
  const double correction = 1 + count / rows * spread / (slope * slope);
  return std::pow(correction * scale / slope, 2) * psi_squares / (rows - count);
}

std::vector<FittedTerm> intervals(const Problem& problem, const Fitted& fitted, double scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Index columns = problem.terms.cols();
  const Design design = design_of(problem, fitted, scale);
  const VectorXd variances = variances_of(design);
  const double variance = error_variance(fitted.residuals, scale, columns);
  const auto freedom = static_cast<double>(design.rows.rows() - columns);
  std::vector<FittedTerm> terms;
  for (Index j = 0; j < columns; ++j) {
    FittedTerm term;
    term.value = fitted.values[j] / problem.units[j];
    term.determined = variances[j] >= 0;
    double reach = infinity;
    if (term.determined && std::isfinite(variance)) {
      reach = student_t_95(freedom) * std::sqrt(variance * variances[j]) / problem.units[j];
    }
    term.low = std::max(0.0, term.value - reach);
    term.high = term.value + reach;
    terms.push_back(term);
  }
  return terms;
}

}  // namespace

RobustFit fit_nonnegative(const std::vector<std::vector<double>>& terms,
                          const std::vector<double>& measured, const std::vector<double>& known) {
  assert(!terms.empty() && terms.size() == measured.size());
  assert(known.empty() || known.size() == measured.size());
  const Problem problem =
      make_problem(terms, measured, known.empty() ? std::vector<double>(measured.size()) : known);
  Fitted fitted = fitted_with(problem, first_values(problem));
  fitted = descend(problem, std::move(fitted), huber, nullptr);
  const double scale = scale_of(fitted.residuals, problem.terms.cols());
  fitted = descend(problem, std::move(fitted), bisquare, &scale);

  RobustFit result;
  result.terms = intervals(problem, fitted, scale);
  result.scale = scale;
  std::vector<double> errors;
  const VectorXd times = times_of(problem, fitted.values);
  for (Index i = 0; i < problem.measured.size(); ++i) {
    errors.push_back(std::abs(times[i] / problem.measured[i] - 1));
    if (!(bisquare.weight(fitted.residuals[i] / scale) > 0)) ++result.outliers;
  }
  result.median_error = quantile(errors, 0.5);
  result.percentile_90_error = quantile(errors, 0.9);
  return result;
}

}  // namespace shardsim
