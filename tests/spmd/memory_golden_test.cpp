// Steps of real models (tests/golden/xla_models): memory per device of what the partitioner makes
// of them, beside what XLA's TPU and GPU compilers allocated.
//
// Arguments are to be exact for every record. The peak is an estimate: the median of its error over
// the records is held, and how often the verdict whether the program fits is the compiler's.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <iostream>
#include <map>

#include "tests/base/golden_files.hpp"
#include "tests/spmd/memory_comparison.hpp"

namespace shardsim::test {
namespace {

constexpr double largest_median_error = 0.10;

double mebibytes(Bytes bytes) {
  return static_cast<double>(bytes.count()) / static_cast<double>(MiB);
}

void print(const MemoryComparison& one) {
  std::cout << fmt::format("{:+7.1f} %  {:9.1f} of {:9.1f} MiB{}{}  {}\n", 100 * one.error(),
                           mebibytes(one.peak), mebibytes(one.expected_peak),
                           one.arguments == one.expected_arguments ? "" : "  arguments differ",
                           one.fits == one.expected_fits ? "" : "  verdict differs", one.id);
}

}  // namespace

TEST_CASE("memory per device is XLA's: arguments exactly, the peak nearly") {
  std::vector<MemoryComparison> all;
  std::map<std::string, std::vector<MemoryComparison>> by_step;
  int wrong_arguments = 0;
  int wrong_verdicts = 0;
  const auto folder = golden_folder("xla_models") / "records";
  for (const std::string& file : golden_files(folder, ".json")) {
    all.push_back(compare_memory(file));
    const MemoryComparison& one = all.back();
    print(one);
    by_step[one.platform + " " + one.step].push_back(one);
    wrong_arguments += one.arguments == one.expected_arguments ? 0 : 1;
    wrong_verdicts += one.fits == one.expected_fits ? 0 : 1;
  }
  REQUIRE(!all.empty());
  by_step["all"] = all;
  for (const auto& [key, some] : by_step) {
    std::cout << fmt::format("{}: {} records, median error of the peak {:.1f} %, {} within 10 %\n",
                             key, some.size(), 100 * median_error(some), count_within(some, 0.1));
  }
  const int records = static_cast<int>(all.size());
  std::cout << fmt::format("{}: {} passed, {} failed; {} of {} verdicts differ\n", folder.string(),
                           records - wrong_arguments, wrong_arguments, wrong_verdicts, records);
  CHECK(wrong_arguments == 0);
  CHECK(median_error(all) <= largest_median_error);
}

}  // namespace shardsim::test
