// Programs compiled by XLA for TPU v5e, H100 and CPU, and their HLO directly after partitioning,
// against what a record says about them (tests/golden/xla, xla_cpu). One answer per file that the
// record names and that is there.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim::test {

struct FileComparison {
  std::string file;
  std::string difference;  // lines; empty when equal
};
using FileComparisons = std::vector<FileComparison>;
using CompareFiles = FileComparisons (*)(const JsonReader& record,
                                         const std::filesystem::path& folder);

[[nodiscard]] FileComparisons compare_compiled_collectives(const JsonReader& record,
                                                           const std::filesystem::path& folder);
[[nodiscard]] FileComparisons compare_partitioned_collectives(const JsonReader& record,
                                                              const std::filesystem::path& folder);
// Bytes of arguments, results and aliases, exactly.
[[nodiscard]] FileComparisons compare_compiled_memory(const JsonReader& record,
                                                      const std::filesystem::path& folder);
// Operations, to one percent; no answer where the compiler does not state them.
[[nodiscard]] FileComparisons compare_compiled_operations(const JsonReader& record,
                                                          const std::filesystem::path& folder);

struct PeakComparison {
  std::string file;
  double expected = 0;  // argument + output - alias + temp, of which temp is estimated
  double actual = 0;
};
[[nodiscard]] std::vector<PeakComparison> compare_compiled_peaks(
    const JsonReader& record, const std::filesystem::path& folder);

// "collectives FILE", "partitioned FILE" or "operations FILE" where the reference is not followed,
// with the reason.
[[nodiscard]] const std::map<std::string, std::string>& known_compiled_differences();

}  // namespace shardsim::test
