#include "plan/stream_order.hpp"

namespace shardsim {

Ready StreamOrder::add(Program& program, const Task& task, const Ready& ready) {
  std::vector<TaskId> after;
  for (std::size_t other = 0; other < ready.last.size(); ++other) {
    // Of its own stream it follows every task anyhow, and what that waited for.
    TaskId& awaited = awaited_[task.stream].last[other];
    if (other == task.stream || ready.last[other] <= awaited) continue;
    awaited = ready.last[other];
    after.push_back(awaited);
  }
  Ready done;
  done.last[task.stream] = program.add_task(task, after);
  return done;
}

}  // namespace shardsim
