// Programs compiled by XLA for TPU v5e, H100 and CPU, and their HLO directly after partitioning,
// against what XLA says about them: collectives, memory of arguments and results, operations.
//
// The cases were made with jax 0.10.2 ahead of time for devices that need not be there
// (jax.experimental.topologies); tests/golden/xla/README.md says how to read them.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <iostream>

#include "tests/base/golden_files.hpp"
#include "tests/hlo/compiled_comparison.hpp"

namespace shardsim::test {
namespace {

// What was compiled for TPU and GPU, of which there may be a larger set, and for CPU.
std::vector<std::filesystem::path> folders() {
  return {golden_folder("xla"), SHARDSIM_SOURCE_DIR "/tests/golden/xla_cpu"};
}

struct Outcome {
  int files = 0;
  int unexpected = 0;
};

// Every record of every file.
Outcome run_all(const std::string& what, CompareFiles compare) {
  Outcome outcome;
  for (const auto& folder : folders()) {
    for (const GoldenRecords& file : golden_records(folder / "expected")) {
      Comparison result;
      for (const JsonReader& record : file.records()) {
        for (const FileComparison& found : compare(record, folder)) {
          ++outcome.files;
          if (found.difference.empty()) {
            ++result.passed;
            continue;
          }
          const bool is_known = known_compiled_differences().count(what + " " + found.file) > 0;
          outcome.unexpected += is_known ? 0 : 1;
          result.failures.push_back(
              fmt::format("{}{}\n{}", found.file, is_known ? " (known)" : "", found.difference));
        }
      }
      report(file.name() + " " + what, result);
    }
  }
  return outcome;
}

void check(const std::string& what, CompareFiles compare) {
  const Outcome outcome = run_all(what, compare);
  CHECK(outcome.files > 0);
  CHECK(outcome.unexpected == 0);
}

}  // namespace

TEST_CASE("collectives of compiled modules are those that XLA made") {
  check("collectives", compare_compiled_collectives);
}

TEST_CASE("collectives of partitioned modules are those of XLA's partitioner") {
  check("partitioned", compare_partitioned_collectives);
}

TEST_CASE("arguments, results and aliases have the bytes that the compiler gave them") {
  check("memory", compare_compiled_memory);
}

TEST_CASE("operations agree with XLA's cost analysis to one percent") {
  check("operations", compare_compiled_operations);
}

TEST_CASE("peak memory is within 5 percent of the compiler's in the median") {
  std::vector<double> errors;
  for (const auto& folder : folders()) {
    for (const GoldenRecords& file : golden_records(folder / "expected")) {
      for (const JsonReader& record : file.records()) {
        for (const PeakComparison& peak : compare_compiled_peaks(record, folder)) {
          errors.push_back(std::abs(peak.actual - peak.expected) / peak.expected);
        }
      }
    }
  }
  REQUIRE(!errors.empty());
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  const auto near = std::upper_bound(errors.begin(), errors.end(), 0.05) - errors.begin();
  std::cout << fmt::format("peak memory: median error {:.3f} %, {} of {} within 5 %\n",
                           100 * median, near, errors.size());
  CHECK(median <= 0.05);
}

}  // namespace shardsim::test
