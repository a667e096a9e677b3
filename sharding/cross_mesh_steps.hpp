// Steps of which plans between meshes are made (cross_mesh_reshard.hpp): messages, copies to hosts
// and back, and what devices hold while they run.
#pragma once

#include "sharding/cross_mesh_reshard.hpp"
#include "sharding/reshard.hpp"

namespace shardsim {

[[nodiscard]] Bytes bytes_of(const ReshardTask& task, const Sharding& sharding);

// A plan without steps: what the devices hold before and after.
[[nodiscard]] ReshardPlan empty_plan(const ReshardTask& task);

// On one of the meshes, without what devices hold; nothing when the machine cannot run it.
[[nodiscard]] std::optional<PlannedReshardStep> collective_step(const ReshardTask& task,
                                                                const ReshardCost& cost,
                                                                ReshardPart part,
                                                                const ReshardStep& step);

// The messages between two meshes as one step; without any where nothing moves.
[[nodiscard]] PlannedReshardStep message_step(const ReshardTask& task, const ReshardCost& cost,
                                              const ShardedArray& from, const ShardedArray& to);

// From the host, if the task begins there.
void add_from_host(const ReshardTask& task, const ReshardCost& cost, ReshardPlan& plan);
// To the host, if it ends there; then sums of all steps.
void finish(const ReshardTask& task, const ReshardCost& cost, ReshardPlan& plan);

}  // namespace shardsim
