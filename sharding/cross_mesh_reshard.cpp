#include "sharding/cross_mesh_reshard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "sharding/cross_mesh_candidates.hpp"
#include "sharding/cross_mesh_steps.hpp"

namespace shardsim {
namespace {

constexpr double most_bytes = 0x1p58;  // on all devices: sums of a few steps stay below 2^63

// The collectives on one mesh, from its end of the path to the transfer or the other way round.
struct Half {
  Sharding intermediate;
  std::vector<PlannedReshardStep> steps;
  Seconds time{0};
};

class Planner {
 public:
  Planner(const ReshardTask& task, const ReshardCost& cost)
      : task_(task),
        cost_(cost),
        source_(normalized(task.source)),
        target_(normalized(task.target)),
        empty_(std::count(task.shape.begin(), task.shape.end(), 0) > 0) {}

  ReshardChoice choose() {
    ReshardChoice choice;
    check_messages();
    choice.direct = joined({source_, {}, {}}, {target_, {}, {}});
    if (empty_ || time_between(choice.direct) == Seconds{0}) return choice;
    const std::vector<Half> sources = source_halves(choice);
    const std::vector<Half> targets = target_halves(choice);
    search(sources, targets, choice);
    if (choice.intermediate) {
      choice.intermediate_is_better = rank(*choice.intermediate) < rank(choice.direct);
    }
    return choice;
  }

 private:
  // Without the copies from and to hosts, which all plans have.
  static Seconds time_between(const ReshardPlan& plan) {
    Seconds time{0};
    for (const PlannedReshardStep& step : plan.steps) {
      if (!moves_between_memories(step)) time += step.time;
    }
    return time;
  }

  [[nodiscard]] static std::tuple<Seconds, Bytes, Bytes, std::size_t> rank(
      const ReshardPlan& plan) {
    Bytes total;
    for (const PlannedReshardStep& step : plan.steps) total += step.total;
    return {plan.time, total, plan.peak, plan.steps.size()};
  }

  [[nodiscard]] double messages_between(const Sharding& a, const Sharding& b) const {
    return count_messages(task_.shape, {task_.source_mesh, a}, {task_.target_mesh, b});
  }

  void check_messages() const {
    if (messages_between(source_, target_) <= static_cast<double>(most_messages)) return;
    throw InputError(task_.place,
                     fmt::format("a direct transfer takes more than {} messages, the most that a "
                                 "reshard is worked out for",
                                 most_messages));
  }

  // The steps of one mesh with their times; nothing when the machine cannot run one of them.
  std::optional<Half> half(ReshardPart part, const Sharding& intermediate, const Sharding& from,
                           const Sharding& to) const {
    Half result{intermediate, {}, {}};
    Sharding before = from;
    for (const ReshardStep& step : reshard_parts(task_.shape, from, to)) {
      std::optional<PlannedReshardStep> planned = collective_step(task_, cost_, part, step);
      if (!planned) return std::nullopt;
      const Bytes output = bytes_of(task_, step.after);
      const Bytes input = bytes_of(task_, before);
      const bool reads_given =
          part == ReshardPart::source && result.steps.empty() && !task_.from_host;
      if (!task_.from_host) planned->source_bytes = bytes_of(task_, source_);
      (part == ReshardPart::source ? planned->source_bytes : planned->target_bytes) +=
          reads_given ? output : input + output;
      before = step.after;
      result.time += planned->time;
      result.steps.push_back(std::move(*planned));
    }
    return result;
  }

  std::vector<Half> source_halves(ReshardChoice& choice) const {
    std::vector<Sharding> candidates = source_candidates(task_.shape, source_);
    // On one mesh the target itself can be made without a transfer.
    const bool same_mesh = task_.source_mesh == task_.target_mesh;
    if (same_mesh && std::find(candidates.begin(), candidates.end(), target_) == candidates.end()) {
      candidates.push_back(target_);
    }
    std::vector<Half> halves;
    for (const Sharding& candidate : candidates) {
      add(half(ReshardPart::source, candidate, source_, candidate), halves, choice);
    }
    return halves;
  }

  std::vector<Half> target_halves(ReshardChoice& choice) const {
    std::vector<Half> halves;
    for (const Sharding& candidate :
         target_candidates(task_.shape, target_, task_.target_mesh.mesh)) {
      add(half(ReshardPart::target, candidate, candidate, target_), halves, choice);
    }
    return halves;
  }

  static void add(std::optional<Half> half, std::vector<Half>& halves, ReshardChoice& choice) {
    if (half) {
      halves.push_back(std::move(*half));
    } else {
      ++choice.left_out;
    }
  }

