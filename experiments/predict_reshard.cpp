#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "base/text.hpp"
#include "experiments/reshard_experiment.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "sharding/cross_mesh_pathways.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

PathwaysAnswer ask_pathways(const ReshardExperiment& experiment, std::size_t leaf,
                            const ReshardTask& task, const ReshardPlan& direct,
                            const ReshardCost& cost) {
  PathwaysAnswer answer;
  try {
    answer.intermediate =
        find_intermediate_sharding({experiment.source.mesh, experiment.source.specs[leaf]},
                                   {experiment.target.mesh, experiment.target.specs[leaf]}, {});
  } catch (const RuleError& error) {
    // The answer stands in a report: without the type, which is given beside it.
    answer.error_type = error.type();
    answer.reason =
        std::string(error.what()).substr(error.type().size() + std::string(": ").size());
    if (error.type().starts_with("NoIntermediateSharding")) answer.plan = direct;
    return answer;
  }
  answer.plan = plan_pathways(task, *answer.intermediate, cost);
  return answer;
}

// Leaves with the same shape, dtype and specs, each group once, by their first leaf.
std::vector<std::vector<std::size_t>> alike(const ReshardExperiment& experiment) {
  using Key = std::tuple<std::vector<std::int64_t>, DType, std::string, std::string>;
  std::map<Key, std::size_t> groups;
  std::vector<std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < experiment.arrays.leaves.size(); ++i) {
    const ParameterLeaf& leaf = experiment.arrays.leaves[i];
    const Key key{leaf.shape, leaf.dtype, to_string(experiment.source.specs[i]),
                  to_string(experiment.target.specs[i])};
    const auto [group, is_new] = groups.emplace(key, members.size());
    if (is_new) members.emplace_back();
    members[group->second].push_back(i);
  }
  return members;
}

void check_sum(const ReshardPrediction& prediction) {
  double sum = 0;  // of what is added up below, all of it less than this
  for (const ReshardedGroup& group : prediction.groups) {
    const ReshardPlan& direct = group.choice.direct;
    const Bytes most = std::max(
        {direct.crossing, group.choice.best().crossing, direct.source_shard, direct.target_shard});
    sum += static_cast<double>(most.count()) * static_cast<double>(group.leaves.size());
  }
  if (sum < 0x1p60) return;
  throw InputError({prediction.experiment.file, "/tree"}, "too large to add up its bytes");
}

// `plan_of` a group's plan; nothing where one of them has none.
template <class PlanOf>
std::optional<ReshardSum> sum_of(const ReshardPrediction& prediction, const PlanOf& plan_of) {
  ReshardSum sum;
  std::vector<const ReshardPlan*> plans(prediction.experiment.arrays.leaves.size(), nullptr);
  for (const ReshardedGroup& group : prediction.groups) {
    const ReshardPlan* plan = plan_of(group);
    if (plan == nullptr) return std::nullopt;
    const auto count = static_cast<std::int64_t>(group.leaves.size());
    sum.time += plan->time * static_cast<double>(count);
    sum.crossing += plan->crossing * count;
    for (const std::size_t leaf : group.leaves) plans[leaf] = plan;
  }
  sum.peak = fullest_device(plans, prediction.shares_devices, /*donated=*/false);
  sum.donated_peak = fullest_device(plans, prediction.shares_devices, /*donated=*/true);
  return sum;
}

using HostOf = std::function<std::optional<std::int64_t>(std::int64_t device)>;

// Nothing where nothing is copied.
std::optional<HostSum> host_sum(const ReshardPrediction& prediction, ReshardAction action,
                                const HostOf& host_of) {
  std::map<std::int64_t, Bytes> by_device;
  HostSum sum;
  for (const ReshardedGroup& group : prediction.groups) {
    const auto count = static_cast<std::int64_t>(group.leaves.size());
    for (const PlannedReshardStep& step : group.choice.direct.steps) {
      if (step.action != action) continue;
      sum.bytes += step.total * count;
      for (const std::int64_t device : step.copying) {
        by_device[device] += std::max(step.sent, step.received) * count;
      }
    }
  }
  if (by_device.empty()) return std::nullopt;
  std::map<std::int64_t, Bytes> by_host;
  for (const auto& [device, bytes] : by_device) {
    sum.device = std::max(sum.device, bytes);
    const std::optional<std::int64_t> host = host_of(device);
    if (host) sum.host = std::max(sum.host.value_or(Bytes{0}), by_host[*host] += bytes);
  }
  if (sum.host) sum.hosts = static_cast<int>(by_host.size());
  return sum;
}

ReshardTotals totals_of(const ReshardPrediction& prediction, const HostOf& host_of) {
  check_sum(prediction);
  ReshardTotals totals;
  for (const ReshardedGroup& group : prediction.groups) {
    const auto count = static_cast<std::int64_t>(group.leaves.size());
    const ReshardPlan& direct = group.choice.direct;
    totals.bytes += byte_count(prediction.experiment.arrays.leaves[group.leaves[0]]) * count;
    totals.source_shard += direct.source_shard * count;
    totals.target_shard += direct.target_shard * count;
  }
  totals.direct =
      *sum_of(prediction, [](const ReshardedGroup& group) { return &group.choice.direct; });
  totals.chosen =
      *sum_of(prediction, [](const ReshardedGroup& group) { return &group.choice.best(); });
  totals.pathways = sum_of(prediction, [](const ReshardedGroup& group) {
    return group.pathways.plan ? &*group.pathways.plan : nullptr;
  });
  totals.from_host = host_sum(prediction, ReshardAction::from_host, host_of);
  totals.to_host = host_sum(prediction, ReshardAction::to_host, host_of);
  return totals;
}

