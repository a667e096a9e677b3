// From one program on all devices to the program of one device: every op on its tiles, with the
// collectives that this takes.
//
//   Module program = prepare(read_module("step.mlir"));
//   propagate(program);
//   Module local = partition(program);
//     %0 = stablehlo.all_gather %w ...    {spmd.reason = "dot_general, line 7: needs ...", ...}
//     %1 = stablehlo.dot_general %x, %0
//
// What is made, and in which order, is what XLA's SpmdPartitioner makes of the same shardings
// (openxla/xla xla/service/spmd/). The result is again StableHLO, over local types, with
// collectives over program-wide device numbers; nothing in it is dead.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

struct PartitionOptions {
  // Reshard in XLA's steps even where others send less. Without it a device never sends more than
  // with it (wire_bytes.hpp).
  bool like_xla = false;
};

// `program` has one function and a sharding for every value: what propagate() left. Throws
// InputError: meshes of different sizes, ops that cannot be partitioned.
[[nodiscard]] stablehlo::Module partition(const stablehlo::Module& program,
                                          const PartitionOptions& options = {});

// What partition() makes without like_xla, and what it spares.
struct PartitionChoice {
  stablehlo::Module local;
  double wire_bytes = 0;           // a device sends in a step (wire_bytes.hpp)
  double like_xla_wire_bytes = 0;  // in XLA's steps; never less
};

[[nodiscard]] PartitionChoice partition_by_choice(const stablehlo::Module& program);

// Ops whose results nobody reads are taken out; an all-reduce over n devices of which every device
// keeps an n-th becomes a reduce-scatter. Which part a device keeps, of one dimension or several,
// its attribute "spmd.starts" says: by dimension and device, where the part begins.
void clean_up(stablehlo::Module& local);

}  // namespace shardsim::spmd
