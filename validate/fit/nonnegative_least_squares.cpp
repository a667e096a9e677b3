#include "validate/fit/nonnegative_least_squares.hpp"

#include <Eigen/QR>
#include <vector>

namespace shardsim {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// A gradient below this share of the lengths of its column and of b is rounding; gradients nearer
// to each other than this are alike.
constexpr double rounding = 1e-10;

std::vector<Index> members(const std::vector<bool>& set) {
  std::vector<Index> result;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i]) result.push_back(static_cast<Index>(i));
  }
  return result;
}

// Least squares over the passive columns; the others are 0.
VectorXd solve_over(const MatrixXd& a, const VectorXd& b, const std::vector<bool>& passive) {
  const std::vector<Index> columns = members(passive);
  const VectorXd part = MatrixXd(a(Eigen::all, columns)).colPivHouseholderQr().solve(b);
  VectorXd x = VectorXd::Zero(a.cols());
  for (std::size_t i = 0; i < columns.size(); ++i) x[columns[i]] = part[static_cast<Index>(i)];
  return x;
}

// The column that lowers the residual fastest, -1 where none does.
Index steepest(const VectorXd& gradient, const std::vector<bool>& closed) {
  Index best = -1;
  double most = rounding;
  for (Index j = 0; j < gradient.size(); ++j) {
    if (closed[static_cast<std::size_t>(j)] || gradient[j] <= most * (1 + rounding)) continue;
    best = j;
    most = gradient[j];
  }
  return best;
}

// From x towards the solution over the passive columns, as far as none falls below 0; those that
// reach it leave, until the solution itself is at least 0.
void step_to_feasible(const MatrixXd& a, const VectorXd& b, std::vector<bool>& passive,
                      VectorXd& x) {
  while (true) {
    const VectorXd z = solve_over(a, b, passive);
    double share = 1;
    for (const Index j : members(passive)) {
      if (z[j] <= 0) share = std::min(share, x[j] / (x[j] - z[j]));
    }
    if (share >= 1) {
      x = z;
      return;
    }
    for (const Index j : members(passive)) {
      const double moved = x[j] + share * (z[j] - x[j]);
      const bool leaves = z[j] <= 0 && x[j] / (x[j] - z[j]) <= share;
      x[j] = leaves ? 0 : moved;
      if (leaves) passive[static_cast<std::size_t>(j)] = false;
    }
  }
}

VectorXd solve_unit_columns(const MatrixXd& a, const VectorXd& b) {
  const auto count = static_cast<std::size_t>(a.cols());
  VectorXd x = VectorXd::Zero(a.cols());
  const double length = b.norm();
  if (!(length > 0)) return x;
  std::vector<bool> passive(count, false);
  // Columns that rounding lets in and the solution puts out at once, until another one comes in.
  std::vector<bool> refused(count, false);
  while (true) {
    std::vector<bool> closed = passive;
    for (std::size_t j = 0; j < count; ++j) closed[j] = closed[j] || refused[j];
    const Index entering = steepest(a.transpose() * (b - a * x) / length, closed);
    if (entering < 0) return x;
    passive[static_cast<std::size_t>(entering)] = true;
    if (solve_over(a, b, passive)[entering] <= 0) {
      passive[static_cast<std::size_t>(entering)] = false;
      refused[static_cast<std::size_t>(entering)] = true;
      continue;
    }
    refused.assign(count, false);
    step_to_feasible(a, b, passive, x);
  }
}

}  // namespace

VectorXd nonnegative_least_squares(const MatrixXd& a, const VectorXd& b) {
  VectorXd lengths = a.colwise().norm().transpose();
  for (Index j = 0; j < lengths.size(); ++j) {
    if (!(lengths[j] > 0)) lengths[j] = 1;
  }
  const VectorXd x = solve_unit_columns(a * lengths.cwiseInverse().asDiagonal(), b);
  return x.cwiseQuotient(lengths);
}

}  // namespace shardsim
