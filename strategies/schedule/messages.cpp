#include "strategies/schedule/messages.hpp"

#include <fmt/format.h>

#include <cassert>

#include "strategies/schedule/schedule_text.hpp"

namespace shardsim {
namespace {

// Which forwards and gradients there are, by stage and microbatch.
class Done {
 public:
  explicit Done(const PipelineShape& shape)
      : microbatches_(static_cast<std::size_t>(shape.microbatches)),
        last_(static_cast<std::int16_t>(shape.stages() - 1)),
        forward_(shape.stages() * microbatches_),
        gradient_(shape.stages() * microbatches_) {}

  // What the action needs of another stage.
  [[nodiscard]] bool allows(const Action& action) const {
    if (action.kind == ActionKind::forward) {
      return action.stage == 0 || forward_[at(action.stage - 1, action.microbatch)];
    }
    if (!makes_input_gradient(action.kind)) return true;
    return action.stage == last_ || gradient_[at(action.stage + 1, action.microbatch)];
  }
  void add(const Action& action) {
    if (action.kind == ActionKind::forward) forward_[at(action.stage, action.microbatch)] = true;
    if (makes_input_gradient(action.kind)) gradient_[at(action.stage, action.microbatch)] = true;
  }

 private:
  [[nodiscard]] std::size_t at(int stage, std::int32_t microbatch) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  std::size_t microbatches_;
  std::int16_t last_;
  std::vector<bool> forward_;
  std::vector<bool> gradient_;
};

// Of a send and its receive.
void add_message(const Action& action, const PipelineShape& shape,
                 std::vector<std::vector<Call>>& calls) {
  const bool forward = action.kind == ActionKind::forward;
  if (!forward && !makes_input_gradient(action.kind)) return;
  Action peer = action;
  peer.stage = static_cast<std::int16_t>(action.stage + (forward ? 1 : -1));
  peer.with_next = false;
  if (peer.stage < 0 || static_cast<std::size_t>(peer.stage) == shape.stages()) return;
  const auto from =
      static_cast<std::size_t>(shape.rank_of_stage[static_cast<std::size_t>(action.stage)]);
  const auto to =
      static_cast<std::size_t>(shape.rank_of_stage[static_cast<std::size_t>(peer.stage)]);
  if (from == to) return;
  // A gradient is received alike whether the peer's backward is split or not.
  if (!forward) peer.kind = ActionKind::backward;
  Action sent = action;
  sent.with_next = false;
  if (!forward) sent.kind = ActionKind::backward;
  calls[from].push_back({Call::Kind::send, sent});
  calls[to].push_back({Call::Kind::receive, peer});
}

}  // namespace

std::string call_text(const Call& call) {
  if (call.kind == Call::Kind::compute) return action_text(call.action);
  return fmt::format("{}{}_{}{}", call.action.stage,
                     call.kind == Call::Kind::send ? "SEND" : "RECV", word_of(call.action.kind),
                     call.action.microbatch);
}

std::vector<std::vector<Call>> with_messages(const PipelineSchedule& schedule) {
  std::vector<std::vector<Call>> calls(schedule.of_rank.size());
  std::vector<std::size_t> next(schedule.of_rank.size());
  Done done(schedule.shape);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const std::vector<Action>& actions = schedule.of_rank[rank];
      const std::size_t first = next[rank];
      if (first == actions.size()) continue;
      const std::size_t end = first + (actions[first].with_next ? 2 : 1);
      bool ready = true;
      for (std::size_t i = first; i < end; ++i) ready = ready && done.allows(actions[i]);
      if (!ready) continue;
      for (std::size_t i = first; i < end; ++i) {
        calls[rank].push_back({Call::Kind::compute, actions[i]});
      }
      for (std::size_t i = first; i < end; ++i) {
        done.add(actions[i]);
        add_message(actions[i], schedule.shape, calls);
      }
      next[rank] = end;
      progress = true;
    }
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    assert(next[rank] == schedule.of_rank[rank].size());
  }
  return calls;
}

std::vector<std::vector<Call>> computations(const PipelineSchedule& schedule) {
  std::vector<std::vector<Call>> calls;
  for (const std::vector<Action>& actions : schedule.of_rank) {
    std::vector<Call>& of_rank = calls.emplace_back();
    for (const Action& action : actions) of_rank.push_back({Call::Kind::compute, action});
  }
  return calls;
}

}  // namespace shardsim
