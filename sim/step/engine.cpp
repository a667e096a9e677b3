#include "sim/step/engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/monotone_queue.hpp"

namespace shardsim {
namespace {

constexpr std::int32_t nowhere = -1;
constexpr SimTime never{-1};

// What differs from a whole number by no more than a few roundings of a double is that number.
SimTime whole(double picoseconds) {
  constexpr double roundings = 4 * std::numeric_limits<double>::epsilon();
  const double nearest = std::round(picoseconds);
  const bool is_whole = std::abs(picoseconds - nearest) <= roundings * picoseconds;
  return SimTime(static_cast<std::int64_t>(is_whole ? nearest : std::ceil(picoseconds)));
}

class Engine {
 public:
  explicit Engine(const TaskGraph& graph)
      : graph_(graph),
        waits_(graph.waits),
        slots_(graph.tasks.size(), nowhere),
        sharing_(graph.resources) {
    trace_.start.assign(graph.tasks.size(), never);
    trace_.end.assign(graph.tasks.size(), never);
    trace_.changes.reserve(2 * graph.tasks.size());
  }

  Trace run() {
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready(static_cast<std::int32_t>(i));
    }
    share_anew();
    while (!events_.empty()) {
      const std::vector<Event>& moment = events_.pop_moment();
      now_ = moment.front().time;
      for (const Event& event : moment) {
        if (event.phase == Phase::ends && holds(event)) finish(event.task);
      }
      for (const Event& event : moment) {
        if (event.phase == Phase::issued) start_all(event.task);
      }
      for (const Event& event : moment) {
        if (event.phase == Phase::begins) begin(event.task);
      }
      share_anew();
    }
    for (std::size_t i = 0; i < trace_.end.size(); ++i) {
      if (trace_.end[i] >= SimTime(0)) continue;
      trace_.stuck = static_cast<std::int32_t>(i);
      break;
    }
    return std::move(trace_);
  }

 private:
  enum class Phase : std::uint8_t { ends, issued, begins };
  struct Event {
    SimTime time{0};
    std::int32_t task = 0;
    Phase phase = Phase::ends;
  };
  static_assert(sizeof(Event) == 16, "the queue moves events about");

  // The shared part of a task, under way.
  struct Running {
    std::int32_t task = 0;
    double left = 0;  // picoseconds at full pace, at `since`
    double pace = 0;
    SimTime since{0};
    SimTime end{0};  // at this pace
  };

