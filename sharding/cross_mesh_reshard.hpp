// From a sharding on one mesh to a sharding on another: what to do, step by step.
//
//   trainer  {fsdp: 8} P(fsdp, None) on devices 0..7    W [4096, 14336] bf16, 112 MiB
//   sampler  {dp: 2, tp: 4} P(None, tp) on 8..15
//   direct   every sampler device fetches its quarter, 28 MiB: the tensor crosses twice
//   by way of [dp, tp] on the sampler's mesh: every device fetches an eighth, 14 MiB, and an
//            all-gather over dp makes the quarters, inside the sampler's fast network
//
// A plan is a path of at most three parts
//
//   source --collectives--> A on the source mesh --transfer--> B on the target mesh
//          --collectives--> target
//
// and direct is the one with A = source and B = target. A and B come from
// cross_mesh_candidates.hpp, the collectives from reshard.hpp, the messages of the transfer from
// cross_mesh_transfer.hpp, and every price from a ReshardCost. `plan_reshard` tries every A with B
// = target and every B with A = source, then the pairs of both, those first whose halves did best;
// it leaves out what costs more for its collectives alone than the best plan found and, on
// thousands of devices, what does not fit into its budget of messages to look at. Parts that cost
// nothing (A on the same devices as B, every piece where it belongs) are no steps, so a reshard
// within one mesh is the case without a transfer, and to stay as one is has no step at all.
//
// Steps run one after the other. The array as given stays in memory until the end (the trainer goes
// on with it) or, donated, until the first step has read it; what a step makes lives until the next
// step has read it.
//
// The array may lie in the memory of the hosts, before or after: a copy to the devices then comes
// first, or one from them last, whatever is between.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "plan/plan.hpp"
#include "sharding/cross_mesh_transfer.hpp"

namespace shardsim {

enum class ReshardPart : std::uint8_t { source, transfer, target };

enum class ReshardAction : std::uint8_t {
  collective,
  transfer,   // from the source's devices to the target's
  permute,    // among the source's devices: pathways' mesh has shards on others of them
  split,      // pathways': replica 0 alone goes on; nothing moves
  from_host,  // from the memory of hosts into that of their devices
  to_host,
};

// What goes to the hosts in the end.
enum class HostShards : std::uint8_t {
  none,   // the devices keep it
  every,  // every device's shard, as JAX's memory kind "pinned_host" has it
  once,   // every piece once, by the first device that has it, as a checkpoint takes replica 0
};

// Takes the messages of one transfer and tells how long they take, all at once. Messages of a
// device to itself are free.
class TransferMeter {
 public:
  TransferMeter() = default;
  TransferMeter(const TransferMeter&) = delete;
  TransferMeter& operator=(const TransferMeter&) = delete;
  virtual ~TransferMeter() = default;

  virtual void add(const Message& message) = 0;
  [[nodiscard]] virtual Seconds time() const = 0;
};

// What steps cost on a machine.
class ReshardCost {
 public:
  ReshardCost() = default;
  ReshardCost(const ReshardCost&) = delete;
  ReshardCost& operator=(const ReshardCost&) = delete;
  virtual ~ReshardCost() = default;

