// Laws of fits to simulated times: recovery, order, units, constraints, what is not told.
#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "validate/fit/robust_fit.hpp"

namespace shardsim {
namespace {

void holds_for_fits(bool passed) { CHECK(passed); }

struct Simulated {
  std::vector<std::vector<double>> terms;
  std::vector<double> times;
  std::vector<double> truth;
};

struct Noise {
  double spread = 0;         // of the logarithm
  double outlier_share = 0;  // of the rows, by a factor of 3
  bool both_ways = false;    // a third as well as three times
};

// Kernels of a launch (5 us), FLOPs (500 TFLOP/s) and bytes (3 TB/s) over five decades of each, so
// that each term makes most of some rows.
Simulated simulate_kernels(std::size_t rows, const Noise& noise, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> decade(0, 5);
  std::uniform_real_distribution<double> share(0, 1);
  std::normal_distribution<double> error(0, 1);
  Simulated result;
  result.truth = {5e-6, 1 / 500e12, 1 / 3e12};
  for (std::size_t i = 0; i < rows; ++i) {
    result.terms.push_back(
        {1, 1e7 * std::pow(10, decade(random)), 1e5 * std::pow(10, decade(random))});
    double time = std::inner_product(result.truth.begin(), result.truth.end(),
                                     result.terms.back().begin(), 0.0);
    time *= std::exp(noise.spread * error(random));
    if (share(random) < noise.outlier_share) {
      time *= noise.both_ways && share(random) < 0.5 ? 1.0 / 3 : 3;
    }
    result.times.push_back(time);
  }
  return result;
}

// Values of which the interval holds the truth, over many seeds.
std::vector<int> covered(std::size_t rows, const Noise& noise, int seeds) {
  std::vector<int> result(3, 0);
  for (int seed = 0; seed < seeds; ++seed) {
    const Simulated data = simulate_kernels(rows, noise, static_cast<unsigned>(seed));
    const RobustFit fit = fit_nonnegative(data.terms, data.times);
    for (std::size_t j = 0; j < 3; ++j) {
      result[j] += fit.terms[j].low <= data.truth[j] && data.truth[j] <= fit.terms[j].high ? 1 : 0;
    }
  }
  return result;
}

Simulated arbitrary_data() {
  const auto rows = *rc::gen::inRange<std::size_t>(6, 60);
  const Noise noise{*rc::gen::element(0.0, 0.02, 0.2), *rc::gen::element(0.0, 0.1), true};
  return simulate_kernels(rows, noise, *rc::gen::arbitrary<unsigned>());
}

bool near(double a, double b, double tolerance) {
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

// Of n intervals of 95 % as many hold the truth as 0.95 n less 3.8 standard deviations of a
// binomial count but once in 7000 such tests: of 400 at least 363. Seeds are fixed. Compiled
// without optimization a tenth of them have to do.
TEST_CASE("intervals hold the truth as often as they promise") {
#ifdef NDEBUG
  constexpr int seeds = 400;
#else
  constexpr int seeds = 40;
#endif
  const double least = 0.95 * seeds - 3.8 * std::sqrt(0.95 * 0.05 * seeds);
  const auto rows = GENERATE(std::size_t{20}, std::size_t{80});
  const auto noise = GENERATE(Noise{0.05, 0, false}, Noise{0.05, 0.1, true},
                              Noise{0.05, 0.1, false}, Noise{0.15, 0.1, true});
  CAPTURE(rows, noise.spread, noise.outlier_share, noise.both_ways);
  for (const int count : covered(rows, noise, seeds)) CHECK(count >= least);
}

TEST_CASE("the order of rows changes nothing, bit for bit") {
  holds_for_fits(rc::check("shuffled", [] {
    const Simulated data = arbitrary_data();
    std::vector<std::size_t> order(data.times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(*rc::gen::arbitrary<unsigned>()));
    Simulated shuffled;
    for (const std::size_t i : order) {
      shuffled.terms.push_back(data.terms[i]);
      shuffled.times.push_back(data.times[i]);
    }
    const RobustFit one = fit_nonnegative(data.terms, data.times);
    const RobustFit other = fit_nonnegative(shuffled.terms, shuffled.times);
    RC_ASSERT(one.median_error == other.median_error);
    RC_ASSERT(one.outliers == other.outliers);
    for (std::size_t j = 0; j < 3; ++j) {
      RC_ASSERT(one.terms[j].value == other.terms[j].value);
      RC_ASSERT(one.terms[j].low == other.terms[j].low);
      RC_ASSERT(one.terms[j].high == other.terms[j].high);
    }
  }));
}

TEST_CASE("units of terms and times scale values and nothing else") {
  holds_for_fits(rc::check("units", [] {
    const Simulated data = arbitrary_data();
    const double time_unit = std::pow(10.0, *rc::gen::inRange(-12, 13));
    std::vector<double> units;
    for (int j = 0; j < 3; ++j) units.push_back(std::pow(3.0, *rc::gen::inRange(-20, 21)));
    Simulated scaled = data;
    for (double& time : scaled.times) time *= time_unit;
    for (auto& row : scaled.terms) {
      for (std::size_t j = 0; j < 3; ++j) row[j] *= units[j];
    }
    const RobustFit one = fit_nonnegative(data.terms, data.times);
    const RobustFit other = fit_nonnegative(scaled.terms, scaled.times);
    RC_ASSERT(one.outliers == other.outliers);
    RC_ASSERT(std::abs(one.median_error - other.median_error) < 1e-9);
    for (std::size_t j = 0; j < 3; ++j) {
      RC_ASSERT(near(one.terms[j].value, other.terms[j].value * units[j] / time_unit, 1e-9));
      if (one.scale > 1e-6) {  // else the interval is rounding
        RC_ASSERT(near(one.terms[j].high, other.terms[j].high * units[j] / time_unit, 1e-6));
      }
    }
  }));
}

TEST_CASE("no value is negative, none outside of its interval") {
  holds_for_fits(rc::check("bounds", [] {
    const auto rows = *rc::gen::inRange<std::size_t>(1, 30);
    const auto columns = *rc::gen::inRange<std::size_t>(1, 6);
    std::vector<std::vector<double>> terms(rows, std::vector<double>(columns));
    std::vector<double> times(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      for (double& term : terms[i]) term = *rc::gen::inRange(0, 5);
      times[i] = *rc::gen::inRange(1, 1000);
    }
    const RobustFit fit = fit_nonnegative(terms, times);
    RC_ASSERT(std::isfinite(fit.median_error) && fit.median_error >= 0);
    RC_ASSERT(fit.median_error <= fit.percentile_90_error);
    for (const FittedTerm& term : fit.terms) {
      RC_ASSERT(std::isfinite(term.value) && term.low >= 0);
      RC_ASSERT(term.low <= term.value && term.value <= term.high);
    }
  }));
}

TEST_CASE("times without noise give their values back") {
  holds_for_fits(rc::check("exact", [] {
    const Simulated data = simulate_kernels(*rc::gen::inRange<std::size_t>(30, 60), {},
                                            *rc::gen::arbitrary<unsigned>());
    const RobustFit fit = fit_nonnegative(data.terms, data.times);
    for (std::size_t j = 0; j < 3; ++j) {
      RC_ASSERT(fit.terms[j].determined);
      RC_ASSERT(near(fit.terms[j].value, data.truth[j], 1e-10));
    }
  }));
}

TEST_CASE("a term that others make up is not determined, the rest is") {
  holds_for_fits(rc::check("collinear", [] {
    Simulated data = arbitrary_data();
    const double first = *rc::gen::inRange(0, 3);
    const double second = *rc::gen::inRange(first > 0 ? 0 : 1, 3);
    for (auto& row : data.terms) {
      row.push_back(first * data.truth[0] * row[0] + second * data.truth[1] * row[1]);
    }
    const RobustFit fit = fit_nonnegative(data.terms, data.times);
    RC_ASSERT(fit.terms[0].determined == (first == 0));
    RC_ASSERT(fit.terms[1].determined == (second == 0));
    RC_ASSERT(fit.terms[2].determined);
    RC_ASSERT_FALSE(fit.terms[3].determined);
  }));
}

}  // namespace shardsim
