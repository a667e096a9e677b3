// Buffers in this host's memory: what Linux says it holds is what was asked for, rounded up to
// pages. Counted are pages of the buffers alone, so that what sanitizers map does not matter.
#include "validate/backends/cpu_memory.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "validate/backends/host_memory.hpp"

namespace shardsim {
namespace {

const std::int64_t page = sysconf(_SC_PAGESIZE);
constexpr std::int64_t line = 64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

// Of the whole process.
std::int64_t anonymous_bytes() {
  std::ifstream stream("/proc/self/smaps_rollup");
  for (std::string row; std::getline(stream, row);) {
    std::istringstream words(row);
    std::string key;
    std::int64_t kib = 0;
    if (words >> key >> kib && key == "Anonymous:") return kib * KiB;
  }
  return 0;
}

// A root of its own for files of /proc and /sys.
struct FakeRoot {
  explicit FakeRoot(const std::string& name)
      : path(std::string(SHARDSIM_BINARY_DIR) + "/tests/host_memory_" + name) {
    std::filesystem::remove_all(path);
    write("/proc/meminfo", "MemTotal:  8192 kB\nMemFree:  1 kB\nMemAvailable:  4096 kB\n");
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path + file).parent_path());
    write_file(path + file, text);
  }
  std::string path;
};

}  // namespace

TEST_CASE("a buffer of a page or more takes its pages, and gives them back") {
  CpuMemory memory("here");
  CHECK(memory.in_use() == Bytes(0));
  memory.allocate(0, Bytes(page));
  CHECK(memory.in_use() == Bytes(page));
  memory.allocate(1, Bytes(10 * page + 1));
  CHECK(memory.in_use() == Bytes(12 * page));
  CHECK(memory.reserved() == Bytes(12 * page));
  memory.free(0);
  CHECK(memory.in_use() == Bytes(11 * page));
  memory.free(1);
  CHECK(memory.in_use() == Bytes(0));
  CHECK(memory.reserved() == Bytes(0));
}

TEST_CASE("smaller buffers share pages, in lines") {
  CpuMemory memory("here");
  const auto lines = static_cast<BufferId>(page / line);
  for (BufferId buffer = 0; buffer < lines; ++buffer)
    memory.allocate(buffer, Bytes(1 + buffer % line));
  CHECK(memory.in_use() == Bytes(page));  // full
  // Two lines side by side, when free, have room for a buffer of two.
  memory.free(7);
  memory.free(8);
  memory.allocate(lines, Bytes(line + 1));
  CHECK(memory.in_use() == Bytes(page));
  memory.allocate(lines + 1, Bytes(1));  // in a page of its own, which goes with it
  CHECK(memory.in_use() == Bytes(2 * page));
  memory.free(lines + 1);
  CHECK(memory.in_use() == Bytes(page));
  for (BufferId buffer = 0; buffer < lines; ++buffer) {
    if (buffer != 7 && buffer != 8) memory.free(buffer);
  }
  CHECK(memory.in_use() == Bytes(page));  // a single buffer holds it
  memory.free(lines);
  CHECK(memory.in_use() == Bytes(0));
}

// The whole process grows by as much, but for what else it takes: here at most a MiB. Sanitizers
// keep books of memory in memory: there it is not so.
TEST_CASE("the kernel's books of the whole process say the same") {
  CpuMemory memory("here");
  const std::int64_t before = anonymous_bytes();
  if (is_sanitized || before == 0) {
    WARN("under sanitizers, or no /proc/self/smaps_rollup");
    return;
  }
  constexpr std::int64_t size = 64 * MiB;
  memory.allocate(0, Bytes(size));
  CHECK(static_cast<double>(anonymous_bytes() - before) ==
        Approx(static_cast<double>(memory.in_use().count())).margin(MiB));
  memory.free(0);
  CHECK(static_cast<double>(anonymous_bytes() - before) == Approx(0).margin(MiB));
}

TEST_CASE("more than an address can say is an error") {
  CpuMemory memory("here");
  CHECK_THROWS_AS(memory.allocate(0, Bytes(std::int64_t{1} << 60)), CannotRunError);
  CHECK(memory.in_use() == Bytes(0));
}

TEST_CASE("half of what is available may be taken") {
  const CpuMemory memory("here");
  CHECK(memory.allowance() > Bytes(0));
  CHECK(memory.shared_by() == "here");
}

TEST_CASE("without limits what the host has is available") {
  const FakeRoot root("plain");
  CHECK(available_memory(root.path) == Bytes(4 * MiB));
  root.write("/proc/self/cgroup", "0::/job\n");
  root.write("/sys/fs/cgroup/job/memory.max", "max\n");
  root.write("/sys/fs/cgroup/job/memory.current", "1000\n");
  CHECK(available_memory(root.path) == Bytes(4 * MiB));
  CHECK_THROWS_AS(available_memory(root.path + "/nothing"), CannotRunError);
}

TEST_CASE("what is left of a control group's limit is available, also of one above") {
  const FakeRoot root("version2");
  root.write("/proc/self/cgroup", "0::/job/step\n");
  root.write("/sys/fs/cgroup/job/step/memory.max", "3000000\n");
  root.write("/sys/fs/cgroup/job/step/memory.current", "1000000\n");
  CHECK(available_memory(root.path) == Bytes(2000000));
  root.write("/sys/fs/cgroup/job/memory.max", "4000000\n");
  root.write("/sys/fs/cgroup/job/memory.current", "3500000\n");
  CHECK(available_memory(root.path) == Bytes(500000));
  root.write("/sys/fs/cgroup/job/memory.current", "4100000\n");
  CHECK(available_memory(root.path) == Bytes(0));
}

// In a container the path is the host's, and the group lies at the top.
TEST_CASE("limits of the first version of control groups") {
  const FakeRoot root("version1");
  root.write("/proc/self/cgroup", "7:blkio:/x\n4:cpuset,memory:/docker/1a2b\n0::/\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
  CHECK(available_memory(root.path) == Bytes(1500000));
}

}  // namespace shardsim