  // Devices of one domain reach each other over a faster network.
  [[nodiscard]] virtual std::int64_t domain(std::int64_t device) const = 0;
  // On the source's or the target's mesh; nothing when that machine cannot run it.
  [[nodiscard]] virtual std::optional<Seconds> collective(ReshardPart part,
                                                          const Collective& collective) const = 0;
  [[nodiscard]] virtual std::unique_ptr<TransferMeter> transfer() const = 0;
  // So many bytes between each of these devices and its host, all at once.
  [[nodiscard]] virtual Seconds host_copies(const std::vector<std::int64_t>& devices,
                                            Bytes bytes) const = 0;
};

// Of devices about which nothing is known: all steps take no time.
class UnknownReshardCost final : public ReshardCost {
 public:
  [[nodiscard]] std::int64_t domain(std::int64_t device) const override;
  [[nodiscard]] std::optional<Seconds> collective(ReshardPart part,
                                                  const Collective& collective) const override;
  [[nodiscard]] std::unique_ptr<TransferMeter> transfer() const override;
  [[nodiscard]] Seconds host_copies(const std::vector<std::int64_t>& devices,
                                    Bytes bytes) const override;
};

struct ReshardTask {
  std::vector<std::int64_t> shape;
  DType dtype = DType::bf16;
  DeviceMesh source_mesh;
  Sharding source;
  DeviceMesh target_mesh;  // the same devices, some of them, or others
  Sharding target;
  Place place;             // where errors point to
  bool from_host = false;  // it lies in the memory of the source's hosts
  HostShards to_host = HostShards::none;
};

struct PlannedReshardStep {
  ReshardAction action = ReshardAction::transfer;
  ReshardPart part = ReshardPart::transfer;
  CollectiveKind kind = CollectiveKind::all_gather;  // of a collective
  AxisList axes;                                     // its group
  Sharding after;                                    // on the mesh where the step ends,
  std::optional<Mesh> after_mesh = {};               // the part's or, where set, this one
  Bytes sent{0};                                     // by the device that sends most
  Bytes received{0};                                 // by the device that receives most
  Bytes total{0};                                    // sent by all devices together
  std::int64_t messages = 0;                         // of all devices together
  Seconds time{0};
  std::vector<std::int64_t> copying = {};  // devices that copy `total / their number` to hosts
  // On the fullest device of either mesh while the step runs, what was given included.
  Bytes source_bytes{0};
  Bytes target_bytes{0};
};

// Between a device and its host: what plans begin or end with, whatever is between.
[[nodiscard]] bool moves_between_memories(const PlannedReshardStep& step);

struct ReshardPlan {
  Sharding source_intermediate;  // A; the source where nothing is done there
  Sharding target_intermediate;  // B
  std::vector<PlannedReshardStep> steps;
  Seconds time{0};
  Bytes crossing{0};  // what the transfer sends
  // What a device holds before (source) and after (target); the same bytes if nothing moves.
  Bytes source_shard{0};
  Bytes target_shard{0};
  // Of these, what is in the memory of devices: nothing of what lies on hosts.
  Bytes given{0};
  Bytes result{0};
  bool stays = false;         // the result is what was given: no device needs other bytes
  bool frees_donated = true;  // false: what was given stays although it is donated
  Bytes peak{0};              // on the fullest device, both shards included
  Bytes donated_peak{0};      // where the array was given away
};

struct ReshardChoice {
  ReshardPlan direct;
  std::optional<ReshardPlan> intermediate;  // the best other plan, if there is any
  bool intermediate_is_better = false;      // less time; or the same and fewer bytes or less memory
  std::int64_t candidates = 1;              // pairs of A and B
  std::int64_t priced = 1;                  // of them: the rest could not have been better
  // Left out: pairs for which there was no budget, and every A or B with a collective that the
  // machine cannot run.
  std::int64_t left_out = 0;

  [[nodiscard]] const ReshardPlan& best() const {
    return intermediate_is_better ? *intermediate : direct;
  }
};

// The fullest device while plans run one after the other; `donated`: what was given of an array is
// freed once its first step has run. `shared`: a device is in both meshes.
[[nodiscard]] Bytes fullest_device(const std::vector<const ReshardPlan*>& plans, bool shared,
                                   bool donated);

inline constexpr std::int64_t most_reshard_devices = 8192;             // of one mesh
inline constexpr std::int64_t most_messages = std::int64_t{1} << 26;   // of the direct transfer
inline constexpr std::int64_t message_budget = std::int64_t{1} << 25;  // of all other ways

// Throws InputError for more devices or, sent directly, more messages than that, for partial sums
// or blocks, and for 2^58 bytes and more on all devices. Cost: O(messages looked at + pairs *
// devices).
[[nodiscard]] ReshardChoice plan_reshard(const ReshardTask& task, const ReshardCost& cost);

}  // namespace shardsim
