#include "sim/step/reserved_memory.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "sim/step/caching_allocator.hpp"

namespace shardsim {
namespace {

constexpr CachingAllocator::BlockId nowhere = -1;

// Buffers by the moment of a beginning or an end.
class Calendar {
 public:
  template <class MomentOf>  // of a buffer, -1: of none
  Calendar(std::size_t moments, std::size_t buffers, MomentOf moment_of) : first_(moments + 1, 0) {
    for (std::size_t i = 0; i < buffers; ++i) {
      if (moment_of(i) >= 0) ++first_[at(moment_of(i)) + 1];
    }
    for (std::size_t m = 1; m < first_.size(); ++m) first_[m] += first_[m - 1];
    buffers_.resize(first_.back());
    std::vector<std::size_t> place(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < buffers; ++i) {
      if (moment_of(i) >= 0) buffers_[place[at(moment_of(i))]++] = i;
    }
  }

  template <class Visit>
  void for_each(std::size_t moment, Visit visit) const {
    for (std::size_t i = first_[moment]; i < first_[moment + 1]; ++i) visit(buffers_[i]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::size_t> buffers_;
};

// Streams by their places in Program::streams (strategies/partition/spmd.hpp).
int stream_of(const Program& program, const Buffer& buffer) {
  constexpr int gathers = 1;
  constexpr int reductions = 2;
  if (buffer.allocated_by == before_the_step) return 0;
  const int stream = program.tasks[at(buffer.allocated_by)].stream;
  return stream == gathers || stream == reductions ? stream : 0;
}

class Replay {
 public:
  Replay(const Program& program, const std::vector<BufferLifetime>& lifetimes)
      : program_(program),
        lifetimes_(lifetimes),
        moments_(program.tasks.size() + 1),
        blocks_(program.buffers.size(), nowhere),
        begins_(moments_, program.buffers.size(),
                [&](std::size_t i) { return is_of_the_step(i) ? lifetimes[i].begin : -1; }),
        ends_(moments_, program.buffers.size(), [&](std::size_t i) {
          const bool ends = lifetimes[i].end != BufferLifetime::beyond_the_step;
          return ends && !program.buffers[i].on_host ? lifetimes[i].end : -1;
        }) {}

  ReservedMemory run(Bytes workspaces) {
    if (workspaces > Bytes(0)) (void)allocator_.allocate(workspaces, 0);
    take_where([&](const Buffer& buffer) {
      return is_there_before(buffer) && buffer.category != BufferCategory::optimizer;
    });
    step(/*is_first=*/true);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (is_of_the_step(i)) give_back(i);
    }
    step(/*is_first=*/false);
    return {allocator_.most_allocated(), allocator_.reserved()};
  }

 private:
  static bool is_there_before(const Buffer& buffer) {
    return buffer.allocated_by == before_the_step;
  }
  [[nodiscard]] bool is_of_the_step(std::size_t i) const {
    const Buffer& buffer = program_.buffers[i];
    return !is_there_before(buffer) && !buffer.on_host;
  }

  void step(bool is_first) {
    bool makes_state = is_first;
    for (std::size_t moment = 0; moment < moments_; ++moment) {
      ends_.for_each(moment, [&](std::size_t i) { give_back(i); });
      const bool updates =
          moment < program_.tasks.size() && program_.tasks[moment].phase == Phase::optimizer;
      if (makes_state && (updates || moment + 1 == moments_)) {
        take_where([](const Buffer& buffer) {
          return is_there_before(buffer) && buffer.category == BufferCategory::optimizer;
        });
        makes_state = false;
      }
      begins_.for_each(moment, [&](std::size_t i) { take(i); });
    }
    // Inputs of the next one.
    take_where([&](const Buffer& buffer) { return is_there_before(buffer); });
  }

  template <class Holds>
  void take_where(Holds holds) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (!buffer.on_host && blocks_[i] == nowhere && holds(buffer)) take(i);
    }
  }
  void take(std::size_t i) {
    const Buffer& buffer = program_.buffers[i];
    if (buffer.bytes > Bytes(0)) {
      blocks_[i] = allocator_.allocate(buffer.bytes, stream_of(program_, buffer));
    }
  }
  void give_back(std::size_t i) {
    if (blocks_[i] != nowhere) allocator_.give_back(blocks_[i]);
    blocks_[i] = nowhere;
  }

  const Program& program_;
  const std::vector<BufferLifetime>& lifetimes_;
  std::size_t moments_;
  std::vector<CachingAllocator::BlockId> blocks_;  // of buffers that are there
  Calendar begins_;
  Calendar ends_;
  CachingAllocator allocator_;
};

}  // namespace

ReservedMemory reserve_memory(const Program& program, const std::vector<BufferLifetime>& lifetimes,
                              Bytes workspaces) {
  return Replay(program, lifetimes).run(workspaces);
}

}  // namespace shardsim