  [[nodiscard]] const EngineTask& task(std::int32_t id) const {
    return graph_.tasks[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Work& work(std::int32_t id) const {
    return graph_.works[static_cast<std::size_t>(task(id).work)];
  }
  [[nodiscard]] std::int32_t& waits(std::int32_t id) {
    return waits_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Slot& slot(std::int32_t id) { return slots_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Running& running(Slot at) { return running_[static_cast<std::size_t>(at)]; }

  void ready(std::int32_t id) {
    for (std::int32_t at = next_of(id); at != id; at = next_of(at)) {
      if (waits(at) != 0) return;
    }
    const SimTime issued = graph_.not_before.empty() ? now_ : issue_time(id);
    if (issued > now_) {
      events_.push({issued, id, Phase::issued});
    } else {
      start_all(id);
    }
  }

  // Of the last of its partners.
  [[nodiscard]] SimTime issue_time(std::int32_t id) const {
    SimTime latest = issue_time_of(graph_, trace_, static_cast<std::size_t>(id));
    for (std::int32_t at = next_of(id); at != id; at = next_of(at)) {
      latest = std::max(latest, issue_time_of(graph_, trace_, static_cast<std::size_t>(at)));
    }
    return latest;
  }

  void start_all(std::int32_t id) {
    start(id);
    for (std::int32_t at = next_of(id); at != id; at = next_of(at)) start(at);
  }

  // Round the ring of partners; itself where it has none.
  [[nodiscard]] std::int32_t next_of(std::int32_t id) const {
    const std::int32_t next = task(id).next_partner;
    return next < 0 ? id : next;
  }

  void start(std::int32_t id) {
    if (trace_.start[static_cast<std::size_t>(id)] >= SimTime(0)) return;
    trace_.start[static_cast<std::size_t>(id)] = now_;
    trace_.changes.emplace_back(id, /*starts=*/true);
    if (!task(id).carries) return;
    const Work& own = work(id);
    sharing_.hold(own.holds);
    if (own.shared == SimTime(0)) {
      events_.push({now_ + own.fixed, id, Phase::ends});
    } else if (own.fixed > SimTime(0)) {
      events_.push({now_ + own.fixed, id, Phase::begins});
    } else {
      begin(id);
    }
  }

  void begin(std::int32_t id) {
    const Slot at = sharing_.join(work(id).uses);
    if (static_cast<std::size_t>(at) >= running_.size()) running_.emplace_back();
    running(at) = {id, static_cast<double>(work(id).shared.count()), 0, now_, never};
    slot(id) = at;
  }

  // The end of a task whose pace has changed since is elsewhere.
  [[nodiscard]] bool holds(const Event& event) {
    if (work(event.task).shared == SimTime(0)) return true;
    const Slot at = slot(event.task);
    return at != nowhere && running(at).end == event.time;
  }

  void finish(std::int32_t id) {
    if (slot(id) != nowhere) sharing_.leave(std::exchange(slot(id), nowhere));
    sharing_.release(work(id).holds);
    end(id);
    for (std::int32_t at = next_of(id); at != id; at = next_of(at)) end(at);
    release(id);
    for (std::int32_t at = next_of(id); at != id; at = next_of(at)) release(at);
  }

  void end(std::int32_t id) {
    trace_.end[static_cast<std::size_t>(id)] = now_;
    trace_.changes.emplace_back(id, /*starts=*/false);
  }

  void release(std::int32_t id) {
    const auto first = graph_.first_successor[static_cast<std::size_t>(id)];
    const auto last = graph_.first_successor[static_cast<std::size_t>(id) + 1];
    for (std::uint32_t i = first; i < last; ++i) {
      if (--waits(graph_.successors[i]) == 0) ready(graph_.successors[i]);
    }
  }

  // What is left of the tasks whose pace changes, and when they end at the new one.
  void share_anew() {
    for (const Slot at : sharing_.update_rates()) {
      Running& changed = running(at);
      const auto passed = static_cast<double>((now_ - changed.since).count());
      changed.left = std::max(0.0, changed.left - changed.pace * passed);
      changed.since = now_;
      changed.pace = sharing_.pace(at);
      changed.end = never;
      if (work(changed.task).is_followed) {
        trace_.paces.push_back({now_, changed.task, changed.pace});
      }
      if (changed.pace == 0) continue;  // until others let go of what they hold
      changed.end = now_ + whole(changed.left / changed.pace);
      events_.push({changed.end, changed.task, Phase::ends});
    }
  }

  const TaskGraph& graph_;
  std::vector<std::int32_t> waits_;
  std::vector<Slot> slots_;  // by task; nowhere but in the shared part
  WorkSharing sharing_;
  std::vector<Running> running_;  // by slot
  MonotoneQueue<Event> events_;   // those that no longer hold are passed over
  SimTime now_{0};
  Trace trace_;
};

}  // namespace

SimTime issue_time_of(const TaskGraph& graph, const Trace& trace, std::size_t task) {
  const SimTime time = graph.not_before[task];
  if (graph.issued_behind.empty()) return time;
  const std::int32_t before = graph.issued_behind[task];
  return before < 0 ? time : trace.end[static_cast<std::size_t>(before)] + time;
}

Trace run(const TaskGraph& graph) { return Engine(graph).run(); }

}  // namespace shardsim
