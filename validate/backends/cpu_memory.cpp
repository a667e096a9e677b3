#include "validate/backends/cpu_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "validate/backends/host_memory.hpp"

namespace shardsim {
namespace {

// As PyTorch aligns tensors on CPUs (c10/core/alignment.h, gAlignment, 2.5).
constexpr std::size_t line = 64;

std::size_t rounded_up(std::size_t bytes, std::size_t granule) {
  return (bytes + granule - 1) / granule * granule;
}

// The first place of a page where there is room.
std::optional<std::size_t> room_in(const std::map<std::size_t, std::size_t>& taken,
                                   std::size_t page, std::size_t bytes) {
  std::size_t free = 0;
  for (const auto& [begin, size] : taken) {
    if (begin - free >= bytes) return free;
    free = begin + size;
  }
  if (page - free < bytes) return std::nullopt;
  return free;
}

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

CpuMemory::CpuMemory(std::string host)
    : host_(std::move(host)), page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {}

CpuMemory::~CpuMemory() {
  for (const auto& [buffer, mapping] : large_) munmap(mapping.begin, mapping.size);
  for (const auto& [begin, page] : shared_) munmap(page.mapping.begin, page.mapping.size);
}

CpuMemory::Mapping CpuMemory::map_pages(std::size_t bytes) {
  const std::size_t size = rounded_up(bytes, page_);
  void* begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) {
    throw CannotRunError(fmt::format("no memory for a buffer of {}: {}",
                                     format_bytes(Bytes(static_cast<std::int64_t>(bytes))),
                                     reason()));
  }
  Mapping mapping{static_cast<std::byte*>(begin), size};
  for (std::size_t i = 0; i < size; i += page_) {
    static_cast<volatile std::byte*>(mapping.begin)[i] = std::byte{1};
  }
  mapping.resident = resident_in(mapping);
  resident_ += mapping.resident;
  mapped_ += Bytes(static_cast<std::int64_t>(size));
  return mapping;
}

void CpuMemory::unmap(const Mapping& mapping) {
  munmap(mapping.begin, mapping.size);
  resident_ -= mapping.resident;
  mapped_ -= Bytes(static_cast<std::int64_t>(mapping.size));
}

Bytes CpuMemory::resident_in(const Mapping& mapping) const {
  std::vector<unsigned char> pages(mapping.size / page_);
  if (mincore(mapping.begin, mapping.size, pages.data()) != 0) {
    throw CannotRunError(fmt::format("what memory is taken is not known: {}", reason()));
  }
  // The lowest bit says so; the others are not defined.
  const auto resident =
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1U; });
  return Bytes(resident * static_cast<std::int64_t>(page_));
}

void CpuMemory::allocate(BufferId buffer, Bytes bytes) {
  assert(bytes > Bytes(0) && !large_.contains(buffer) && !small_.contains(buffer));
  const auto size = static_cast<std::size_t>(bytes.count());
  if (size < page_) return allocate_small(buffer, rounded_up(size, line));
  large_[buffer] = map_pages(size);
}

void CpuMemory::allocate_small(BufferId buffer, std::size_t bytes) {
  for (auto& [begin, page] : shared_) {
    const std::optional<std::size_t> place = room_in(page.taken, page_, bytes);
    if (!place) continue;
    page.taken[*place] = bytes;
    small_[buffer] = begin + *place;
    return;
  }
  const Mapping mapping = map_pages(page_);
  shared_[mapping.begin] = {mapping, {{0, bytes}}};
  small_[buffer] = mapping.begin;
}

void CpuMemory::free(BufferId buffer) {
  if (small_.contains(buffer)) return free_small(buffer);
  const auto found = large_.find(buffer);
  assert(found != large_.end());
  unmap(found->second);
  large_.erase(found);
}

void CpuMemory::free_small(BufferId buffer) {
  std::byte* const begin = small_.at(buffer);
  small_.erase(buffer);
  const auto page = std::prev(shared_.upper_bound(begin));
  page->second.taken.erase(static_cast<std::size_t>(begin - page->first));
  if (!page->second.taken.empty()) return;
  unmap(page->second.mapping);
  shared_.erase(page);
}

// The other half is for what else runs there, MPI's messages among it.
Bytes CpuMemory::allowance() const { return available_memory() / 2; }

}  // namespace shardsim
