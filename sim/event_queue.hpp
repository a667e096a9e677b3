// Events in total order: time, then named phase, then the order in which they were scheduled.
//
// A heap of 16-byte values. Only tasks that run have events, so the heap holds a few per stream and
// stops growing soon: no allocation per event.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace shardsim {

// What happens first at one moment.
enum class EventPhase : std::uint32_t {
  finish,      // a task ends; others start
  take_links,  // a collective's fixed part is over, its bytes begin to flow
};

struct Event {
  SimTime time{0};
  std::uint32_t order = 0;  // phase in the highest bit, then the sequence number
  std::int32_t task = 0;

  [[nodiscard]] EventPhase phase() const { return EventPhase{order >> 31}; }
};
static_assert(sizeof(Event) == 16, "the heap moves events about");

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  void push(SimTime time, EventPhase phase, std::int32_t task) {
    assert(sequence_ < 1U << 31);
    heap_.push_back({time, static_cast<std::uint32_t>(phase) << 31 | sequence_++, task});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  std::vector<Event> heap_;
  std::uint32_t sequence_ = 0;
};

}  // namespace shardsim
