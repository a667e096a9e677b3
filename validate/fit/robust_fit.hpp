// What things cost one by one, from times that are sums of them:
//
//   measured_i ~ known_i + sum over j of terms_ij * value_j,  value_j >= 0
//
// Times span decades and err by a share of themselves, so that residuals are relative: the
// logarithms of measured over fitted. A launch among thousands that takes three times as long says
// nothing of the others: rows far from the rest lose their weight.
//
// Example: kernels of 1 and 4 GFLOP that take 12 and 18 us, terms {1, 1e9} and {1, 4e9}: 10 us for
// a launch and 2 us for a GFLOP, 500 TFLOP/s.
//
// How: Gauss-Newton steps, each a non-negative least-squares problem (Lawson & Hanson, Solving
// Least Squares Problems, 1974, ch. 23), with weights anew at each step (Holland & Welsch, Comm.
// Stat. A6, 1977): first Huber's, k = 1.345 (Ann. Math. Stat. 35, 1964), with the scale from the
// median absolute residual, then Tukey's bisquare, c = 4.685, with that scale kept (Yohai's
// MM-estimate, Ann. Stat. 15, 1987). Both constants are 95 % as efficient as least squares where
// errors are normal. Huber's alone would leave a tenth of rows that are all too slow a pull of a
// fifth of the scale on every value, which is more than the intervals of a hundred rows.
//
// Intervals are of 95 %: Student's t times the standard error from the covariance of M-estimates
// with Huber's correction for few rows (Robust Statistics, 1981, 7.6), cut off at 0. No bootstrap:
// where three rows alone tell a value, most samples drawn from the rows leave one of them out. The
// constraint does not narrow them: beside a value that it holds at 0 they are too wide.
#pragma once

#include <cstddef>
#include <vector>

namespace shardsim {

struct FittedTerm {
  double value = 0;
  double low = 0;
  double high = 0;         // infinite where the rows are no more than the terms
  bool determined = true;  // if not: one of the values that fit alike, from 0 to infinity
};

struct RobustFit {
  std::vector<FittedTerm> terms;  // by column
  double scale = 0;               // of a row's error, a share of it: 0.05 is 5 %
  std::size_t outliers = 0;       // rows that have no weight: beyond 4.685 times the scale
  // Of all rows: absolute relative errors of what is fitted.
  double median_error = 0;
  double percentile_90_error = 0;
};

// At least one row, all of one length; terms and what is known (left out: nothing is) at least 0,
// times above 0, all finite. The order of
// rows does not matter, bit for bit; units do not, to rounding. A term that is 0 in every row that
// counts, or that is a sum of others up to 1 in 10^4 (what a table prints has four digits), is not
// determined.
[[nodiscard]] RobustFit fit_nonnegative(const std::vector<std::vector<double>>& terms,
                                        const std::vector<double>& measured,
                                        const std::vector<double>& known = {});

}  // namespace shardsim
