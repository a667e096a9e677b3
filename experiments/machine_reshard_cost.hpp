// What the steps of a reshard cost on a machine.
//
//   collectives  as sim/collective_cost.hpp has it, on the devices of their mesh
//   transfer     launch + latency + bytes of the busiest link in one direction / its bandwidth
//     cluster    links are every device's port into its node's switches and its NIC, each out and
//                in; they run at once, and a device's messages follow each other:
//                  latency   most over devices and directions of (messages * latency of their link)
//                  transfer  the larger of the busiest port and the busiest NIC
//     torus      every message is routed link by link (sim/torus_routes.hpp): the most loaded link,
//                and the longest route's hops
//
// Example: 8 devices of one node each send 14 MiB to the counterpart of another: with NICs of
// 50 GB/s * 0.9 that is launch + one latency + 14 MiB / 45 GB/s = 326 us.
//
// Devices. On a cluster the source's are numbered from 0; the target's are the same ones, or follow
// them; nodes are filled in order, so that the target may begin in the source's last node. On a
// torus both meshes lie on one slice, each as create_device_mesh lays it, and devices are chips:
// what is between slices is not in a profile, and meshes of different sizes lie on different
// slices.
#pragma once

#include <optional>
#include <string>

#include "hardware_profiles/machine.hpp"
#include "sim/collective_cost.hpp"
#include "strategies/cross_mesh_reshard.hpp"

namespace shardsim {

struct ReshardMeshes {
  Mesh source;
  Mesh target;
  bool shared = false;  // the target's devices are the source's
};

class MachineReshardCost final : public ReshardCost {
 public:
  // Throws InputError, at `place`, for what the machine cannot be.
  MachineReshardCost(const Profile& profile, const ReshardMeshes& meshes,
                     const std::optional<std::string>& topology, const Place& place);
  MachineReshardCost(const MachineReshardCost&) = delete;
  MachineReshardCost& operator=(const MachineReshardCost&) = delete;

  [[nodiscard]] const DeviceMesh& source() const { return source_; }
  [[nodiscard]] const DeviceMesh& target() const { return target_; }

  [[nodiscard]] std::int64_t domain(std::int64_t device) const override;
  [[nodiscard]] std::optional<Seconds> collective(ReshardPart part,
                                                  const Collective& collective) const override;
  [[nodiscard]] std::unique_ptr<TransferMeter> transfer() const override;

 private:
  Profile profile_;
  DeviceMesh source_;
  DeviceMesh target_;
  Placement source_placement_;
  Placement target_placement_;
  Placement all_;  // of every device, in a mesh whose positions are the ids
  // What they keep changes no answer.
  mutable CollectiveCosts source_costs_{source_placement_};
  mutable CollectiveCosts target_costs_{target_placement_};
  mutable CollectiveCosts all_costs_{all_};
};

}  // namespace shardsim
