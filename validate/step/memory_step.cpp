#include "validate/step/memory_step.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"
#include "sim/step/memory.hpp"

namespace shardsim {
namespace {

struct BufferEvent {
  std::int64_t moment = 0;
  bool comes = false;
  BufferId buffer = 0;
};

std::vector<BufferEvent> events_of(const Program& program) {
  const std::vector<BufferLifetime> lifetimes = lifetimes_of(program);
  std::vector<BufferEvent> events;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const auto& [begin, end] = lifetimes[i];
    if (program.buffers[i].bytes == Bytes(0)) continue;
    const auto buffer = static_cast<BufferId>(i);
    events.push_back({begin, true, buffer});
    if (end != BufferLifetime::beyond_the_step) events.push_back({end, false, buffer});
  }
  std::sort(events.begin(), events.end(), [](const BufferEvent& a, const BufferEvent& b) {
    return std::tie(a.moment, a.comes, a.buffer) < std::tie(b.moment, b.comes, b.buffer);
  });
  return events;
}

class MemoryReplay {
 public:
  MemoryReplay(const Program& program, DeviceMemory& memory)
      : program_(program), memory_(memory), grown_(program.buffers.size()) {}

  void apply(const BufferEvent& event) {
    if (event.comes) {
      allocate(event.buffer);
    } else {
      memory_.free(event.buffer);
      category_of(event.buffer) -= grown_[at(event.buffer)];
      in_use_ = memory_.in_use();
    }
  }

  void end_moment() {
    if (in_use_ <= measured_.peak) return;
    measured_.peak = in_use_;
    measured_.by_category = by_category_;
  }

  [[nodiscard]] const MeasuredMemory& measured() const { return measured_; }

 private:
  void allocate(BufferId buffer) {
    memory_.allocate(buffer, program_.buffers[at(buffer)].bytes);
    const Bytes before = in_use_;
    in_use_ = memory_.in_use();
    grown_[at(buffer)] = in_use_ - before;
    category_of(buffer) += grown_[at(buffer)];
    measured_.reserved = std::max(measured_.reserved, memory_.reserved());
  }

  Bytes& category_of(BufferId buffer) {
    return by_category_[static_cast<std::size_t>(program_.buffers[at(buffer)].category)];
  }

  const Program& program_;
  DeviceMemory& memory_;
  std::vector<Bytes> grown_;  // by each buffer, while it is there
  std::array<Bytes, buffer_categories> by_category_{};
  Bytes in_use_{0};
  MeasuredMemory measured_;
};

}  // namespace

MeasuredMemory measure_memory(const Program& program, DeviceMemory& memory) {
  const std::vector<BufferEvent> events = events_of(program);
  MemoryReplay replay(program, memory);
  for (std::size_t i = 0; i < events.size(); ++i) {
    replay.apply(events[i]);
    const bool is_last = i + 1 == events.size() || events[i + 1].moment != events[i].moment;
    if (is_last) replay.end_moment();
  }
  return replay.measured();
}

}  // namespace shardsim
