// The event engine: when tasks run. It knows nothing of models, plans or machines; lowering.hpp
// turns a plan into its input.
//
//   - A task starts when all tasks that it waits for have ended; the one before it in its stream is
//     among them. Two partners (the ends of a message) start together.
//   - It ends after `fixed`, plus `transfer` on its links, longer where they are shared.
//
// Cost: O(tasks + waits) events, each O(log streams + flows). All state is flat and made up front.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "sim/link_sharing.hpp"

namespace shardsim {

// What a task takes.
struct Work {
  SimTime fixed{0};     // a kernel whole; launch and latency of a collective
  SimTime transfer{0};  // at full speed
  unsigned levels = 0;  // bits of link levels, both directions; a message: out here, in there
};

struct EngineTask {
  std::int32_t work = 0;
  std::int32_t program = 0;
  std::int32_t partner = -1;  // the other end of a message
  bool sends = false;         // the sender carries the message
};

// Tasks by number. Successors of task t: successors[first_successor[t] .. first_successor[t + 1]).
struct TaskGraph {
  std::size_t programs = 1;
  std::vector<Work> works;
  std::vector<EngineTask> tasks;
  std::vector<std::int32_t> waits;  // how many tasks it waits for
  std::vector<std::uint32_t> first_successor;
  std::vector<std::int32_t> successors;
};

// A task starts or ends.
struct Change {
  std::int32_t task = 0;
  bool starts = false;
};

struct Trace {
  std::vector<SimTime> start;  // by task
  std::vector<SimTime> end;
  std::vector<Change> changes;  // in order of time; at one moment in the order of events
  std::int32_t stuck = -1;      // the first task that never ended: they wait for each other
};

[[nodiscard]] Trace run(const TaskGraph& graph);

}  // namespace shardsim
