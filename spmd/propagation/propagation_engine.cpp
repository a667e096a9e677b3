#include "spmd/propagation/propagation_engine.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "spmd/manual.hpp"

namespace shardsim::spmd {
namespace {

// The steps still to visit: last in, first out, each at most once.
class Worklist {
 public:
  explicit Worklist(std::size_t steps) : waiting_(steps, 0) {}

  void push(StepId step) {
    if (waiting_[at(step)] != 0) return;
    waiting_[at(step)] = 1;
    stack_.push_back(step);
  }
  [[nodiscard]] bool empty() const { return stack_.empty(); }
  StepId pop() {
    const StepId step = stack_.back();
    stack_.pop_back();
    waiting_[at(step)] = 0;
    return step;
  }

 private:
  std::vector<StepId> stack_;
  std::vector<char> waiting_;
};

class Engine {
 public:
  Engine(PropagationGraph& graph, const Meshes& meshes)
      : graph_(graph), meshes_(meshes), worklist_(graph.steps.size()) {}

  void run_all_op_priorities() {
    for (std::size_t pass = 0; pass < op_priorities; ++pass) {
      clock_of_pass_ = ++clock_;
      for (Step& step : graph_.function_results) visit(step, pass, no_step);
      while (sweep(pass)) {
      }
      for (Step& step : graph_.function_results) visit(step, pass, no_step);
    }
  }

 private:
  static constexpr StepId no_step = -1;

  bool sweep(std::size_t pass) {
    for (std::size_t i = graph_.steps.size(); i-- > 0;) worklist_.push(static_cast<StepId>(i));
    bool changed = false;
    while (!worklist_.empty()) {
      const StepId id = worklist_.pop();
      Step& step = graph_.steps[at(id)];
      if (!is_due(step)) continue;
      changed = visit(step, pass, id) || changed;
    }
    return changed;
  }

  // Visited in this pass, and nothing has changed since: the same would come out.
  [[nodiscard]] bool is_due(const Step& step) const {
    if (step.visited < clock_of_pass_) return true;
    const auto changed = [&](SlotId slot) {
      return slot != no_slot && graph_.slots[at(slot)].changed > step.visited;
    };
    return std::any_of(step.operands.begin(), step.operands.end(), changed) ||
           std::any_of(step.results.begin(), step.results.end(), changed);
  }

  // The sharding of the step's i-th result, as its sources see it.
  [[nodiscard]] std::optional<TensorSharding> target_sharding(const Step& step,
                                                              std::size_t result) const {
    const std::optional<TensorSharding>& own = graph_.slots[at(step.results[result])].sharding;
    if (!step.manual_outside || !own) return own;
    return step.is_argument_edge ? with_manual_axes(*own, *step.manual_outside, step.manual_axes)
                                 : without_manual_axes(*own, step.manual_axes);
  }

  [[nodiscard]] TensorSharding stored_target(const Step& step, TensorSharding sharding) const {
    if (!step.manual_outside) return sharding;
    return step.is_argument_edge
               ? without_manual_axes(sharding, step.manual_axes)
               : with_manual_axes(sharding, *step.manual_outside, step.manual_axes);
  }

  // True when a sharding changed.
  bool visit(Step& step, std::size_t pass, StepId id) {
    step.visited = ++clock_;
    std::vector<std::optional<TensorSharding>> targets(step.results.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (step.results[i] != no_slot) targets[i] = target_sharding(step, i);
    }
    std::vector<const TensorSharding*> all;
    for (const SlotId slot : step.operands) all.push_back(sharding_of(slot));
    for (const auto& target : targets) all.push_back(target ? &*target : nullptr);
    const std::optional<int> mesh = meshes_.common(all);
    if (!mesh) return false;

    const std::vector<stablehlo::Factor>& factors = step.rule.factors;
    Projection projection;
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      projection.operands.push_back(project(step.rule.operands[i], factors, all[i]));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      projection.results.push_back(
          project(step.rule.results[i], factors, all[step.operands.size() + i]));
    }
    const Updated updated =
        propagate_factors(projection, factors, step.directions[pass], step.elementwise);
    if (!updated.any) return false;

