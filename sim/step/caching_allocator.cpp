#include "sim/step/caching_allocator.hpp"

#include <algorithm>
#include <cassert>

#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t least_block = 512;
constexpr std::int64_t largest_small = 1 * MiB;
constexpr std::int64_t small_segment = 2 * MiB;
constexpr std::int64_t shared_segment = 20 * MiB;
constexpr std::int64_t least_own_segment = 10 * MiB;
constexpr std::int64_t segment_unit = 2 * MiB;

bool is_small(std::int64_t size) { return size <= largest_small; }

std::int64_t segment_for(std::int64_t size) {
  if (is_small(size)) return small_segment;
  if (size < least_own_segment) return shared_segment;
  return ceil_div(size, segment_unit) * segment_unit;
}

// Small blocks of a stream, then its large ones.
std::int16_t pool_for(std::int64_t size, int stream) {
  return static_cast<std::int16_t>(2 * stream + (is_small(size) ? 0 : 1));
}
bool holds_small(std::int16_t pool) { return pool % 2 == 0; }

}  // namespace

CachingAllocator::BlockId CachingAllocator::allocate(Bytes size, int stream) {
  const std::int64_t rounded =
      std::max(least_block, ceil_div(size.count(), least_block) * least_block);
  const std::int16_t pool = pool_for(rounded, stream);
  if (static_cast<std::size_t>(pool) >= pools_.size()) {
    pools_.resize(static_cast<std::size_t>(pool) + 1);
  }
  BlockId id = take_free(pool, rounded);
  if (id < 0) {
    const std::int64_t segment = segment_for(rounded);
    id = new_block({.size = segment, .address = reserved_, .pool = pool});
    reserved_ += segment;
  }
  const std::int64_t left = block(id).size - rounded;
  if (holds_small(pool) ? left >= least_block : left > largest_small) cut(id, rounded);
  allocated_ += block(id).size;
  most_allocated_ = std::max(most_allocated_, allocated_);
  return id;
}

void CachingAllocator::give_back(BlockId id) {
  assert(!block(id).is_free);
  allocated_ -= block(id).size;
  const BlockId behind = block(id).behind;
  if (behind >= 0 && block(behind).is_free) {
    remove_free(behind);
    join(id, behind);
  }
  const BlockId before = block(id).before;
  if (before >= 0 && block(before).is_free) {
    remove_free(before);
    join(before, id);
    id = before;
  }
  put_free(id);
}

CachingAllocator::BlockId CachingAllocator::new_block(const Block& one) {
  if (unused_.empty()) {
    blocks_.push_back(one);
    return static_cast<BlockId>(blocks_.size()) - 1;
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  block(id) = one;
  return id;
}

CachingAllocator::BlockId CachingAllocator::take_free(std::int16_t pool, std::int64_t size) {
  std::vector<Free>& free = pools_[static_cast<std::size_t>(pool)];
  const auto found = std::lower_bound(free.begin(), free.end(), Free{.size = size});
  if (found == free.end()) return -1;
  const BlockId id = found->block;
  free.erase(found);
  block(id).is_free = false;
  return id;
}

void CachingAllocator::put_free(BlockId id) {
  block(id).is_free = true;
  std::vector<Free>& free = pool_of(block(id));
  const Free entry{block(id).size, block(id).address, id};
  free.insert(std::lower_bound(free.begin(), free.end(), entry), entry);
}

void CachingAllocator::remove_free(BlockId id) {
  std::vector<Free>& free = pool_of(block(id));
  const Free entry{block(id).size, block(id).address, id};
  free.erase(std::lower_bound(free.begin(), free.end(), entry));
  block(id).is_free = false;
}

void CachingAllocator::cut(BlockId id, std::int64_t size) {
  const Block whole = block(id);
  const BlockId rest = new_block({.size = whole.size - size,
                                  .address = whole.address + size,
                                  .before = id,
                                  .behind = whole.behind,
                                  .pool = whole.pool});
  if (whole.behind >= 0) block(whole.behind).before = rest;
  block(id).size = size;
  block(id).behind = rest;
  put_free(rest);
}

void CachingAllocator::join(BlockId id, BlockId with) {
  block(id).size += block(with).size;
  block(id).behind = block(with).behind;
  if (block(with).behind >= 0) block(block(with).behind).before = id;
  unused_.push_back(with);
}

}  // namespace shardsim
