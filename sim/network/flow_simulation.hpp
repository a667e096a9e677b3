// Flows over time: who moves how many bytes over which links, and when each is done. Links are
// shared max-min fairly (fair_share.hpp); rates change when a flow begins or ends, and only then.
//
//   FlowSimulation flows(capacities);
//   const FlowId a = flows.start(FlowTime(0), Bytes(1000), crossings);
//   while (flows.advance()) {
//     for (const FlowId done : flows.finished()) ...   // may start others, at flows.now() or later
//   }
//
// Example: a link of 1 GB/s; 1 MB begins at 0, 1 MB at 0.5 ms.
//   0 .. 0.5 ms the first alone, 0.5 MB left; then both at 0.5 GB/s; the first is done at 1.5 ms,
//   the second has 0.5 MB left and the link to itself: 2 ms.
//
// Time is a whole number of femtoseconds: an end is rounded up once, and ten thousand of them one
// after the other are 10 ps late at most. The order of what happens is (time, ends before
// beginnings, sequence), so that the same calls give the same times.
//
// Cost: for each beginning, end and change of rate a few moves between buckets, and update_rates()
// of what it is connected with. Memory grows with the flows under way, not with all that ever were.
// What links carry over time is written down only for who asks for it (link_recorder.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "sim/monotone_queue.hpp"
#include "sim/network/fair_share.hpp"

namespace shardsim::network {

// Femtoseconds since the simulation began; 2.5 hours at most.
using FlowTime = Quantity<struct FlowTimeTag, std::int64_t>;

// The first that is not before `time`, but for what a double cannot tell. Throws std::range_error
// beyond the 2.5 hours.
[[nodiscard]] FlowTime round_up_to_flow_time(Seconds time);
// Throws the same.
[[nodiscard]] FlowTime sum(FlowTime a, FlowTime b);
[[nodiscard]] Seconds to_seconds(FlowTime time);

class LinkRecorder;

class FlowSimulation {
 public:
  // By link; above zero.
  explicit FlowSimulation(const std::vector<Bandwidth>& capacities) : shares_(capacities) {}

  // Before anything begins. The recorder outlives it.
  void record(LinkRecorder& recorder) { recorder_ = &recorder; }

  // `bytes` begin to flow at `begin`, which is not before now(): whoever knows of latency adds it.
  // `bytes` are above zero. What is crossed is referred to until the flow has ended. The id is
  // that of the flow until the call of advance() after the one that told of its end.
  FlowId start(FlowTime begin, Bytes bytes, Crossings crossings);

  // Goes to the next moment at which flows end: finished(), in the order in which their ends were
  // known. False: there are none left. Throws std::range_error where an end is beyond the 2.5
  // hours.
  bool advance();
  [[nodiscard]] const std::vector<FlowId>& finished() const { return finished_; }
  // A flow as it is now, and nothing of when: two moments at which all flows are alike go on alike.
  struct Situation {
    FlowId flow = 0;
    bool flows = false;  // or has not begun
    FlowTime left{0};    // until it begins or, at this rate, ends
    FlowTime passed{0};  // since its rate changed
    double rest = 0;     // bytes then
    double rate = 0;
  };
  // Of all under way, in an order of no meaning.
  [[nodiscard]] std::vector<Situation> situations() const;

  // The moment that advance() went to; after it has said that none are left it may be later.
  [[nodiscard]] FlowTime now() const { return now_; }

 private:
  enum class Phase : std::uint8_t { ends, begins };

  struct Flow {
    Crossings crossings;
    double rest = 0;  // bytes, at `since`
    double rate = 0;  // bytes per second since then
    FlowTime since{0};
    FlowTime next{0};  // when it begins or, at this rate, ends
    Phase phase = Phase::begins;
    bool under_way = false;
  };
  struct Event {
    FlowTime time{0};
    Phase phase = Phase::ends;
    FlowId flow = 0;
  };
  static_assert(sizeof(Event) == 16, "the queue moves events about");

  [[nodiscard]] Flow& flow(FlowId id) { return flows_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool holds(const Event& event);
  void schedule(FlowId id, Phase phase, FlowTime time);
  void happen(const Event& event);
  void share_anew();
  void tell_recorder(const Flow& of, double moved, double rate);

  FairShare shares_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_;     // ids that may be used again
  MonotoneQueue<Event> events_;  // those that no longer hold are passed over
  std::vector<FlowId> finished_;
  FlowTime now_{0};
  LinkRecorder* recorder_ = nullptr;  // if anybody asks
};

}  // namespace shardsim::network
