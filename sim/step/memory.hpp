// The memory of one program over the step.
//
// Memory goes by the order of the program, not by how long anything takes, as it does where it is
// real: XLA lays buffers out before anything runs, and PyTorch's allocator takes and gives back in
// the order in which the host issues work. So peaks depend neither on links nor on devices.
//
// Moments are the tasks of the program in issue order. A task of the compute stream is there at its
// own moment. One of another stream may run at any time after the last compute task that it waits
// for (directly or not) and before the first compute task that waits for it: it is there at all
// moments in between; where no compute task lies in between, and nothing of a third stream does, at
// its own. A buffer lives from the first moment of the task that allocates it to the last moment of
// those that free it. However long tasks take, no more is ever there at once.
//
// Example: 10 B of parameters; A (0..5) allocates 4 B freed after B (5..9), B allocates 3 B freed
// after C (9..12), C allocates 6 B freed after itself: 14 B from 0, 17 from 5, 19 from 9, 10 from
// 12. The peak is 19 B at 9, while C runs.
// Example: kernels A, B, C; A allocates 8 B that a reduction reads, issued after A, C waits for the
// reduction: the 8 B are there while A and B run, and gone while C does, whether the reduction ends
// beside B or long after it.
//
// Cost: O(tasks + dependencies + buffers log buffers).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/step/simulate.hpp"

namespace shardsim {

// Of one buffer: the moments in [begin, end).
struct BufferLifetime {
  static constexpr std::int64_t beyond_the_step = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = beyond_the_step;
};

// Of the program's buffers, in their order.
[[nodiscard]] std::vector<BufferLifetime> lifetimes_of(const Program& program);

// Fills the memory members of `result`; `result.tasks` is there already: a moment is shown at the
// time when its task started. `workspaces` are there all the time, temporaries. Answers lifetimes.
std::vector<BufferLifetime> replay_memory(const Plan& plan, const Program& program,
                                          Bytes workspaces, bool keep_curve, ProgramResult& result);

}  // namespace shardsim
