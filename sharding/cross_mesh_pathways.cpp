#include "sharding/cross_mesh_pathways.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "sharding/cross_mesh_candidates.hpp"
#include "sharding/cross_mesh_steps.hpp"
#include "sharding/partition_spec.hpp"

namespace shardsim {
namespace {

class PathwaysPlanner {
 public:
  PathwaysPlanner(const ReshardTask& task, const IntermediateSharding& intermediate,
                  const ReshardCost& cost)
      : task_(task),
        cost_(cost),
        whole_mesh_{intermediate.mesh, task.source_mesh.devices},
        intermediate_(on(intermediate.spec, intermediate.mesh)),
        replica_(first_replica_of(intermediate)),
        sent_(on(intermediate.spec, replica_.mesh)),
        shard_(bytes_of(task, sent_)) {}

  std::optional<ReshardPlan> plan() const {
    ReshardPlan plan = empty_plan(task_);
    plan.source_intermediate = normalized(task_.source);
    plan.target_intermediate = normalized(task_.target);
    plan.frees_donated = false;
    add_from_host(task_, cost_, plan);
    const Sharding gathered = gathered_sharding();
    const std::optional<ReshardPlan> with_gather = add_gather(std::move(plan), gathered);
    if (!with_gather) return std::nullopt;
    ReshardPlan whole = *with_gather;
    add_permute(gathered, whole);
    add_split(whole);
    add_transfer(whole);
    finish(task_, cost_, whole);
    return whole;
  }

 private:
  [[nodiscard]] Sharding on(const PartitionSpec& spec, const Mesh& mesh) const {
    return normalized(to_sharding(spec, task_.shape.size(), mesh, task_.place));
  }

  // What is left of the mesh without the replica axes, on the devices of replica 0.
  [[nodiscard]] DeviceMesh first_replica_of(const IntermediateSharding& intermediate) const {
    const std::vector<MeshAxis>& axes = intermediate.mesh.axes();
    const auto replicas = static_cast<std::ptrdiff_t>(intermediate.replica_axes.size());
    DeviceMesh result{Mesh({axes.begin() + replicas, axes.end()}), {}};
    for (const std::int64_t position : first_replica(intermediate)) {
      result.devices.push_back(task_.source_mesh.devices[at(position)]);
    }
    return result;
  }

  // On the source mesh, what an all-gather leaves: the dimensions that the intermediate has whole.
  [[nodiscard]] Sharding gathered_sharding() const {
    Sharding gathered = normalized(task_.source);
    for (std::size_t d = 0; d < gathered.dims.size(); ++d) {
      if (intermediate_.dims[d].axes.empty()) gathered.dims[d].axes.clear();
    }
    return gathered;
  }

  [[nodiscard]] std::optional<ReshardPlan> add_gather(ReshardPlan plan,
                                                      const Sharding& gathered) const {
    Bytes input = task_.from_host ? plan.source_shard : Bytes{0};
    for (const ReshardStep& step : reshard_parts(task_.shape, normalized(task_.source), gathered)) {
      std::optional<PlannedReshardStep> planned =
          collective_step(task_, cost_, ReshardPart::source, step);
      if (!planned) return std::nullopt;
      const Bytes output = bytes_of(task_, step.after);
      planned->source_bytes = plan.given + input + output;
      input = output;
      plan.steps.push_back(std::move(*planned));
    }
    return plan;
  }

  void add_permute(const Sharding& gathered, ReshardPlan& plan) const {
    PlannedReshardStep step =
        message_step(task_, cost_, {task_.source_mesh, gathered}, {whole_mesh_, intermediate_});
    if (step.messages == 0) return;
    step.action = ReshardAction::permute;
    step.part = ReshardPart::source;
    step.after_mesh = whole_mesh_.mesh;
    step.source_bytes = plan.given + shard_ + shard_;
    plan.steps.push_back(std::move(step));
  }

  void add_split(ReshardPlan& plan) const {
    PlannedReshardStep step;
    step.action = ReshardAction::split;
    step.part = ReshardPart::source;
    step.after = sent_;
    step.after_mesh = replica_.mesh;
    step.source_bytes = plan.given + shard_;
    plan.steps.push_back(std::move(step));
  }

  void add_transfer(ReshardPlan& plan) const {
    const Sharding target = normalized(task_.target);
    PlannedReshardStep step =
        message_step(task_, cost_, {replica_, sent_}, {task_.target_mesh, target});
    if (step.messages == 0) return;
    step.source_bytes = plan.given + shard_;
    step.target_bytes = plan.target_shard;
    plan.steps.push_back(std::move(step));
  }

  const ReshardTask& task_;
  const ReshardCost& cost_;
  DeviceMesh whole_mesh_;
  Sharding intermediate_;  // on it
  DeviceMesh replica_;
  Sharding sent_;  // on that
  Bytes shard_;    // of either
};

}  // namespace

std::optional<ReshardPlan> plan_pathways(const ReshardTask& task,
                                         const IntermediateSharding& intermediate,
                                         const ReshardCost& cost) {
  return PathwaysPlanner(task, intermediate, cost).plan();
}

}  // namespace shardsim
