// Values from times by hand: exact data, constraints, what the rows do not tell, outliers.
#include "validate/fit/robust_fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "validate/fit/nonnegative_least_squares.hpp"

namespace shardsim {
namespace {

using Rows = std::vector<std::vector<double>>;

Eigen::MatrixXd matrix_of(const Rows& rows) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(rows.size()),
                         static_cast<Eigen::Index>(rows.front().size()));
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
      matrix(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return matrix;
}

// A launch of 10 us and 2 us a GFLOP, for kernels of 1, 2, 4, ... GFLOP.
struct Kernels {
  Rows terms;
  std::vector<double> times;
};

Kernels kernels(int count) {
  Kernels result;
  for (int i = 0; i < count; ++i) {
    const double gflop = std::exp2(i);
    result.terms.push_back({1, 1e9 * gflop});
    result.times.push_back(10e-6 + 2e-6 * gflop);
  }
  return result;
}

}  // namespace

// The header's example. Without the constraint x = (3, -1); with x1 = 0 the first is the mean of b.
TEST_CASE("least squares that must not be negative") {
  const Eigen::VectorXd x =
      nonnegative_least_squares(matrix_of({{1, 1}, {1, 2}}), Eigen::Vector2d(2, 1));
  CHECK(x[0] == Approx(1.5));
  CHECK(x[1] == 0);
}

// b = 0.5 of the first and 2 of the third; of equal columns the first is taken.
TEST_CASE("of columns that fit alike the first has a value") {
  const Eigen::VectorXd x = nonnegative_least_squares(matrix_of({{1, 2, 0}, {1, 2, 1}, {1, 2, 4}}),
                                                      Eigen::Vector3d(0.5, 2.5, 8.5));
  CHECK(x[0] == Approx(0.5));
  CHECK(x[1] == 0);
  CHECK(x[2] == Approx(2));
}

// -a is no column that helps; nothing is added for it.
TEST_CASE("where every column leads away the answer is 0") {
  const Eigen::VectorXd x =
      nonnegative_least_squares(matrix_of({{1, 0}, {0, 1}}), Eigen::Vector2d(-1, -3));
  CHECK(x.norm() == 0);
}

TEST_CASE("two kernels tell a launch and a rate, but not how well") {
  const Kernels two = {{{1, 1e9}, {1, 4e9}}, {12e-6, 18e-6}};
  const RobustFit fit = fit_nonnegative(two.terms, two.times);
  CHECK(fit.terms[0].value == Approx(10e-6));
  CHECK(fit.terms[1].value == Approx(2e-15));
  CHECK(fit.terms[0].determined);
  CHECK(fit.terms[0].low == 0);
  CHECK(std::isinf(fit.terms[0].high));
}

TEST_CASE("exact times give exact values and intervals of no width") {
  const Kernels exact = kernels(12);
  const RobustFit fit = fit_nonnegative(exact.terms, exact.times);
  const double truth[] = {10e-6, 2e-15};
  for (const std::size_t j : {0U, 1U}) {
    CHECK(fit.terms[j].determined);
    CHECK(fit.terms[j].value == Approx(truth[j]).epsilon(1e-12));
    CHECK(fit.terms[j].high - fit.terms[j].low < 1e-7 * truth[j]);
  }
  CHECK(fit.outliers == 0);
  CHECK(fit.percentile_90_error < 1e-12);
}

TEST_CASE("a kernel that took three times as long says nothing of the others") {
  Kernels odd = kernels(12);
  odd.times[3] *= 3;
  odd.times[9] *= 3;
  const RobustFit fit = fit_nonnegative(odd.terms, odd.times);
  CHECK(fit.terms[0].value == Approx(10e-6).epsilon(1e-9));
  CHECK(fit.terms[1].value == Approx(2e-15).epsilon(1e-9));
  CHECK(fit.outliers == 2);
  // Of 12 errors the largest two are 1 - 1/3; the 90th percentile lies between the 10th and 11th.
  CHECK(fit.percentile_90_error == Approx(0.9 * 2 / 3));
  CHECK(fit.median_error < 1e-9);
}

// Times that fall with the size: a rate cannot be negative. Half of the rows have 8 us, half 12 us;
// the logarithms' mean is that of their product's root.
TEST_CASE("a value that would be negative is 0") {
  const RobustFit fit = fit_nonnegative({{1, 1}, {1, 2}, {1, 3}, {1, 4}}, {12, 12, 8, 8});
  CHECK(fit.terms[1].value == 0);
  CHECK(fit.terms[1].low == 0);
  CHECK(fit.terms[1].determined);
  CHECK(fit.terms[0].value == Approx(std::sqrt(96)));
}

TEST_CASE("what the rows do not tell is said") {
  SECTION("a term that none has") {
    const RobustFit fit = fit_nonnegative({{1, 0}, {2, 0}, {3, 0}}, {2, 4, 6});
    CHECK(fit.terms[0].determined);
    CHECK(fit.terms[0].value == Approx(2));
    CHECK_FALSE(fit.terms[1].determined);
    CHECK(fit.terms[1].value == 0);
    CHECK(std::isinf(fit.terms[1].high));
  }
  SECTION("two that go together, and one that does not") {
    const RobustFit fit = fit_nonnegative({{1, 3, 1}, {2, 6, 1}, {4, 12, 1}, {8, 24, 1}},
                                          {7 + 5, 14 + 5, 28 + 5, 56 + 5});
    CHECK_FALSE(fit.terms[0].determined);
    CHECK_FALSE(fit.terms[1].determined);
    CHECK(fit.terms[0].value + 3 * fit.terms[1].value == Approx(7));
    CHECK(fit.terms[2].determined);
    CHECK(fit.terms[2].value == Approx(5));
  }
  SECTION("one that is the sum of two others") {
    const RobustFit fit =
        fit_nonnegative({{1, 1, 2, 0}, {1, 2, 3, 1}, {1, 4, 5, 0}, {1, 8, 9, 3}, {1, 9, 10, 1}},
                        {4, 6, 10, 18, 20});
    for (const std::size_t j : {0U, 1U, 2U}) CHECK_FALSE(fit.terms[j].determined);
    CHECK(fit.terms[3].determined);
  }
  SECTION("one that only outliers have") {
    Kernels odd = kernels(12);
    for (std::vector<double>& row : odd.terms) row.push_back(0);
    odd.terms[11][2] = 1;
    odd.times[11] *= 3;
    // It takes up what the row has too much: nothing says whether that is an outlier.
    const RobustFit fit = fit_nonnegative(odd.terms, odd.times);
    CHECK(fit.terms[2].determined);
    CHECK(fit.terms[2].value == Approx(2 * (10e-6 + 2e-6 * 2048)));
  }
}

}  // namespace shardsim
