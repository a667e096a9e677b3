#include "sim/engine.hpp"

#include "sim/event_queue.hpp"

namespace shardsim {
namespace {

class Engine {
 public:
  explicit Engine(const TaskGraph& graph)
      : graph_(graph), waits_(graph.waits), sharing_(graph.programs) {
    trace_.start.assign(graph.tasks.size(), SimTime(-1));
    trace_.end.assign(graph.tasks.size(), SimTime(-1));
    trace_.changes.reserve(2 * graph.tasks.size());
  }

  Trace run() {
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready(static_cast<std::int32_t>(i));
    }
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      now_ = event.time;
      if (event.phase() == EventPhase::take_links) {
        take_links(event.task);
      } else {
        finish(event.task);
      }
    }
    for (std::size_t i = 0; i < trace_.end.size(); ++i) {
      if (trace_.end[i] >= SimTime(0)) continue;
      trace_.stuck = static_cast<std::int32_t>(i);
      break;
    }
    return std::move(trace_);
  }

 private:
  const EngineTask& task(std::int32_t id) const {
    return graph_.tasks[static_cast<std::size_t>(id)];
  }
  const Work& work(std::int32_t id) const {
    return graph_.works[static_cast<std::size_t>(task(id).work)];
  }
  std::int32_t& waits(std::int32_t id) { return waits_[static_cast<std::size_t>(id)]; }

  void ready(std::int32_t id) {
    const std::int32_t partner = task(id).partner;
    if (partner < 0) {
      start(id);
    } else if (waits(partner) == 0) {
      start(id);
      start(partner);
    }
  }

  void start(std::int32_t id) {
    if (trace_.start[static_cast<std::size_t>(id)] >= SimTime(0)) return;
    trace_.start[static_cast<std::size_t>(id)] = now_;
    trace_.changes.push_back({id, /*starts=*/true});
    if (task(id).partner >= 0 && !task(id).sends) return;  // the sender carries the message
    const bool flows = work(id).transfer > SimTime(0);
    queue_.push(now_ + work(id).fixed, flows ? EventPhase::take_links : EventPhase::finish, id);
  }

  void take_links(std::int32_t id) {
    const EngineTask& own = task(id);
    const unsigned levels = work(id).levels;
    Flow flow{id, own.program, own.program, outgoing(levels), incoming(levels), 1, now_};
    if (own.partner >= 0) flow.peer = task(own.partner).program;
    sharing_.join(flow, now_, work(id).transfer, moved_);
    schedule_moved();
  }

  // An event of a flow that has moved since is stale: then no flow ends now.
  void finish(std::int32_t id) {
    if (work(id).transfer > SimTime(0) && !sharing_.leave(id, now_, moved_)) return;
    schedule_moved();
    const std::int32_t partner = task(id).partner;
    end(id);
    if (partner >= 0) end(partner);
    release(id);
    if (partner >= 0) release(partner);
  }

  void end(std::int32_t id) {
    trace_.end[static_cast<std::size_t>(id)] = now_;
    trace_.changes.push_back({id, /*starts=*/false});
  }

  void release(std::int32_t id) {
    const auto first = graph_.first_successor[static_cast<std::size_t>(id)];
    const auto last = graph_.first_successor[static_cast<std::size_t>(id) + 1];
    for (std::uint32_t i = first; i < last; ++i) {
      if (--waits(graph_.successors[i]) == 0) ready(graph_.successors[i]);
    }
  }

  void schedule_moved() {
    for (const Flow& flow : moved_) queue_.push(flow.end, EventPhase::finish, flow.task);
    moved_.clear();
  }

  const TaskGraph& graph_;
  std::vector<std::int32_t> waits_;
  LinkSharing sharing_;
  EventQueue queue_;
  std::vector<Flow> moved_;  // kept for its memory
  SimTime now_{0};
  Trace trace_;
};

}  // namespace

Trace run(const TaskGraph& graph) { return Engine(graph).run(); }

}  // namespace shardsim