// What the planner asks: a machine, or nothing but where devices are.
struct Ground {
  std::unique_ptr<MachineReshardCost> machine;
  UnknownReshardCost unknown;
  DeviceMesh source;
  DeviceMesh target;

  [[nodiscard]] const ReshardCost& cost() const {
    if (machine) return *machine;
    return unknown;
  }
};

// By number, as on a cluster.
void place_without_machine(const ReshardExperiment& experiment, Ground& ground) {
  if (experiment.topology || experiment.source.topology || experiment.target.topology) {
    throw InputError({experiment.file, ""}, "a topology is a machine's, and no machine is named");
  }
  if (experiment.calibrations) {
    throw InputError(experiment.calibration_place,
                     "a calibration is a machine's, and no machine is named");
  }
  const auto end = [&](const ReshardEnd& one, std::int64_t first) {
    return one.devices ? DeviceMesh{one.mesh, *one.devices} : numbered(one.mesh, first);
  };
  ground.source = end(experiment.source, 0);
  ground.target = end(experiment.target, experiment.shared ? 0 : experiment.source.mesh.devices());
}

void place_on_machine(const ReshardExperiment& experiment, Ground& ground) {
  Profile profile = load_profile(experiment.machine, experiment.machine_place);
  if (experiment.calibrations) {
    set_calibrations(profile, *experiment.calibrations, experiment.calibration_place);
  }
  const ReshardMeshes meshes{experiment.source.mesh, experiment.target.mesh, experiment.shared,
                             experiment.source.devices, experiment.target.devices};
  const ReshardTopologies topologies{experiment.topology, experiment.source.topology,
                                     experiment.target.topology};
  ground.machine =
      std::make_unique<MachineReshardCost>(profile, meshes, topologies, experiment.machine_place);
  ground.source = ground.machine->source();
  ground.target = ground.machine->target();
}

HostShards host_shards_of(const ReshardEnd& target) {
  if (!target.memory) return HostShards::none;
  return *target.memory == "host" ? HostShards::every : HostShards::once;
}

ReshardTask task_of(const ReshardExperiment& experiment, std::size_t first, const Ground& ground) {
  const ParameterLeaf& leaf = experiment.arrays.leaves[first];
  const auto sharding = [&](const ReshardEnd& end, const char* key) {
    const bool alone = experiment.arrays.leaves.size() == 1;
    const Place place{experiment.file,
                      fmt::format("/{}{}", key, alone ? "/spec" : ": " + leaf.name)};
    return to_sharding(end.specs[first], leaf.shape.size(), end.mesh, place);
  };
  return {leaf.shape,
          leaf.dtype,
          ground.source,
          sharding(experiment.source, "from"),
          ground.target,
          sharding(experiment.target, "to"),
          leaf.place,
          experiment.source.memory.has_value(),
          host_shards_of(experiment.target)};
}

}  // namespace

ReshardPrediction predict_reshard(const ReshardExperiment& experiment) {
  for (const Mesh* mesh : {&experiment.source.mesh, &experiment.target.mesh}) {
    if (mesh->devices() <= most_reshard_devices) continue;
    throw InputError({experiment.file, ""},
                     fmt::format("a mesh of {} devices; a reshard is worked out for at most {}",
                                 mesh->devices(), most_reshard_devices));
  }
  Ground ground;
  if (experiment.machine.empty()) {
    place_without_machine(experiment, ground);
  } else {
    place_on_machine(experiment, ground);
  }
  ReshardPrediction prediction{experiment,
                               {},
                               {},
                               share_devices(ground.source, ground.target),
                               ground.machine ? ground.machine->where() : ""};
  for (std::vector<std::size_t>& leaves : alike(experiment)) {
    const std::size_t first = leaves[0];
    const ReshardTask task = task_of(experiment, first, ground);
    ReshardChoice choice = plan_reshard(task, ground.cost());
    PathwaysAnswer pathways = ask_pathways(experiment, first, task, choice.direct, ground.cost());
    prediction.groups.push_back({std::move(leaves), std::move(choice), std::move(pathways)});
  }
  prediction.totals = totals_of(prediction, [&](std::int64_t device) {
    return ground.machine ? ground.machine->host(device) : std::nullopt;
  });
  return prediction;
}

std::string way(const ReshardExperiment& experiment, const ReshardPlan& plan,
                const ReshardPlan& direct) {
  std::vector<std::string> stops;
  if (!(plan.source_intermediate == direct.source_intermediate)) {
    stops.push_back(to_string(plan.source_intermediate, experiment.source.mesh) + " on the source");
  }
  if (!(plan.target_intermediate == direct.target_intermediate)) {
    stops.push_back(to_string(plan.target_intermediate, experiment.target.mesh) + " on the target");
  }
  return fmt::format("{}", fmt::join(stops, " and "));
}

std::string why(const ReshardExperiment& experiment, const ReshardChoice& choice) {
  const auto& steps = choice.direct.steps;
  const bool moves = !std::all_of(steps.begin(), steps.end(), moves_between_memories);
  if (!moves) return "every device has its shard already";
  if (!choice.intermediate) return "there is no other way";
  const ReshardPlan& other = *choice.intermediate;
  const std::string stops = way(experiment, other, choice.direct);
  if (!choice.intermediate_is_better) {
    return fmt::format("{} against {} by way of {}", format_seconds(choice.direct.time),
                       format_seconds(other.time), stops);
  }
  return fmt::format("{} by way of {} against {}; {} in place of {} cross",
                     format_seconds(other.time), stops, format_seconds(choice.direct.time),
                     format_bytes(other.crossing), format_bytes(choice.direct.crossing));
}

}  // namespace shardsim
