#include "sim/collectives/told_algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/collectives/nccl_cost.hpp"
#include "sim/collectives/one_shot.hpp"
#include "sim/collectives/placement.hpp"
#include "sim/network/algorithms/by_name.hpp"

namespace shardsim {
namespace {

// A part of an axis is known by the axis: "fsdp" of "fsdp:(1)4".
void check_axis(const std::string& name, const Mesh& mesh, const Place& place) {
  std::vector<std::string> known;
  for (const MeshAxis& axis : mesh.axes()) known.push_back(axis.name);
  const std::string axis = name.substr(0, name.find(':'));
  if (std::find(known.begin(), known.end(), axis) != known.end()) return;
  throw InputError(
      place, fmt::format("unknown axis \"{}\"; the mesh has {}", axis, fmt::join(known, ", ")),
      closest(axis, known));
}

std::string describe_rule(CollectiveKind kind, const std::vector<std::string>& axes) {
  if (axes.empty()) return std::string(name_of(kind));
  return fmt::format("{} over {}", name_of(kind), fmt::join(axes, "+"));
}

Told of_flows(const ToldAlgorithm& rule) {
  if (!rule.protocol.empty()) {
    throw InputError(rule.protocol_place, "is NCCL's; what is simulated link by link has none");
  }
  if (rule.kind == CollectiveKind::collective_permute) {
    network::check_permute_algorithm(rule.algorithm, rule.algorithm_place);
  } else {
    network::check_algorithm(rule.algorithm, rule.algorithm_place);
  }
  return {{}, rule.algorithm, false, rule.algorithm_place};
}

Told of_nccl(const ToldAlgorithm& rule, const Profile& profile) {
  const Place& place = rule.protocol.empty() ? rule.algorithm_place : rule.protocol_place;
  const std::string why_not = why_not_told(profile, rule.kind);
  if (!why_not.empty()) throw InputError(place, why_not);
  Told told{{}, std::nullopt, false, place};
  if (rule.algorithm == one_shot_name) {
    if (rule.kind != CollectiveKind::all_reduce) {
      throw InputError(rule.algorithm_place, "one-shot is a way of all-reduces");
    }
    if (!rule.protocol.empty()) {
      throw InputError(rule.protocol_place, "is NCCL's; one-shot all-reduces have none");
    }
    told.one_shot = true;
    return told;
  }
  if (!rule.algorithm.empty()) {
    told.forced.algorithm = nccl::parse_algorithm(rule.algorithm, rule.algorithm_place);
  }
  if (!rule.protocol.empty()) {
    told.forced.protocol = nccl::parse_protocol(rule.protocol, rule.protocol_place);
  }
  told.forced.least_channels = rule.least_channels;
  return told;
}

Told read(const ToldAlgorithm& rule, const Placement& placement) {
  if (placement.model().estimator != Estimator::shardsim) {
    throw InputError(rule.algorithm.empty() ? rule.protocol_place : rule.algorithm_place,
                     fmt::format("the model \"{}\" is told no algorithm: it has its own times",
                                 name_of(placement.model())));
  }
  if (placement.is_by_flows()) return of_flows(rule);
  return of_nccl(rule, placement.machine().profile);
}

}  // namespace

std::string why_not_told(const Profile& profile, CollectiveKind kind) {
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr || (!cluster->nccl && !cluster->rccl)) {
    return fmt::format("NCCL, which could be told to take one, does not run on {}", profile.name);
  }
  if (cluster->rccl && kind == CollectiveKind::broadcast) {
    return "what RCCL makes of a broadcast is not known";
  }
  if (nccl_operation(kind)) return "";
  return fmt::format("NCCL has one way only for {} {}",
                     kind == CollectiveKind::all_to_all ? "an" : "a", name_of(kind));
}

ToldAlgorithms::ToldAlgorithms(const Placement& placement, const std::vector<ToldAlgorithm>& told)
    : placement_(placement) {
  for (const ToldAlgorithm& one : told) {
    const Place& place = one.algorithm.empty() ? one.protocol_place : one.algorithm_place;
    Rule rule{one.kind, one.axes, read(one, placement)};
    for (const std::string& axis : rule.axes) check_axis(axis, placement.plan_mesh(), place);
    std::sort(rule.axes.begin(), rule.axes.end());
    const bool is_told = std::any_of(rules_.begin(), rules_.end(), [&](const Rule& other) {
      return other.kind == rule.kind && other.axes == rule.axes;
    });
    if (is_told) {
      throw InputError(place, fmt::format("{} is told twice", describe_rule(rule.kind, rule.axes)));
    }
    rules_.push_back(std::move(rule));
  }
  std::stable_partition(rules_.begin(), rules_.end(),
                        [](const Rule& rule) { return !rule.axes.empty(); });
}

Told ToldAlgorithms::of(const Collective& collective) {
  if (rules_.empty()) return {};
  std::vector<std::string> axes = placement_.plan_mesh().names_of(collective.axes);
  std::sort(axes.begin(), axes.end());
  for (Rule& rule : rules_) {
    if (rule.kind != collective.kind) continue;
    if (!rule.axes.empty() && rule.axes != axes) continue;
    rule.is_used = true;
    return rule.told;
  }
  return {};
}

std::vector<std::string> ToldAlgorithms::unused() const {
  std::vector<std::string> names;
  for (const Rule& rule : rules_) {
    if (!rule.is_used) names.push_back(describe_rule(rule.kind, rule.axes));
  }
  return names;
}

}  // namespace shardsim
