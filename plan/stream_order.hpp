// Tasks on up to four streams (compute, communication, copies to the host and from it) from a walk
// over the values of a program: when a value is there, and the fewest edges that say so.
//
//   a = kernel()        task 0 on stream 0
//   b = collective(a)   task 1 on stream 1, after task 0
//   c = kernel(a, b)    task 2 on stream 0, after task 1: task 0 is before it on its own stream
//   d = kernel(b)       task 3 on stream 0: after task 2, which waited for task 1
#pragma once

#include <algorithm>
#include <array>

#include "plan/plan.hpp"

namespace shardsim {

inline constexpr std::size_t ordered_streams = 4;

// When a value is there: streams run in order, so the last task on each says it.
struct Ready {
  Ready() { last.fill(before_the_step); }
  void join(const Ready& other) {
    for (std::size_t i = 0; i < last.size(); ++i) last[i] = std::max(last[i], other.last[i]);
  }

  std::array<TaskId, ordered_streams> last;
};

class StreamOrder {
 public:
  // Adds a task that waits for `ready`, and tells when what it makes is there.
  Ready add(Program& program, const Task& task, const Ready& ready);

 private:
  std::array<Ready, ordered_streams> awaited_;  // by stream: what its tasks have waited for
};

}  // namespace shardsim
