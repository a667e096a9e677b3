// How sure a point of a calibration's curve is: where the factor of one more table of the class is
// to be expected, 19 times in 20.
//
// With k tables of the size it is Student's interval of prediction for logarithms (Hahn & Meeker,
// Statistical Intervals, 1991, 4.7), about the median, whose variance is pi / 2 times a mean's:
//
//   factor * exp(-+ t(0.975, k - 1) * s * sqrt(1 + pi / 2k))
//
// s^2 is the variance between tables, the mean of what it is at the sizes within two octaves: two
// tables that meet at one size are not sure there. Sizes of one table go together, so that they
// add no degrees of freedom. Two tables tell little: t is 12.7.
//
// Of a single table s is the scatter of its rows about their neighbours: what a row differs by from
// the line through those beside it, squared, over 1 + a^2 + b^2, a and b the weights of these
// (Gasser, Sroka & Jennen-Steinmetz, Biometrika 73, 1986). That is the noise of one run and says
// nothing of other machines; `tables` is 1 to say so.
//
// Example: three tables say 1.2, 1.25 and 1.3 at all sizes: s = 0.0400, t = 4.30,
// sqrt(1 + pi / 6) = 1.234; 1.25 * exp(-+ 0.2125) is 1.01 to 1.55.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/calibration.hpp"

namespace shardsim {

// A row of a table beside the model, in logarithms.
struct LogSample {
  double size = 0;   // log2 of bytes
  double ratio = 0;  // log of measured over modelled
  friend auto operator<=>(const LogSample&, const LogSample&) = default;
};

// A table's id; its samples by size.
using SamplesByTable = std::map<std::string, std::vector<LogSample>>;

// Samples this near to a size, in octaves, speak for it.
inline constexpr double farthest_octaves = 0.75;

// What every table that has samples near a size says of it: their mean, in order of ids.
[[nodiscard]] std::vector<double> ratios_near(const SamplesByTable& tables, double size);

// Of the logarithm of the factor, which is `center`. Nothing where it is not told: no tables, a
// single one with fewer than three rows, or an interval that reaches beyond 100 times the factor.
[[nodiscard]] std::optional<FactorInterval> factor_interval(const SamplesByTable& tables,
                                                            double size, double center);

}  // namespace shardsim
