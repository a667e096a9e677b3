#include "strategies/schedule/acknowledged.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Of a computation, by what it needs of another stage: its place in its rank's calls.
class NeededAt {
 public:
  NeededAt(const CallLists& lists, const PipelineShape& shape)
      : microbatches_(at(shape.microbatches)),
        forward_(shape.stages() * microbatches_),
        backward_(shape.stages() * microbatches_) {
    for (const std::vector<Call>& calls : lists) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const Action& action = calls[i].action;
        if (calls[i].kind != Call::Kind::compute) continue;
        if (action.kind == ActionKind::forward) forward_[index(action.stage, action)] = i;
        if (makes_input_gradient(action.kind)) backward_[index(action.stage, action)] = i;
      }
    }
  }

  // Where the rank that a send goes to needs it.
  [[nodiscard]] std::size_t of_send(const Action& sent) const {
    const bool forward = sent.kind == ActionKind::forward;
    return (forward ? forward_ : backward_)[index(receiver(sent), sent)];
  }
  [[nodiscard]] static int receiver(const Action& sent) {
    return sent.stage + (sent.kind == ActionKind::forward ? 1 : -1);
  }

 private:
  [[nodiscard]] std::size_t index(int stage, const Action& action) const {
    return at(stage) * microbatches_ + at(action.microbatch);
  }
  std::size_t microbatches_;
  std::vector<std::size_t> forward_;
  std::vector<std::size_t> backward_;
};

}  // namespace

std::vector<std::vector<Acknowledged>> sends_until_backward(const CallLists& lists) {
  std::vector<std::vector<Acknowledged>> result(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    std::map<std::pair<std::int16_t, std::int32_t>, std::size_t> sent;  // by stage and microbatch
    for (std::size_t i = 0; i < lists[rank].size(); ++i) {
      const auto& [kind, action] = lists[rank][i];
      const std::pair key{action.stage, action.microbatch};
      if (kind == Call::Kind::send && action.kind == ActionKind::forward) sent[key] = i;
      if (kind != Call::Kind::compute || !makes_input_gradient(action.kind)) continue;
      if (const auto send = sent.find(key); send != sent.end()) {
        result[rank].push_back({i + 1, send->second});
        sent.erase(send);
      }
    }
  }
  return result;
}

std::vector<std::vector<Acknowledged>> acknowledged_sends(const CallLists& lists,
                                                          const PipelineShape& shape) {
  const NeededAt needed(lists, shape);
  // Places of sends, by the ranks that they go from and to.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> sends;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (std::size_t i = 0; i < lists[rank].size(); ++i) {
      if (lists[rank][i].kind != Call::Kind::send) continue;
      const int stage = NeededAt::receiver(lists[rank][i].action);
      sends[{rank, at(shape.rank_of_stage[at(stage)])}].push_back(i);
    }
  }
  std::vector<std::vector<Acknowledged>> result(lists.size());
  for (const auto& [ranks, places] : sends) {
    const auto& [rank, peer] = ranks;
    const auto back = sends.find({peer, rank});
    if (back == sends.end()) continue;
    for (const std::size_t send : places) {
      const std::size_t read = needed.of_send(lists[rank][send].action);
      const auto answer = std::upper_bound(back->second.begin(), back->second.end(), read);
      if (answer == back->second.end()) continue;
      result[rank].push_back({needed.of_send(lists[peer][*answer].action), send});
    }
  }
  for (std::vector<Acknowledged>& of_rank : result) {
    std::sort(of_rank.begin(), of_rank.end(), [](const Acknowledged& a, const Acknowledged& b) {
      return std::pair{a.at, a.send} < std::pair{b.at, b.send};
    });
  }
  return result;
}

}  // namespace shardsim
