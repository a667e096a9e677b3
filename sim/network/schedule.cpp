#include "sim/network/schedule.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// One lane after the other, phase by phase.
class Lowering {
 public:
  Lowering(const Shape& shape, Schedule& schedule)
      : shape_(shape),
        ranks_(
            at(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()))),
        schedule_(schedule) {}

  void add(const Phases& phases) {
    awaited_.assign(ranks_, {});
    for (const Phase& phase : phases) add(phase);
  }

 private:
  void add(const Phase& phase) {
    const auto first = static_cast<StreamId>(schedule_.streams.size());
    for (const Target& target : phase.targets) add(phase.messages, targets_of(shape_, target));
    const auto end = static_cast<StreamId>(schedule_.streams.size());
    // Who sent has waited for all that came before: who waits for that has waited for all.
    for (StreamId id = first; id < end; ++id) awaited_[from(id)].clear();
    for (StreamId id = first; id < end; ++id) {
      awaited_[from(id)].push_back({id, Until::last});
      awaited_[at(schedule_.streams[at(id)].to)].push_back({id, Until::last});
    }
  }

  void add(const Messages& messages, const Targets& targets) {
    const std::uint32_t kind = schedule_.kind(messages);
    std::vector<StreamId> received(ranks_, nobody);  // by rank: the stream of this target
    auto next = static_cast<StreamId>(schedule_.streams.size());
    for (const std::int32_t target : targets) {
      if (target != nobody) received[at(target)] = next++;
    }
    std::vector<Wait> waits;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (targets[rank] == nobody) continue;
      waits = awaited_[rank];
      if (messages.steps > 1 && received[rank] != nobody) {
        waits.push_back({received[rank], Until::previous});
      }
      schedule_.add(static_cast<std::int32_t>(rank), targets[rank], kind, waits);
    }
  }

  [[nodiscard]] std::size_t from(StreamId id) const { return at(schedule_.streams[at(id)].from); }

  const Shape& shape_;
  std::size_t ranks_;
  Schedule& schedule_;
  std::vector<std::vector<Wait>> awaited_;  // by rank, before it begins the next phase
};

}  // namespace

std::uint32_t Schedule::kind(const Messages& messages) {
  const auto found = std::find(kinds.begin(), kinds.end(), messages);
  const auto number = static_cast<std::uint32_t>(found - kinds.begin());
  if (found == kinds.end()) kinds.push_back(messages);
  return number;
}

StreamId Schedule::add(std::int32_t from, std::int32_t to, std::uint32_t messages_kind,
                       const std::vector<Wait>& waiting_for) {
  streams.push_back({from, to, messages_kind, static_cast<std::uint32_t>(waits.size()),
                     static_cast<std::uint32_t>(waiting_for.size())});
  waits.insert(waits.end(), waiting_for.begin(), waiting_for.end());
  return static_cast<StreamId>(streams.size()) - 1;
}

Schedule schedule_of(const Shape& shape, const Lanes& lanes) {
  Schedule schedule;
  Lowering lowering(shape, schedule);
  for (const Phases& lane : lanes) lowering.add(lane);
  return schedule;
}

}  // namespace shardsim::network
