#include "golden_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace shardsim::test {

std::vector<std::string> golden_programs(const std::string& folder) {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  const std::filesystem::path path =
      std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") / folder;
  std::vector<std::string> files;
  if (!std::filesystem::exists(path)) {
    std::cout << path.string() << ": not there, skipped\n";
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    if (name.find(".mlir") != std::string::npos) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void report(const std::string& path, int passed, const std::vector<std::string>& failures) {
  std::cout << fmt::format("{}: {} passed, {} failed\n",
                           std::filesystem::path(path).filename().string(), passed,
                           failures.size());
  for (const std::string& failure : failures) std::cout << "  " << failure << "\n";
}

}  // namespace shardsim::test
