#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "experiments/reshard_experiment.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "strategies/rules/rule_error.hpp"

namespace shardsim {
namespace {

PathwaysAnswer ask_pathways(const ReshardExperiment& experiment, std::size_t leaf) {
  try {
    return {find_intermediate_sharding({experiment.source.mesh, experiment.source.specs[leaf]},
                                       {experiment.target.mesh, experiment.target.specs[leaf]}, {}),
            "", ""};
  } catch (const RuleError& error) {
    // The answer stands in a report: without the type, which is given beside it.
    return {std::nullopt, error.type(),
            std::string(error.what()).substr(error.type().size() + std::string(": ").size())};
  }
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

// What a plan needs above the shards that stay: on a source device, on a target device, on one that
// is both.
struct Staging {
  Bytes source{0};
  Bytes target{0};
  Bytes both{0};
};

Staging staging_of(const ReshardPlan& plan) {
  Staging staging;
  for (const PlannedReshardStep& step : plan.steps) {
    const Bytes source = step.source_bytes - plan.source_shard;
    const Bytes target = step.target_bytes - plan.target_shard;
    staging.source = std::max(staging.source, source);
    staging.target = std::max(staging.target, target);
    staging.both = std::max(staging.both, source + target);
  }
  return staging;
}

Bytes peak_of(const ReshardTotals& totals, const Staging& staging, bool shared) {
  if (shared) return totals.source_shard + totals.target_shard + staging.both;
  return std::max(totals.source_shard + staging.source, totals.target_shard + staging.target);
}

void raise(Staging& most, const Staging& one) {
  most = {std::max(most.source, one.source), std::max(most.target, one.target),
          std::max(most.both, one.both)};
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

ReshardTotals totals_of(const ReshardPrediction& prediction) {
  check_sum(prediction);
  ReshardTotals totals;
  Staging direct_staging;
  Staging best_staging;
  for (const ReshardedGroup& group : prediction.groups) {
    const auto count = static_cast<std::int64_t>(group.leaves.size());
    const ReshardPlan& direct = group.choice.direct;
    const ReshardPlan& best = group.choice.best();
    totals.bytes += byte_count(prediction.experiment.arrays.leaves[group.leaves[0]]) * count;
    totals.direct_time += direct.time * static_cast<double>(count);
    totals.time += best.time * static_cast<double>(count);
    totals.direct_crossing += direct.crossing * count;
    totals.crossing += best.crossing * count;
    totals.source_shard += direct.source_shard * count;
    // A shard that stays as it is stays once.
    if (direct.peak != direct.source_shard || !prediction.shares_devices) {
      totals.target_shard += direct.target_shard * count;
    }
    raise(direct_staging, staging_of(direct));
    raise(best_staging, staging_of(best));
  }
  totals.direct_peak = peak_of(totals, direct_staging, prediction.shares_devices);
  totals.peak = peak_of(totals, best_staging, prediction.shares_devices);
  return totals;
}

}  // namespace

ReshardPrediction predict_reshard(const ReshardExperiment& experiment) {
  Profile profile = load_profile(experiment.machine, experiment.machine_place);
  if (experiment.calibrations) {
    set_calibrations(profile, *experiment.calibrations, experiment.calibration_place);
  }
  const ReshardMeshes meshes{experiment.source.mesh, experiment.target.mesh, experiment.shared,
                             experiment.source.devices, experiment.target.devices};
  for (const Mesh* mesh : {&meshes.source, &meshes.target}) {
    if (mesh->devices() <= most_reshard_devices) continue;
    throw InputError({experiment.file, ""},
                     fmt::format("a mesh of {} devices; a reshard is worked out for at most {}",
                                 mesh->devices(), most_reshard_devices));
  }
  const MachineReshardCost cost(
      profile, meshes,
      {experiment.topology, experiment.source.topology, experiment.target.topology},
      experiment.machine_place);
  ReshardPrediction prediction{
      experiment, {}, {}, share_devices(cost.source(), cost.target()), cost.where()};
  for (std::vector<std::size_t>& leaves : alike(experiment)) {
    const std::size_t first = leaves[0];
    const ParameterLeaf& leaf = experiment.arrays.leaves[first];
    const auto sharding = [&](const ReshardEnd& end, const char* key) {
      const bool alone = experiment.arrays.leaves.size() == 1;
      const Place place{experiment.file,
                        fmt::format("/{}{}", key, alone ? "/spec" : ": " + leaf.name)};
      return to_sharding(end.specs[first], leaf.shape.size(), end.mesh, place);
    };
    const ReshardTask task{leaf.shape,    leaf.dtype,
                           cost.source(), sharding(experiment.source, "from"),
                           cost.target(), sharding(experiment.target, "to"),
                           leaf.place};
    prediction.groups.push_back(
        {std::move(leaves), plan_reshard(task, cost), ask_pathways(experiment, first)});
  }
  prediction.totals = totals_of(prediction);
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
  if (choice.direct.steps.empty()) return "every device has its shard already";
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
