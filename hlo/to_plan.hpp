// A compiled HLO module as a plan: what one device does, in the order of the text.
//
//   %ags = .. all-gather-start(%w)         #0 all-gather   communication
//   %f   = .. fusion(%x), calls=%matmul    #1 matmul       compute
//   %agd = .. all-gather-done(%ags)
//   %g   = .. fusion(%f, %agd)             #2 matmul       compute, after #0 #1
//
// - One program for all devices, streams "compute" and "communication". A kernel or a synchronous
//   collective runs on the first; what has -start and -done, or TPU's async-collective fusions, on
//   the second, where what uses -done waits for it. In a module that is not scheduled nothing says
//   what waits: all collectives run on the second stream, and users wait for them.
// - Loops are unrolled, their iterations numbered as layers (inner loops as microbatches). A loop
//   of unknown trip count runs once, all branches of a conditional run, and notes say so.
// - A fusion that holds a collective (TPU's all-reduce-scatter, GPU's dynamic-slice fusions) is
//   that collective; one that TPU spreads over several fusions under one channel is counted where
//   it starts.
// - Prefetches (copy-start, slice-start) take no time of their own: their bytes are counted where
//   they are read. Copies to the host and from it (hlo/host_copy.hpp) are tasks; asynchronous ones
//   on streams of their own, "to host" and "from host", not before what stands in front of them.
// - Buffers are the entry's parameters, its results that alias none of them, and one heap for what
//   lies between.
//
// `reason` of a collective is the op_name of its metadata, or the instruction's name.
#pragma once

#include <optional>

#include "hlo/module.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct HloImportOptions {
  // Of as many devices as the module runs on: then groups are told as its axes where they are a
  // product of them. Empty: one axis "device".
  Mesh mesh = Mesh();
  // The heap of temporaries, where it is known (hlo/buffer_assignment.hpp); else it is estimated.
  std::optional<Bytes> temporaries = std::nullopt;
};

// Throws InputError: what HloModule::parse and the readers of attributes refuse, a mesh of another
// number of devices, more than 2^22 tasks or 2^26 instructions when loops are unrolled.
[[nodiscard]] Plan plan_from_hlo(const HloModule& module, const HloImportOptions& options);

}  // namespace shardsim
