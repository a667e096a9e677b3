#include "sharding/pathways.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

using Shards = std::vector<std::int64_t>;

const std::string no_intermediate = "NoIntermediateShardingError";

std::int64_t axis_size(const Mesh& mesh, const std::string& name, const Place& place) {
  const auto axis = mesh.find(name);
  if (axis) return mesh.axes()[static_cast<std::size_t>(*axis)].size;
  throw RuleError(
      "ValueError", place,
      fmt::format("\"{}\" is a part of an axis, and a mesh of JAX has no such thing", name));
}

Shards shards_of(const PartitionSpec& spec, const Mesh& mesh, const Place& place) {
  Shards shards;
  for (const SpecEntry& entry : spec) {
    if (entry.unconstrained) {
      throw RuleError("ValueError", place,
                      fmt::format("{}: UNCONSTRAINED is no number of shards", to_string(spec)));
    }
    std::int64_t count = 1;
    for (const std::string& axis : entry.axes) count *= axis_size(mesh, axis, place);
    shards.push_back(count);
  }
  return shards;
}

std::int64_t pieces_of(const Shards& shards) {
  return std::accumulate(shards.begin(), shards.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t largest(const Shards& shards) {
  return shards.empty() ? 1 : *std::max_element(shards.begin(), shards.end());
}

void check_divisible(const Shards& source, const Shards& target, const Place& place) {
  if (largest(source) % largest(target) != 0) {
    throw RuleError(no_intermediate, place,
                    fmt::format("the target's {} shards of one dimension do not divide the "
                                "source's {}",
                                largest(target), largest(source)));
  }
  if (pieces_of(source) <= pieces_of(target)) {
    throw RuleError(no_intermediate, place,
                    fmt::format("the source has {} shards, not more than the target's {}",
                                pieces_of(source), pieces_of(target)));
  }
  if (pieces_of(source) % pieces_of(target) != 0) {
    throw RuleError(no_intermediate, place,
                    fmt::format("the target's {} shards do not divide the source's {}",
                                pieces_of(target), pieces_of(source)));
  }
}

// Dimensions whose axis is split.
std::vector<std::size_t> candidates_of(const PartitionSpec& spec, const Shards& source,
                                       const Shards& target, const Place& place) {
  std::vector<std::size_t> candidates;
  for (std::size_t d = 0; d < spec.size(); ++d) {
    if (std::gcd(source[d], target[d]) > 1) {
      throw RuleError("NoIntermediateShardingNeededError", place,
                      fmt::format("dimension {} has {} shards and {} in the target: pieces fit as "
                                  "they are",
                                  d, source[d], target[d]));
    }
  }
  for (std::size_t d = 0; d < spec.size(); ++d) {
    if (source[d] > target[d] && spec[d].axes.size() == 1) candidates.push_back(d);
  }
  if (!candidates.empty()) return candidates;
  throw RuleError(no_intermediate, place,
                  "no dimension shrinks that is split over one axis alone: nothing to gather");
}

Mesh checked_mesh(std::vector<MeshAxis> axes, std::int64_t devices, const Place& place) {
  std::set<std::string> names;
  std::int64_t size = 1;
  std::vector<std::string> sizes;
  for (const MeshAxis& axis : axes) {
    if (!names.insert(axis.name).second) {
      throw RuleError("ValueError", place,
                      fmt::format("the intermediate mesh has two axes \"{}\"", axis.name));
    }
    size *= axis.size;
    sizes.push_back(std::to_string(axis.size));
  }
  if (size == devices) return Mesh(std::move(axes));
  throw RuleError(
      "ValueError", place,
      fmt::format("{} devices do not make a mesh of {}", devices, fmt::join(sizes, "x")));
}

}  // namespace

IntermediateSharding find_intermediate_sharding(const PathwaysSharding& source,
                                                const PathwaysSharding& target,
                                                const Place& place) {
  if (!source.is_named || !target.is_named) {
    throw RuleError(no_intermediate, place, "only NamedShardings have intermediate ones");
  }
  check_axes(source.spec, source.mesh, place);
  check_axes(target.spec, target.mesh, place);
  PartitionSpec source_spec = source.spec;
  PartitionSpec target_spec = target.spec;
  if (source_spec.empty()) source_spec.resize(target_spec.size());
  if (target_spec.empty()) target_spec.resize(source_spec.size());
  if (source_spec.size() != target_spec.size()) {
    throw RuleError(no_intermediate, place,
                    fmt::format("{} and {} have different lengths", to_string(source_spec),
                                to_string(target_spec)));
  }
  IntermediateSharding result;
  result.source_shards = shards_of(source_spec, source.mesh, place);
  result.target_shards = shards_of(target_spec, target.mesh, place);
  check_divisible(result.source_shards, result.target_shards, place);
  const std::vector<std::size_t> candidates =
      candidates_of(source_spec, result.source_shards, result.target_shards, place);

  result.spec = source_spec;
  std::vector<MeshAxis> replicas;
  std::vector<MeshAxis> rest;
  for (const MeshAxis& axis : source.mesh.axes()) {
    const auto dim = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t d) {
      return source_spec[d].axes[0] == axis.name;
    });
    if (dim == candidates.end()) {
      rest.push_back(axis);
      continue;
    }
    const std::int64_t split = result.target_shards[*dim];
    replicas.push_back({axis.name + "_intermediate_replica", axis.size / split});
    rest.push_back({axis.name + "_intermediate_split", split});
    result.replica_axes.push_back(replicas.back().name);
    result.spec[*dim] = {rest.back().name};
  }
  replicas.insert(replicas.end(), rest.begin(), rest.end());
  result.mesh = checked_mesh(std::move(replicas), source.mesh.devices(), place);
  return result;
}

std::vector<std::int64_t> first_replica(const IntermediateSharding& intermediate) {
  std::vector<AxisRef> kept;
  for (std::size_t i = intermediate.replica_axes.size(); i < intermediate.mesh.axes().size(); ++i) {
    kept.push_back(intermediate.mesh.whole(static_cast<int>(i)));
  }
  return intermediate.mesh.first_group(kept);
}

std::vector<std::int64_t> section_ends(std::int64_t axis_size, std::int64_t sections,
                                       const Place& place) {
  if (sections == 0) {
    throw RuleError("ZeroDivisionError", place, "an axis cannot be cut into 0 sections");
  }
  if (axis_size % sections != 0) {
    throw RuleError("ValueError", place,
                    fmt::format("{} sections do not divide an axis of {}", sections, axis_size));
  }
  std::vector<std::int64_t> ends;
  for (std::int64_t i = 1; i <= sections; ++i) ends.push_back(axis_size / sections * i);
  return ends;
}

std::vector<std::int64_t> section_ends(std::int64_t axis_size,
                                       const std::vector<std::int64_t>& boundaries,
                                       const Place& place) {
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] <= 0 || boundaries[i] >= axis_size) {
      throw RuleError("ValueError", place,
                      fmt::format("boundary {} is not between 1 and {}, inside an axis of {}",
                                  boundaries[i], axis_size - 1, axis_size));
    }
    if (i > 0 && boundaries[i] <= boundaries[i - 1]) {
      throw RuleError("ValueError", place,
                      fmt::format("boundary {} is not above the one before, {}", boundaries[i],
                                  boundaries[i - 1]));
    }
  }
  std::vector<std::int64_t> ends = boundaries;
  ends.push_back(axis_size);
  return ends;
}

}  // namespace shardsim
