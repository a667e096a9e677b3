// Pathways: the intermediate sharding that experimental.reshard gathers to before it sends an array
// to other devices, and the sections of split_by_mesh_axis (AI-Hypercomputer/pathways-utils
// pathwaysutils/experimental/reshard.py @2c8593c, split_by_mesh_axis.py @8950a34).
//
//   from {fsdp: 8, tp: 1} P(fsdp, tp)   to {fsdp: 1, tp: 4} P(fsdp, tp)
//   dims  source [8, 1], target [1, 4]; gcd 1 in every dimension, dimension 0 shrinks
//   mesh  {fsdp_intermediate_replica: 8, fsdp_intermediate_split: 1, tp: 1}
//   spec  P(fsdp_intermediate_split, tp); the array then goes from replica 0 alone
//
// A dimension is a candidate when its gcd is 1, it has more shards than in the target, and it is
// split over one axis. Its axis becomes replicas = source / target and split = target; with gcd 1
// and a target that divides the source, split is 1: a full gather. (The docstring of the original
// promises split 4 x replica 2 for the example above; sharding/cross_mesh_reshard.hpp considers
// that, too.) The replica axes come first in the new mesh while the devices keep their order, so
// that coordinates on the other axes change unless the split axis was outermost.
//
// What the original checks, in this order; each is a NoIntermediateShardingError unless it says
// otherwise:
//   1  both are NamedShardings
//   2  the specs have the same length; if just one is empty, it counts as that many None
//   3  UNCONSTRAINED in either spec: ValueError
//   4  the most shards of a dimension: those of the target divide those of the source
//   5  the source has more shards in all than the target
//   6  and a multiple of them
//   7  a dimension with a gcd above 1: NoIntermediateShardingNeededError
//   8  there is a candidate
//   9  target shards of every candidate divide those of the source: ValueError
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"

namespace shardsim {

struct PathwaysSharding {
  Mesh mesh;
  PartitionSpec spec;
  bool is_named = true;  // false: a sharding of another class, of which only that is known
};

struct IntermediateSharding {
  Mesh mesh;  // the devices are those of the source mesh, in the same order
  PartitionSpec spec;
  std::vector<std::string> replica_axes;
  std::vector<std::int64_t> source_shards;  // by dimension
  std::vector<std::int64_t> target_shards;
};

// Throws RuleError, also for axes that NamedSharding refuses (check_axes).
[[nodiscard]] IntermediateSharding find_intermediate_sharding(const PathwaysSharding& source,
                                                              const PathwaysSharding& target,
                                                              const Place& place);

// Positions in the mesh that hold replica 0 of every replica axis: what is left after
// split_by_mesh_axis over each of them.
[[nodiscard]] std::vector<std::int64_t> first_replica(const IntermediateSharding& intermediate);

// Where split_by_mesh_axis cuts an axis: the end of every section. 4 in 2 sections: 2, 4.
// A negative count that divides the size gives no section, as Python's range does. Throws
// RuleError: ZeroDivisionError for 0, ValueError for a count that does not divide the size.
[[nodiscard]] std::vector<std::int64_t> section_ends(std::int64_t axis_size, std::int64_t sections,
                                                     const Place& place);
// The same from inner boundaries. Throws RuleError (ValueError) for one outside of the axis or not
// above the one before.
[[nodiscard]] std::vector<std::int64_t> section_ends(std::int64_t axis_size,
                                                     const std::vector<std::int64_t>& boundaries,
                                                     const Place& place);

}  // namespace shardsim
