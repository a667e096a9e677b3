// Buffers in a host's memory, as the kernel says it holds them.
//
// A buffer of a page (4 KiB on x86) or more is an anonymous mapping of its own, rounded up to
// pages; smaller ones share pages, in lines of 64 B. Every page is written to, since a page that
// nobody touched takes no memory. So the error against what was asked for is less than a page for
// each large buffer, and for small ones what is not filled of the pages that they share.
//
// What is in use is what mincore() says of these mappings when they have been written to: how many
// of their pages are resident. Other ways were tried (Linux 6.18, one virtual CPU of an AMD EPYC,
// 1 GiB of buffers):
//   /proc/self/statm         40 us, but "inaccurate" (proc(5): threads keep counts of their own),
//                            and of the whole process
//   /proc/self/smaps_rollup  exact, but 64 ms, at least 0.2 ms, and of the whole process: with what
//                            MPI, the heap and sanitizers take in the meantime
//   mincore()                exact, 1.3 ms, of the buffers alone
// Even so, asking of all buffers whenever one comes takes longer than to write to them (1,700
// buffers, 7.7 GiB at once: 45 s, not 15), so each is asked of once. What the kernel swaps out
// later still counts.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "validate/backends/device_memory.hpp"

namespace shardsim {

class CpuMemory : public DeviceMemory {
 public:
  // `host`: whose memory it is.
  explicit CpuMemory(std::string host);
  ~CpuMemory() override;
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  void allocate(BufferId buffer, Bytes bytes) override;
  void free(BufferId buffer) override;
  [[nodiscard]] Bytes in_use() const override { return resident_; }
  [[nodiscard]] Bytes reserved() const override { return mapped_; }
  [[nodiscard]] Bytes allowance() const override;  // half of host_memory.hpp's
  [[nodiscard]] std::string shared_by() const override { return host_; }

 private:
  struct Mapping {
    std::byte* begin = nullptr;
    std::size_t size = 0;  // whole pages
    Bytes resident{0};
  };
  // A page of small buffers: where each begins and how long it is.
  struct SharedPage {
    Mapping mapping;
    std::map<std::size_t, std::size_t> taken = {};
  };

  [[nodiscard]] Mapping map_pages(std::size_t bytes);
  void unmap(const Mapping& mapping);
  [[nodiscard]] Bytes resident_in(const Mapping& mapping) const;
  void allocate_small(BufferId buffer, std::size_t bytes);
  void free_small(BufferId buffer);

  std::string host_;
  std::size_t page_;
  Bytes resident_{0};
  Bytes mapped_{0};
  std::map<BufferId, Mapping> large_;
  std::map<std::byte*, SharedPage> shared_;
  std::map<BufferId, std::byte*> small_;  // in the page that holds it
};

}  // namespace shardsim
