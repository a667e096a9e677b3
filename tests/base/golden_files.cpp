#include "tests/base/golden_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace shardsim::test {

std::filesystem::path golden_folder(const std::string& folder) {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  return std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") / folder;
}

std::vector<std::string> golden_files(const std::filesystem::path& folder,
                                      const std::string& part) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) {
    std::cout << folder.string() << ": not there, skipped\n";
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.find(part) != std::string::npos) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> golden_programs(const std::string& folder) {
  return golden_files(golden_folder(folder), ".mlir");
}

std::optional<std::string> plain_or_gzip(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) return path.string();
  const std::string compressed = path.string() + ".gz";
  if (std::filesystem::exists(compressed)) return compressed;
  return {};
}

std::vector<JsonReader> GoldenRecords::records() const {
  return JsonReader(document, {file, ""}).elements();
}

std::string GoldenRecords::name() const { return std::filesystem::path(file).filename(); }

std::vector<GoldenRecords> golden_records(const std::filesystem::path& folder) {
  std::vector<GoldenRecords> all;
  for (const std::string& file : golden_files(folder, ".json")) {
    all.push_back({file, load_json(file)});
  }
  return all;
}

void report(const std::string& path, const Comparison& comparison) {
  std::cout << fmt::format("{}: {} passed, {} failed\n",
                           std::filesystem::path(path).filename().string(), comparison.passed,
                           comparison.failures.size());
  for (const std::string& failure : comparison.failures) std::cout << "  " << failure << "\n";
}

}  // namespace shardsim::test
