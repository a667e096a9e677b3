#include "strategies/schedule/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

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

// A message: who sends and who needs it.
struct Message {
  Action sent, needed;
  std::size_t from = 0, to = 0;  // ranks
};

// Of what the action makes: none where the stage that needs it is on the same rank.
std::optional<Message> message_of(const Action& action, const PipelineShape& shape) {
  const bool forward = action.kind == ActionKind::forward;
  if (!forward && !makes_input_gradient(action.kind)) return std::nullopt;
  Message message{.sent = action, .needed = action};
  message.needed.stage = static_cast<std::int16_t>(action.stage + (forward ? 1 : -1));
  const std::int16_t peer = message.needed.stage;
  if (peer < 0 || static_cast<std::size_t>(peer) == shape.stages()) return std::nullopt;
  message.from =
      static_cast<std::size_t>(shape.rank_of_stage[static_cast<std::size_t>(action.stage)]);
  message.to = static_cast<std::size_t>(shape.rank_of_stage[static_cast<std::size_t>(peer)]);
  if (message.from == message.to) return std::nullopt;
  for (Action* end : {&message.sent, &message.needed}) {
    end->with_next = false;
    // A gradient is sent and received alike whether backward is split or not.
    if (!forward) end->kind = ActionKind::backward;
  }
  return message;
}

// What the action waits for from another rank: the message of the stage that makes it.
std::optional<Message> message_for(const Action& action, const PipelineShape& shape) {
  const bool forward = action.kind == ActionKind::forward;
  Action maker = action;
  maker.stage = static_cast<std::int16_t>(action.stage + (forward ? -1 : 1));
  const bool is_there = maker.stage >= 0 && static_cast<std::size_t>(maker.stage) < shape.stages();
  return is_there ? message_of(maker, shape) : std::nullopt;
}

// One past the call, or past both of an overlapped pair.
std::size_t end_of(const std::vector<Call>& calls, std::size_t first) {
  const bool is_pair = calls[first].kind == Call::Kind::compute && calls[first].action.with_next;
  return first + (is_pair ? 2 : 1);
}

bool computes(const Call& call) { return call.kind == Call::Kind::compute; }

CallLists received_when_needed(const CallLists& lists, const PipelineShape& shape) {
  CallLists result(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const std::vector<Call>& calls = lists[rank];
    std::vector<Call>& out = result[rank];
    for (std::size_t first = 0; first < calls.size(); first = end_of(calls, first)) {
      const std::size_t end = end_of(calls, first);
      for (std::size_t i = first; i < end && computes(calls[i]); ++i) {
        const auto message = message_for(calls[i].action, shape);
        if (message) out.push_back({Call::Kind::receive, message->needed});
      }
      out.insert(out.end(), calls.begin() + static_cast<std::ptrdiff_t>(first),
                 calls.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t i = first; i < end && computes(calls[i]); ++i) {
        const auto message = message_of(calls[i].action, shape);
        if (message) out.push_back({Call::Kind::send, message->sent});
      }
    }
  }
  return result;
}

// Behind which call each receive stands: `place` of those that stand before all is nothing.
struct Ahead {
  std::optional<std::size_t> behind;
  Action needed;
};

// Of a rank whose passes of one direction are those that the last rank of that direction hands on
// to: its pass that runs as this one's `sent` comes, ranks - 1 passes later than there.
std::optional<std::size_t> behind_aligned(const CallLists& lists, std::size_t rank,
                                          const Message& message) {
  const bool forward = message.sent.kind == ActionKind::forward;
  const auto of_direction = [&](const Call& call) {
    return (call.action.kind == ActionKind::forward) == forward;
  };
  const std::vector<Call>& theirs = lists[message.from];
  const auto sent = std::find_if(theirs.begin(), theirs.end(), [&](const Call& call) {
    return of_direction(call) && call.action.stage == message.sent.stage &&
           call.action.microbatch == message.sent.microbatch;
  });
  auto left = std::count_if(theirs.begin(), sent, of_direction) +
              static_cast<std::ptrdiff_t>(lists.size()) - 1;
  for (std::size_t i = 0; i < lists[rank].size(); ++i) {
    if (of_direction(lists[rank][i]) && left-- == 0) return i;
  }
  return std::nullopt;
}

// What the calls of a rank need of others, one ahead.
std::vector<Ahead> needed_ahead(const CallLists& lists, std::size_t rank,
                                const PipelineShape& shape) {
  const std::vector<Call>& calls = lists[rank];
  std::vector<Ahead> all;
  std::optional<std::size_t> forward, backward;  // the last of each so far
  std::optional<std::size_t> before;             // the last of all
  std::size_t forwards_left = 0;
  for (const Call& call : calls) forwards_left += call.action.kind == ActionKind::forward ? 1 : 0;
  std::optional<std::size_t> before_that;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Action& action = calls[i].action;
    const bool is_forward = action.kind == ActionKind::forward;
    const auto message = message_for(action, shape);
    // A first backward pass follows the first forward one behind the warm-up, if there is any.
    const std::optional<std::size_t> opens = forwards_left > 0 ? before_that : before;
    const std::size_t leads = is_forward ? 0 : lists.size() - 1;
    if (message && rank == leads) {
      all.push_back({behind_aligned(lists, rank, *message), message->needed});
    } else if (message) {
      all.push_back({is_forward ? forward : backward ? backward : opens, message->needed});
    }
    before_that = std::exchange(before, i);
    (is_forward ? forward : backward) = i;
    if (is_forward) --forwards_left;
  }
  return all;
}

