#include "validate/backends/host_memory.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "base/error.hpp"

namespace shardsim {
namespace {

// Of a file with one number. Nothing where there is no file, or no number ("max").
std::optional<std::int64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

std::optional<std::int64_t> available_on_host(const std::string& root) {
  std::ifstream stream(root + "/proc/meminfo");
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t kib = 0;
    if (words >> key >> kib && key == "MemAvailable:") return kib * KiB;
  }
  return std::nullopt;
}

// Where the limits of cgroups lie, and how they are called, in versions 1 and 2
// (Documentation/admin-guide of Linux: cgroup-v1/memory.rst, cgroup-v2.rst).
struct Hierarchy {
  std::string folder;
  std::string path;  // of the process's group in it
  const char* limit;
  const char* usage;
};

// Lines "ID:CONTROLLERS:PATH"; version 2 is "0::PATH".
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> all;
  std::ifstream stream(root + "/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const std::string folder = root + "/sys/fs/cgroup";
    if (controllers == ",,") {
      all.push_back({folder, path, "memory.max", "memory.current"});
    } else if (controllers.find(",memory,") != std::string::npos) {
      all.push_back({folder + "/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes"});
    }
  }
  return all;
}

// The least that is left in the group or in one above it. In a container the path may be that of
// the host, which is not there: its own group is then the top folder.
std::optional<std::int64_t> left_in(const Hierarchy& hierarchy) {
  std::optional<std::int64_t> least;
  const std::filesystem::path top = hierarchy.folder;
  for (std::filesystem::path path = hierarchy.path;; path = path.parent_path()) {
    const std::filesystem::path group = top / path.relative_path();
    const auto limit = number_in(group / hierarchy.limit);
    const auto usage = number_in(group / hierarchy.usage);
    if (limit && usage) {
      const std::int64_t left = std::max<std::int64_t>(0, *limit - *usage);
      least = std::min(left, least.value_or(left));
    }
    if (!path.has_relative_path()) return least;
  }
}

}  // namespace

Bytes available_memory(const std::string& root) {
  std::optional<std::int64_t> available = available_on_host(root);
  if (!available) throw CannotRunError("/proc/meminfo does not say how much memory is available");
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    const auto left = left_in(hierarchy);
    if (left) available = std::min(*available, *left);
  }
  return Bytes(*available);
}

}  // namespace shardsim
