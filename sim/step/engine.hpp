// The event engine: when tasks run. It knows nothing of models, plans or machines; lowering.hpp
// turns a plan into its input.
//
//   - A task starts when it is issued and all tasks that it waits for have ended; the one before it
//     in its stream is among them. Partners (the ends of a message, a collective in several
//     programs) start and end together.
//   - It ends after `fixed`, plus `shared` at the pace that others leave it (work_sharing.hpp).
//
// Example: A needs 100 ps of a link, B as well; A begins at 0, B at 50.
//   0 .. 50 A alone, 50 ps left; then both at half pace; A ends at 150, B has 50 left, ends at 200.
//
// Time is whole picoseconds. What is left of a task is reckoned anew only when its pace changes,
// and its end rounded up once: a task that never shares ends exactly when it would alone. At one
// moment ends come before beginnings, then what was scheduled first.
//
// Cost: O(tasks + waits) events, a few moves between buckets for each, and what sharing takes. All
// state is flat and made up front.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "sim/step/work_sharing.hpp"

namespace shardsim {

// What a task takes.
struct Work {
  SimTime fixed{0};          // launch and latency
  SimTime shared{0};         // the rest, alone
  Uses uses{};               // during that
  Uses holds{};              // from start to end
  bool is_followed = false;  // its changes of pace are kept
};

struct EngineTask {
  std::int32_t work = 0;
  std::int32_t program = 0;
  std::int32_t next_partner = -1;  // of a ring of them; -1: it has none
  bool carries = true;             // one of them takes what all take, as the sender of a message
};

// Tasks by number. Successors of task t: successors[first_successor[t] .. first_successor[t + 1]).
struct TaskGraph {
  std::size_t resources = 0;
  std::vector<Work> works;
  std::vector<EngineTask> tasks;
  std::vector<std::int32_t> waits;  // how many tasks it waits for
  // When it is issued: empty: all are, before the step. From its beginning, or from the end of
  // another task, one that it waits for; -1: of none; empty: of none for all.
  std::vector<SimTime> not_before;
  std::vector<std::int32_t> issued_behind;
  std::vector<std::uint32_t> first_successor;
  std::vector<std::int32_t> successors;
};

// A task starts or ends; in four bytes, as a trace has two for each task.
class Change {
 public:
  Change(std::int32_t task, bool starts) : code_(starts ? task : ~task) {}
  [[nodiscard]] bool starts() const { return code_ >= 0; }
  [[nodiscard]] std::int32_t task() const { return starts() ? code_ : ~code_; }

 private:
  std::int32_t code_;
};

// A task that is in its shared part goes on at another pace.
struct PaceChange {
  SimTime time{0};
  std::int32_t task = 0;
  double pace = 0;
};

struct Trace {
  std::vector<SimTime> start;  // by task
  std::vector<SimTime> end;
  std::vector<Change> changes;    // in order of time; at one moment in the order of events
  std::vector<PaceChange> paces;  // in order of time, of works that are followed
  std::int32_t stuck = -1;        // the first task that never ended: they wait for each other
};

// When it is issued; of a graph that says so, in a trace that has what the task is issued behind.
[[nodiscard]] SimTime issue_time_of(const TaskGraph& graph, const Trace& trace, std::size_t task);

[[nodiscard]] Trace run(const TaskGraph& graph);

}  // namespace shardsim