// Behind the last of those whose messages go together: both of a forward and the backward behind
// it, unless that waits for what the forward's exchange brings.
std::size_t end_of_exchange(const std::vector<Call>& calls, std::size_t first,
                            const std::vector<Ahead>& needed) {
  const std::size_t end = end_of(calls, first);
  const bool is_forward = calls[first].action.kind == ActionKind::forward;
  if (end != first + 1 || end == calls.size() || !is_forward) return end;
  if (calls[end].action.kind == ActionKind::forward) return end;
  const bool waits = std::any_of(needed.begin(), needed.end(), [&](const Ahead& one) {
    return one.behind == first && one.needed.kind != ActionKind::forward &&
           one.needed.microbatch == calls[end].action.microbatch &&
           one.needed.stage == calls[end].action.stage;
  });
  return waits ? end : end + 1;
}

CallLists received_one_ahead(const CallLists& lists, const PipelineShape& shape, bool together) {
  CallLists result(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const std::vector<Ahead> needed = needed_ahead(lists, rank, shape);
    const auto receive = [&](std::optional<std::size_t> behind, bool of_forward) {
      for (const Ahead& one : needed) {
        const bool is_forward = one.needed.kind == ActionKind::forward;
        if (one.behind == behind && is_forward == of_forward) {
          result[rank].push_back({Call::Kind::receive, one.needed});
        }
      }
    };
    receive(std::nullopt, true);
    receive(std::nullopt, false);
    const std::vector<Call>& calls = lists[rank];
    for (std::size_t first = 0, end = 0; first < calls.size(); first = end) {
      end = together ? end_of_exchange(calls, first, needed) : end_of(calls, first);
      result[rank].insert(result[rank].end(), calls.begin() + static_cast<std::ptrdiff_t>(first),
                          calls.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t i = first; i < end; ++i) {
        const bool is_forward = calls[i].action.kind == ActionKind::forward;
        const auto message = message_of(calls[i].action, shape);
        if (rank % 2 == 1) receive(i, is_forward);
        if (message) result[rank].push_back({Call::Kind::send, message->sent});
        if (rank % 2 == 0) receive(i, is_forward);
        receive(i, !is_forward);
      }
    }
  }
  return result;
}

}  // namespace

std::string call_text(const Call& call) {
  switch (call.kind) {
    case Call::Kind::compute:
      return action_text(call.action);
    case Call::Kind::unshard:
      return fmt::format("{}UNSHARD", call.action.stage);
    case Call::Kind::reshard:
      return fmt::format("{}RESHARD", call.action.stage);
    case Call::Kind::reduce:
      return fmt::format("{}REDUCE_GRAD", call.action.stage);
    case Call::Kind::await_reduced:
      return fmt::format("{}WAIT_REDUCE_GRAD", call.action.stage);
    case Call::Kind::send:
    case Call::Kind::receive:
      break;
  }
  return fmt::format("{}{}_{}{}", call.action.stage,
                     call.kind == Call::Kind::send ? "SEND" : "RECV", word_of(call.action.kind),
                     call.action.microbatch);
}

CallLists with_messages(const CallLists& lists, const PipelineShape& shape, Receives receives) {
  if (receives == Receives::when_needed) return received_when_needed(lists, shape);
  if (receives == Receives::one_ahead || receives == Receives::exchanged) {
    return received_one_ahead(lists, shape, /*together=*/receives == Receives::exchanged);
  }
  CallLists result(lists.size());
  std::vector<std::size_t> next(lists.size());
  Done done(shape);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      const std::vector<Call>& calls = lists[rank];
      const std::size_t first = next[rank];
      if (first == calls.size()) continue;
      const std::size_t end = end_of(calls, first);
      bool ready = true;
      for (std::size_t i = first; i < end && computes(calls[i]); ++i) {
        ready = ready && done.allows(calls[i].action);
      }
      if (!ready) continue;
      result[rank].insert(result[rank].end(), calls.begin() + static_cast<std::ptrdiff_t>(first),
                          calls.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t i = first; i < end && computes(calls[i]); ++i) {
        done.add(calls[i].action);
        const auto message = message_of(calls[i].action, shape);
        if (!message) continue;
        result[message->from].push_back({Call::Kind::send, message->sent});
        result[message->to].push_back({Call::Kind::receive, message->needed});
      }
      next[rank] = end;
      progress = true;
    }
  }
  for (std::size_t rank = 0; rank < lists.size(); ++rank) assert(next[rank] == lists[rank].size());
  return result;
}

CallLists computations(const PipelineSchedule& schedule) {
  CallLists lists;
  for (const std::vector<Action>& actions : schedule.of_rank) {
    std::vector<Call>& calls = lists.emplace_back();
    for (const Action& action : actions) calls.push_back({Call::Kind::compute, action});
  }
  return lists;
}

}  // namespace shardsim
