// Files of a golden folder: those of the repository (tests/golden), or of SHARDSIM_GOLDEN_DIR where
// it is set.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim::test {

[[nodiscard]] std::filesystem::path golden_folder(const std::string& folder);
// Files whose names contain `part` (".json"), in order; empty, and said so, when the folder is not
// there.
[[nodiscard]] std::vector<std::string> golden_files(const std::filesystem::path& folder,
                                                    const std::string& part);
// The same for programs, .mlir or .mlir.gz, of a folder under golden_folder.
[[nodiscard]] std::vector<std::string> golden_programs(const std::string& folder);
// The path, or else the path with ".gz" behind it: records name programs as they are uncompressed.
[[nodiscard]] std::optional<std::string> plain_or_gzip(const std::filesystem::path& path);

// A JSON file that is a list of records.
struct GoldenRecords {
  std::string file;
  Json document;

  [[nodiscard]] std::vector<JsonReader> records() const;
  [[nodiscard]] std::string name() const;  // without its folder
};
[[nodiscard]] std::vector<GoldenRecords> golden_records(const std::filesystem::path& folder);

// What came of one file.
struct Comparison {
  int passed = 0;
  std::vector<std::string> failures;
};

// "FILE: N passed, M failed" and the failures.
void report(const std::string& path, const Comparison& comparison);

}  // namespace shardsim::test
