// What the steps of a reshard cost on a machine.
//
//   collectives  as sim/collectives/collective_cost.hpp has it, on the devices of their mesh
//   transfer     launch + latency + bytes of the busiest link in one direction / its bandwidth
//     cluster    links are every device's port into its node's switches and its NIC, each out and
//                in; they run at once, and a device's messages follow each other:
//                  latency   most over devices and directions of (messages * latency of their link)
//                  transfer  the larger of the busiest port and the busiest NIC
//     torus      every message is routed link by link (torus_routes.hpp): the most loaded link,
//                and the longest route's hops. Between slices over the chips' NICs, at once with
//                that: the busiest chip in one direction, and one latency
//     network    written in place or a graph: as a torus, each link with its own bandwidth, the
//                longest route the one whose latencies add up to most
//
//   host       latency + bytes of those that share a link to the host / its bandwidth
//
// Example: 8 devices of one node each send 14 MiB to the counterpart of another: with NICs of
// 50 GB/s * 0.9 that is launch + one latency + 14 MiB / 45 GB/s = 326 us.
//
// Devices are numbered as sim/collectives/device_order.hpp has them. Those of a mesh are listed,
// by position; or
//   shared    from 0 on; on a torus a mesh of the whole slice lies as create_device_mesh lays it
//   disjoint  the target's follow the source's: in the next places of a cluster, so that the target
//             may begin in the source's last node, or of a network; on a torus each mesh has a
//             slice of its own
// The slice of shared meshes is the topology's, else that of the larger mesh; of listed devices the
// smallest that has them. A mesh that is no whole slice or network, and does not begin a node, has
// its collectives over listed groups.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "sharding/cross_mesh_reshard.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace shardsim {

struct ReshardMeshes {
  Mesh source;
  Mesh target;
  bool shared = false;  // the target's devices are the source's
  // By position, at most most_listed_device; both are set or none is.
  std::optional<std::vector<std::int64_t>> source_devices = {};
  std::optional<std::vector<std::int64_t>> target_devices = {};
};

inline constexpr std::int64_t most_listed_device = 2 * most_reshard_devices - 1;

// Of tori. On one slice `both` alone, else each end its own, or both that of `both`.
struct ReshardTopologies {
  std::optional<std::string> both;
  std::optional<std::string> source = {};
  std::optional<std::string> target = {};
};

class MachineReshardCost final : public ReshardCost {
 public:
  // Throws InputError, at `place`, for what the machine cannot be.
  MachineReshardCost(const Profile& profile, const ReshardMeshes& meshes,
                     const ReshardTopologies& topologies, const Place& place);
  ~MachineReshardCost() override;
  MachineReshardCost(const MachineReshardCost&) = delete;
  MachineReshardCost& operator=(const MachineReshardCost&) = delete;

  [[nodiscard]] const DeviceMesh& source() const { return source_.mesh; }
  [[nodiscard]] const DeviceMesh& target() const { return target_.mesh; }
  // "a slice of 2x4", "slices of 2x4 and 2x2 over DCN"; empty for what is no torus.
  [[nodiscard]] std::string where() const;

  [[nodiscard]] std::int64_t domain(std::int64_t device) const override;
  [[nodiscard]] std::optional<Seconds> collective(ReshardPart part,
                                                  const Collective& collective) const override;
  [[nodiscard]] std::unique_ptr<TransferMeter> transfer() const override;
  // Throws InputError where the profile has no link to the host.
  [[nodiscard]] Seconds host_copies(const std::vector<std::int64_t>& devices,
                                    Bytes bytes) const override;
  // The number of a device's host; nothing: the profile does not say.
  [[nodiscard]] std::optional<std::int64_t> host(std::int64_t device) const;

 private:
  // A placement and what collectives cost on it; what is kept changes no answer.
  struct Ground;
  struct End {
    DeviceMesh mesh;
    std::shared_ptr<Ground> own;  // of the mesh itself; none: its groups are listed on `all`
    std::shared_ptr<Ground> all;  // every device of the machine, or of the mesh's slice, by number
    std::int64_t first = 0;       // the device at the first position of `all`
  };

  // To simulate: an all-to-all of parts of a large network.
  [[nodiscard]] bool takes_too_long(const End& end, const Collective& collective) const;
  void place_on_cluster(const ReshardMeshes& meshes, const Place& place);
  void place_on_network(const ReshardMeshes& meshes, const Place& place);
  void place_on_slice(const ReshardMeshes& meshes, const std::optional<std::string>& topology,
                      const Place& place);
  void place_on_slices(const ReshardMeshes& meshes, const ReshardTopologies& topologies,
                       const Place& place);
  void place_on_torus(const Mesh& mesh, const std::optional<std::vector<std::int64_t>>& listed,
                      const Machine& machine, End& end) const;

  Profile profile_;
  Place place_;
  End source_;
  End target_;
  std::optional<MachineGraph> graph_;  // of a network
};

}  // namespace shardsim
