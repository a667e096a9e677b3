// What PyTorch's allocator of device memory takes from the driver for the buffers of a step: it
// keeps what it has once taken, in segments that it cuts into blocks, and reserves more than is
// allocated where what is free lies in pieces too small.
//
//   - Sizes are rounded up to 512 bytes. Those of at most 1 MiB come from segments of 2 MiB, those
//     below 10 MiB from segments of 20 MiB, larger ones have a segment of their own, rounded up to
//     2 MiB, where nothing free is as large.
//   - Of the free blocks that are large enough the smallest is taken, at one size the one at the
//     lowest address. What it has more is cut off where it is more than 1 MiB, in segments of 2 MiB
//     always. A block that is given back grows together with free neighbours of its segment.
//   - What one stream has taken others do not get.
//
// Source: PyTorch 2.9, c10/cuda/CUDACachingAllocator.cpp: round_size, get_allocation_size,
// get_free_block, should_split, free_block; without expandable segments, its default.
//
// Example: 30 MiB, then 6 MiB and 6 MiB: a segment of 30 and one of 20 MiB, 50 MiB reserved, 42
// allocated. The 30 MiB given back, 16 MiB and 16 MiB: the first lies in the segment of 30, for the
// second its 14 MiB are too few: a segment of 16, 66 MiB reserved.
//
// Cost: O(log free blocks) comparisons for each call, and moving as many entries of a flat list.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace shardsim {

class CachingAllocator {
 public:
  using BlockId = std::int32_t;

  // `stream`: the one it is taken on. Nothing is taken for nothing.
  [[nodiscard]] BlockId allocate(Bytes size, int stream);
  void give_back(BlockId id);

  [[nodiscard]] Bytes reserved() const { return Bytes(reserved_); }
  [[nodiscard]] Bytes allocated() const { return Bytes(allocated_); }
  [[nodiscard]] Bytes most_allocated() const { return Bytes(most_allocated_); }

 private:
  struct Block {
    std::int64_t size = 0;
    std::int64_t address = 0;  // of no meaning but to compare
    BlockId before = -1;       // its neighbours in the segment
    BlockId behind = -1;
    std::int16_t pool = 0;
    bool is_free = false;
  };
  struct Free {
    std::int64_t size = 0;
    std::int64_t address = 0;
    BlockId block = -1;
    friend bool operator<(const Free& a, const Free& b) {
      return a.size != b.size ? a.size < b.size : a.address < b.address;
    }
  };

  [[nodiscard]] Block& block(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::vector<Free>& pool_of(const Block& one) {
    return pools_[static_cast<std::size_t>(one.pool)];
  }
  BlockId new_block(const Block& one);
  BlockId take_free(std::int16_t pool, std::int64_t size);
  void put_free(BlockId id);
  void remove_free(BlockId id);
  void cut(BlockId id, std::int64_t size);
  void join(BlockId id, BlockId with);  // `with` lies behind it and is free

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;           // numbers of blocks that have been joined to others
  std::vector<std::vector<Free>> pools_;  // of small and of large blocks, by stream
  std::int64_t reserved_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t most_allocated_ = 0;
};

}  // namespace shardsim
