// Prints docs/calibration-kernels.md: what published tables of kernels tell of devices, how sure
// that is, and how far predicted times are from them.
#include <fmt/format.h>

#include "../validate/published_kernels.hpp"
#include "validate/fit/fit_profile.hpp"

namespace shardsim {
namespace {

std::string errors_text(const std::optional<ErrorSummary>& errors) {
  if (!errors) return "-";
  return fmt::format("median {}, 90th percentile {}", format_percent(errors->median),
                     format_percent(errors->percentile_90));
}

void print_sweep(const test::PublishedKernels& published) {
  const DeviceSweep& sweep = published.sweep;
  const FittedProfile fitted = fit_profile(sweep, sweep.profile);
  fmt::print("## {}\n\n{}: {} records for {}.\n\n", published.name, sweep.source,
             sweep.kernels.size(), sweep.profile);
  constexpr auto right = TextTable::Align::right;
  TextTable numbers({{"number"}, {"fitted", right}, {"95 % from", right}, {"to", right}});
  for (const FittedNumber& number : fitted.numbers) {
    numbers.add_row(
        {number.quantity, number.determined ? number.value : "not told", number.low, number.high});
  }
  // With one efficiency for all shapes: the same records without theirs.
  DeviceSweep shapeless = sweep;
  for (SweptKernel& swept : shapeless.kernels) swept.kernel.product.reset();
  const FittedProfile constant = fit_profile(shapeless, sweep.profile);
  fmt::print("{}\n", numbers.markdown());
  fmt::print("- by one efficiency, of attention the profile's: {}\n",
             errors_text(constant.kernels));
  fmt::print("- by shape: {}\n", errors_text(fitted.kernels));
  fmt::print("- by shape, every second record predicted by the others: {}\n\n",
             errors_text(fitted.left_out_kernels));
  fmt::print("{}\n", kernel_errors_table(fitted.kernels_by_size).markdown());
}

constexpr const char* preface =
    R"(# Kernels by their shape

Written by `scripts/accuracy.sh`, of the published tables in tests/measurements/kernels, of which
tests/measurements/kernels.json chooses rows (docs/calibration.md). What a kernel of [m, k] x [k, n] takes is

    launch + overhead + operations / (peak * efficiency) * (1 + depth / k + side / m + side / n)

or what its bytes take, if that is longer; of attention, m are queries, n keys and k numbers of a head.
Numbers stand with their 95 % intervals; a peak times its efficiency stands as one number; where it
would be above what the vendor says it is the peak. The launch is the profile's. Profiles that hold
these numbers name their tables (`shardsim profiles show`). Errors are absolute and relative to the
measured time.

)";

}  // namespace
}  // namespace shardsim

int main() {
  fmt::print("{}", shardsim::preface);
  for (const auto& published : shardsim::test::published_kernels()) {
    shardsim::print_sweep(published);
  }
}
