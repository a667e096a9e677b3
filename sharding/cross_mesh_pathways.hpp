// Pathways' own way from a mesh to another, reshard_with_intermediate_sharding: where
// find_intermediate_sharding (rules/pathways.hpp) finds one,
//
//   gather     jit of the identity to the intermediate sharding, on the source's devices
//   split      split_by_mesh_axis over every replica axis; replica 0 alone goes on, nothing moves
//   transfer   from the devices of replica 0 to the target's
//
// The intermediate mesh has its replica axes first while the devices keep their order. Unless the
// axis that is gathered was outermost, other axes' shards then belong on other devices, and between
// gather and split comes
//
//   permute    every device gets its shard, as collective-permute moves it
//
// Example, {fsdp: 8, tp: 1} P(fsdp, tp) to {fsdp: 1, tp: 4} P(fsdp, tp) on other devices: all 8
// devices gather the array whole, and device 0 sends each of the 4 its quarter.
//
// Donation is of the copy that was gathered: the array as given stays.
#pragma once

#include "sharding/cross_mesh_reshard.hpp"
#include "sharding/pathways.hpp"

namespace shardsim {

// Nothing when the machine cannot run the gather.
[[nodiscard]] std::optional<ReshardPlan> plan_pathways(const ReshardTask& task,
                                                       const IntermediateSharding& intermediate,
                                                       const ReshardCost& cost);

}  // namespace shardsim
