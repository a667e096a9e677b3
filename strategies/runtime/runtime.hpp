// A runtime: how what lies in shards is moved, whatever the layout is. A layout says where every
// tensor lies and so what has to be gathered and reduced; a runtime says when, in which calls and
// for how long what was gathered is kept.
//
// Example, FSDP2 as torch's fully_shard has it:
//   gathers     a unit in one call, in the compute dtype, one unit ahead of the one that computes;
//               given back after forward and gathered again in backward, but for the root
//   reductions  a unit's gradients in one call, in every microbatch
// XLA's programs gather and reduce tensor by tensor, and keep what forward has gathered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardsim {

// What one call moves.
enum class Grain : std::uint8_t {
  unit,  // all parameters of a layer, or of the root
  tensor
};

// How long forward keeps what it gathers.
enum class Kept : std::uint8_t {
  forward,  // until its pass of the unit ends; backward gathers again
  backward  // until the backward pass has read it
};
// In a pipeline what backward has read stays, for the next microbatch, until the last microbatch's
// backward gives it back (torch.distributed.pipelining sets reshard_after_backward to False but for
// the last): the forward that comes next need not gather.

// In which type parameters travel.
enum class GatherDType : std::uint8_t {
  compute,  // shards are cast before
  stored    // what was gathered is cast
};

// Gradients that are reduced in every microbatch; the others are added up on each device first.
enum class ReduceEachMicrobatch : std::uint8_t {
  all,     // FSDP2, HSDP, DDP
  shards,  // over the axes that a reduction leaves in shards; over others, and what is kept whole,
           // once
  none     // FSDP2's set_requires_gradient_sync(False), DDP's no_sync
};

// From forward to backward a unit stays split over so many neighbours of the axis, from which
// backward gathers it (FSDP2's reshard_after_forward=n).
struct KeptSlices {
  std::string axis;
  std::int64_t over = 0;
  friend bool operator==(const KeptSlices&, const KeptSlices&) = default;
};

struct Gathers {
  Grain grain = Grain::unit;
  GatherDType dtype = GatherDType::compute;
  Kept kept = Kept::forward;              // of layers
  Kept kept_root = Kept::forward;         // of all else; FSDP2's own default is backward
  std::optional<KeptSlices> slices = {};  // of layers that forward does not keep
  int ahead = 1;  // units whose gather may be in flight ahead of the one that computes
  friend bool operator==(const Gathers&, const Gathers&) = default;
};

struct Reductions {
  Grain grain = Grain::unit;
  ReduceEachMicrobatch each_microbatch = ReduceEachMicrobatch::all;
  // In a pipeline: what is reduced once waits until the stage's last backward pass is through, as
  // FSDP2's is (torch.distributed.pipelining, perform_reduce_grad); else each unit's follows its
  // own last backward pass (DDP's buckets).
  bool after_last_backward = false;
  friend bool operator==(const Reductions&, const Reductions&) = default;
};

struct Runtime {
  Gathers gathers{};
  Reductions reductions{};
  bool averages_loss = false;  // over the devices (scalar_sums.hpp)
  friend bool operator==(const Runtime&, const Runtime&) = default;
};

}  // namespace shardsim