  // Halves 0 are those without steps. First every half with the other mesh's 0, few messages
  // first; then all pairs in the order of what their halves took.
  void search(const std::vector<Half>& sources, const std::vector<Half>& targets,
              ReshardChoice& choice) const {
    using Pair = std::tuple<double, std::size_t, std::size_t>;
    std::vector<Pair> alone;
    for (std::size_t s = 1; s < sources.size(); ++s) {
      alone.emplace_back(messages_between(sources[s].intermediate, target_), s, 0);
    }
    for (std::size_t t = 1; t < targets.size(); ++t) {
      alone.emplace_back(messages_between(source_, targets[t].intermediate), 0, t);
    }
    std::sort(alone.begin(), alone.end());
    choice.candidates = static_cast<std::int64_t>(sources.size() * targets.size());
    auto budget = static_cast<double>(message_budget);
    std::vector<double> source_time(sources.size(), std::numeric_limits<double>::infinity());
    std::vector<double> target_time(targets.size(), std::numeric_limits<double>::infinity());
    for (const auto& [messages, s, t] : alone) {
      const std::optional<Seconds> time = consider(sources[s], targets[t], budget, choice);
      if (time) (s > 0 ? source_time[s] : target_time[t]) = time->count();
    }
    std::vector<Pair> pairs;
    for (std::size_t s = 1; s < sources.size(); ++s) {
      for (std::size_t t = 1; t < targets.size(); ++t) {
        pairs.emplace_back(source_time[s] + target_time[t], s, t);
      }
    }
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [estimate, s, t] : pairs) consider(sources[s], targets[t], budget, choice);
  }

  // Keeps the plan if it is the best so far. Its time, unless it was not worth pricing.
  std::optional<Seconds> consider(const Half& source, const Half& target, double& budget,
                                  ReshardChoice& choice) const {
    if (choice.intermediate && time_between(*choice.intermediate) < source.time + target.time) {
      return {};
    }
    const double messages = messages_between(source.intermediate, target.intermediate);
    if (messages > budget) {
      ++choice.left_out;
      return {};
    }
    budget -= messages;
    ++choice.priced;
    ReshardPlan plan = joined(source, target);
    const Seconds time = plan.time;
    if (!choice.intermediate || rank(plan) < rank(*choice.intermediate)) {
      choice.intermediate = std::move(plan);
    }
    return time;
  }

  [[nodiscard]] ReshardPlan joined(const Half& source, const Half& target) const {
    ReshardPlan plan = empty_plan(task_);
    plan.source_intermediate = source.intermediate;
    plan.target_intermediate = target.intermediate;
    add_from_host(task_, cost_, plan);
    plan.steps.insert(plan.steps.end(), source.steps.begin(), source.steps.end());
    add_transfer(plan);
    plan.steps.insert(plan.steps.end(), target.steps.begin(), target.steps.end());
    finish(task_, cost_, plan);
    return plan;
  }

  void add_transfer(ReshardPlan& plan) const {
    PlannedReshardStep step =
        message_step(task_, cost_, {task_.source_mesh, plan.source_intermediate},
                     {task_.target_mesh, plan.target_intermediate});
    if (step.messages == 0) return;
    step.source_bytes = plan.given;
    if (!plan.steps.empty()) step.source_bytes += bytes_of(task_, plan.source_intermediate);
    step.target_bytes = bytes_of(task_, plan.target_intermediate);
    plan.steps.push_back(std::move(step));
  }

  const ReshardTask& task_;
  const ReshardCost& cost_;
  Sharding source_;
  Sharding target_;
  bool empty_;  // an array without elements
};

void check(const ReshardTask& task) {
  for (const DeviceMesh* mesh : {&task.source_mesh, &task.target_mesh}) {
    if (mesh->mesh.devices() <= most_reshard_devices) continue;
    throw InputError(task.place, fmt::format("a mesh of {} devices; a reshard is worked out for at "
                                             "most {}",
                                             mesh->mesh.devices(), most_reshard_devices));
  }
  for (const Sharding* sharding : {&task.source, &task.target}) {
    const bool in_blocks = std::any_of(sharding->dims.begin(), sharding->dims.end(),
                                       [](const DimSharding& dim) { return dim.blocks > 1; });
    if (sharding->partial.empty() && !in_blocks) continue;
    throw InputError(task.place, "partial sums and dimensions in blocks cannot go between meshes");
  }
}

// No payload is larger than the array with every dimension padded for both meshes, and no step
// sends more than twice that from every device.
void check_size(const ReshardTask& task) {
  auto bytes = static_cast<double>(size_of(task.dtype).count());
  for (std::size_t d = 0; d < task.shape.size(); ++d) {
    double padded = 0;
    for (const Sharding* sharding : {&task.source, &task.target}) {
      const DimSharding& dim = sharding->dims[d];
      padded = std::max(padded, static_cast<double>(shard_size(task.shape[d], dim)) *
                                    static_cast<double>(Mesh::size_of(dim.axes)));
    }
    bytes *= padded;
  }
  const std::int64_t devices =
      std::max(task.source_mesh.mesh.devices(), task.target_mesh.mesh.devices());
  if (bytes * static_cast<double>(devices) <= most_bytes) return;
  throw InputError(task.place, "an array too large to count its bytes on all devices");
}

}  // namespace

ReshardChoice plan_reshard(const ReshardTask& task, const ReshardCost& cost) {
  check(task);
  check_size(task);
  return Planner(task, cost).choose();
}

}  // namespace shardsim
