// What messages between devices take, by kind of machine. Formulas: machine_reshard_cost.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "hardware_profiles/network/machine_graph.hpp"
#include "sharding/cross_mesh_reshard.hpp"
#include "sim/collectives/placement.hpp"

namespace shardsim {

// Without latency, in seconds.
[[nodiscard]] Seconds transfer_time(Bytes bytes, const LinkProfile& link);

// Slices of a torus, each with the number of its first device: one, or two.
using SlicePlacements = std::vector<std::pair<std::int64_t, const Placement*>>;

// Profiles, and the graph, are to outlive the meter. Of torus_meter the placements are.
[[nodiscard]] std::unique_ptr<TransferMeter> cluster_meter(const Profile& profile,
                                                           std::int64_t devices);
[[nodiscard]] std::unique_ptr<TransferMeter> torus_meter(const SlicePlacements& slices);
[[nodiscard]] std::unique_ptr<TransferMeter> network_meter(const Profile& profile,
                                                           const MachineGraph& graph);

}  // namespace shardsim
