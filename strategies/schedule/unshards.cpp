#include "strategies/schedule/unshards.hpp"

#include <algorithm>
#include <map>

namespace shardsim {
namespace {

constexpr std::size_t most_active = 3;  // max_active_stages
using Stages = std::vector<std::int16_t>;

bool holds(const Stages& stages, std::int16_t stage) {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

// The next stages that are computed from here on, each once.
Stages next_stages(const std::vector<Action>& actions, std::size_t from) {
  Stages next;
  for (std::size_t i = from; i < actions.size() && next.size() < most_active; ++i) {
    if (!holds(next, actions[i].stage)) next.push_back(actions[i].stage);
  }
  return next;
}

Call of_stage(Call::Kind kind, std::int16_t stage) {
  return {kind, Action{.kind = ActionKind::forward, .stage = stage}};
}

std::vector<Call> with_unshards(const std::vector<Action>& actions, std::int32_t microbatches) {
  std::vector<Call> calls;
  Stages active;
  std::map<std::int16_t, std::int32_t> backwards;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool is_second = i > 0 && actions[i - 1].with_next;
    if (!is_second) {
      const Stages next = next_stages(actions, i);
      for (const std::int16_t stage : Stages(active)) {
        if (holds(next, stage)) continue;
        calls.push_back(of_stage(Call::Kind::reshard, stage));
        std::erase(active, stage);
      }
      for (const std::int16_t stage : next) {
        if (holds(active, stage)) continue;
        calls.push_back(of_stage(Call::Kind::unshard, stage));
        active.push_back(stage);
      }
    }
    calls.push_back({Call::Kind::compute, actions[i]});
    if (actions[i].with_next) continue;
    for (std::size_t k = is_second ? i - 1 : i; k <= i; ++k) {
      if (!releases_activations(actions[k].kind)) continue;
      if (++backwards[actions[k].stage] == microbatches) {
        calls.push_back(of_stage(Call::Kind::reduce, actions[k].stage));
        calls.push_back(of_stage(Call::Kind::await_reduced, actions[k].stage));
      }
    }
  }
  for (const std::int16_t stage : active) calls.push_back(of_stage(Call::Kind::reshard, stage));
  return calls;
}

}  // namespace

CallLists with_unshards(const PipelineSchedule& schedule) {
  CallLists lists;
  for (const std::vector<Action>& actions : schedule.of_rank) {
    lists.push_back(with_unshards(actions, schedule.shape.microbatches));
  }
  return lists;
}

}  // namespace shardsim
