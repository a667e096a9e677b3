// How sure a factor is: by hand, and as often as it promises.
#include "validate/fit/factor_interval.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "experiments/collective_experiment.hpp"
#include "validate/fit/student_t.hpp"

namespace shardsim {
namespace {

std::vector<LogSample> samples_of(const std::vector<double>& factors) {
  std::vector<LogSample> samples;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    samples.push_back({static_cast<double>(20 + i), std::log(factors[i])});
  }
  return samples;
}

}  // namespace

// Its 97.5 % quantiles, which round to those of NIST/SEMATECH's e-Handbook of Statistical Methods,
// 1.3.6.7.2: 12.706, 4.303, 2.228 for 1, 2 and 10 degrees of freedom, 1.960 for infinitely many.
TEST_CASE("Student's t") {
  CHECK(student_t_95(1) == Approx(12.706).epsilon(1e-4));
  CHECK(student_t_95(2) == Approx(4.3027).epsilon(1e-4));
  CHECK(student_t_95(10) == Approx(2.2281).epsilon(1e-4));
  CHECK(student_t_95(1e6) == Approx(1.95996).epsilon(1e-4));
}

// The header's example.
TEST_CASE("three tables tell how far a fourth may be") {
  const SamplesByTable tables = {{"a", samples_of({1.2, 1.2, 1.2})},
                                 {"b", samples_of({1.25, 1.25, 1.25})},
                                 {"c", samples_of({1.3, 1.3, 1.3})}};
  const auto interval = factor_interval(tables, 21, std::log(1.25));
  REQUIRE(interval);
  CHECK(interval->low == Approx(1.0106).epsilon(1e-4));
  CHECK(interval->high == Approx(1.5461).epsilon(1e-4));
  CHECK(interval->tables == 3);
}

// They meet at 2 MiB and are a factor of 1.1 apart beside it: s^2 = 2/3 of log(1.1)^2 / 2, s =
// 0.0550; 12.706 * 0.0550 * sqrt(1 + pi / 4) = 0.934.
TEST_CASE("two tables that meet at a size are no surer there") {
  const SamplesByTable tables = {{"a", samples_of({1, 1, 1})}, {"b", samples_of({1.1, 1, 1.1})}};
  const auto interval = factor_interval(tables, 21, 0);
  REQUIRE(interval);
  CHECK(std::log(interval->high) == Approx(0.934).epsilon(1e-3));
  CHECK(std::log(interval->low) == Approx(-0.934).epsilon(1e-3));
}

TEST_CASE("two tables that differ much tell nothing") {
  const SamplesByTable tables = {{"a", samples_of({1, 1})}, {"b", samples_of({3, 3})}};
  CHECK_FALSE(factor_interval(tables, 20, 0));
}

// Of logarithms 0, d, 0, d, 0 every inner row is d from the middle of those beside it, which with
// variances 1 + 1/4 + 1/4 is d^2 / 1.5 for one: s = d * sqrt(2 / 3). t of 3 is 3.1824.
TEST_CASE("a single table tells its own scatter") {
  const double d = 0.03;
  const double up = std::exp(d);
  const SamplesByTable tables = {{"a", samples_of({1, up, 1, up, 1})}};
  const auto interval = factor_interval(tables, 22, 0);
  REQUIRE(interval);
  CHECK(interval->tables == 1);
  CHECK(std::log(interval->high) ==
        Approx(3.1824 * d * std::sqrt(2.0 / 3) * std::sqrt(2.0)).epsilon(1e-4));
  // A straight line has none, two rows tell none.
  const auto line = factor_interval({{"a", samples_of({1, 2, 4, 8})}}, 21, std::log(2));
  REQUIRE(line);
  CHECK(line->high == Approx(2));
  CHECK_FALSE(factor_interval({{"a", samples_of({1, 2})}}, 20, 0));
}

TEST_CASE("where nobody has measured nothing is told") {
  CHECK_FALSE(factor_interval({}, 20, 0));
  CHECK_FALSE(factor_interval({{"a", samples_of({1, 1, 1})}}, 30, 0));
}

// Tables that differ by a factor of their own, the same at all sizes, normal in its logarithm: the
// next one lies within the interval at least 909 times of 1000, 950 less 6 standard deviations of a
// binomial count (6.9). That is room for s being taken from five sizes as if from one.
TEST_CASE("the next table lies in the interval as often as promised") {
  const auto count = GENERATE(2, 3, 5, 9);
  int inside = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> table(0, 0.02);
    SamplesByTable tables;
    std::vector<double> ratios;
    for (int i = 0; i < count; ++i) {
      ratios.push_back(table(random));
      for (int power = 18; power <= 24; ++power) {
        tables[std::to_string(i)].push_back({static_cast<double>(power), ratios.back()});
      }
    }
    const double center = quantile(ratios, 0.5);
    const auto interval = factor_interval(tables, 21, center);
    REQUIRE(interval);
    const double next = std::exp(table(random));
    inside += interval->low <= next && next <= interval->high ? 1 : 0;
  }
  CAPTURE(count);
  CHECK(inside >= 909);
}

}  // namespace shardsim