    bool changed = false;
    // What the step saw: a value that is operand twice changes once.
    std::vector<std::optional<TensorSharding>> seen;
    for (const SlotId slot : step.operands) {
      seen.push_back(slot == no_slot ? std::nullopt : graph_.slots[at(slot)].sharding);
    }
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      if (updated.operands[i] == 0) continue;
      TensorSharding fresh =
          unproject(projection.operands[i], step.rule.operands[i], factors, *mesh);
      if (!is_news(seen[i], fresh)) continue;
      set(step.operands[i], fresh, id);
      changed = true;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (updated.results[i] == 0) continue;
      TensorSharding fresh = unproject(projection.results[i], step.rule.results[i], factors, *mesh);
      if (!is_news(targets[i], fresh)) continue;
      set(step.results[i], stored_target(step, std::move(fresh)), id);
      changed = true;
    }
    return changed;
  }

  [[nodiscard]] const TensorSharding* sharding_of(SlotId slot) const {
    if (slot == no_slot || !graph_.slots[at(slot)].sharding) return nullptr;
    return &*graph_.slots[at(slot)].sharding;
  }

  static bool is_news(const std::optional<TensorSharding>& old, const TensorSharding& fresh) {
    return old ? *old != fresh : !fresh.splits_nothing();
  }

  void set(SlotId id, const TensorSharding& sharding, StepId by) {
    Slot& slot = graph_.slots[at(id)];
    assign(slot, sharding, by);
    for (const SlotId member : slot.group) {
      if (member != id) assign(graph_.slots[at(member)], sharding, by);
    }
  }

  void assign(Slot& slot, const TensorSharding& sharding, StepId by) {
    slot.sharding = sharding;
    slot.changed = ++clock_;
    if (by == no_step) return;
    for (const StepId step : slot.wakes) {
      if (step != by) worklist_.push(step);
    }
  }

  PropagationGraph& graph_;
  const Meshes& meshes_;
  Worklist worklist_;
  std::uint64_t clock_ = 0;
  std::uint64_t clock_of_pass_ = 0;
};

// A slot some of whose dimensions the user put off.
struct PutOff {
  SlotId slot = no_slot;
  TensorSharding original;
  std::vector<int> priorities;
};

// Until their turn, dimensions are closed and empty, and their axes replicated.
void close_later_dimensions(Slot& slot) {
  TensorSharding& sharding = *slot.sharding;
  for (std::size_t d = 0; d < sharding.dimensions.size(); ++d) {
    if (slot.priorities[d] == 0) continue;
    DimensionAxes& dimension = sharding.dimensions[d];
    sharding.replicated.insert(sharding.replicated.end(), dimension.axes.begin(),
                               dimension.axes.end());
    dimension = {{}, /*open=*/false};
  }
}

void restore_dimensions(Slot& slot, const PutOff& put_off, int priority) {
  TensorSharding& sharding = *slot.sharding;
  for (std::size_t d = 0; d < sharding.dimensions.size(); ++d) {
    if (put_off.priorities[d] != priority) continue;
    sharding.dimensions[d] = put_off.original.dimensions[d];
    for (const Axis& axis : put_off.original.dimensions[d].axes) {
      std::erase(sharding.replicated, axis);
    }
  }
}

}  // namespace

void run_propagation(PropagationGraph& graph, const Meshes& meshes) {
  std::map<int, std::vector<PutOff>> later;  // by priority
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    Slot& slot = graph.slots[i];
    if (slot.priorities.empty()) continue;
    std::vector<int> own = slot.priorities;
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const int priority : own) {
      if (priority == 0) continue;
      later[priority].push_back({static_cast<SlotId>(i), *slot.sharding, slot.priorities});
    }
    close_later_dimensions(slot);
  }
  Engine engine(graph, meshes);
  engine.run_all_op_priorities();
  for (const auto& [priority, slots] : later) {
    for (const PutOff& put_off : slots) {
      restore_dimensions(graph.slots[at(put_off.slot)], put_off, priority);
    }
    engine.run_all_op_priorities();
  }
}

}  // namespace shardsim::spmd
