// From blocks to a plan: the actions of a schedule are unrolled over the order of layers,
// dependencies and lifetimes written down. One program for every rank of the pipeline, of the
// devices that have its place on the mesh's axis for stages (emit_program.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "strategies/layout/stage_ranges.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/runtime/runtime.hpp"
#include "strategies/schedule/schedule.hpp"
#include "strategies/shifting_stages.hpp"

namespace shardsim {

// Throws InputError for a step of more than 2^22 tasks.
void check_task_count(const SpmdStep& step, const Workload& workload, std::int64_t microbatches,
                      const Place& place);

struct EmitInput {
  const SpmdStep& step;
  const Workload& workload;
  const Mesh& mesh;
  const PipelineSchedule& schedule;
  const std::vector<StageRange>& stages;  // as the schedule has them
  std::string stages_axis;                // of the mesh; empty: one stage
  Receives receives = Receives::with_sends;
  Sends sends = Sends::unawaited;
  const Runtime& runtime;
  AxisList data_axes = {};            // that split the batch or the sequence
  DType gradient_dtype = DType::f32;  // of gradient buffers
  std::string optimizer = {};         // as kernels have it
  bool clips = false;                 // gradients, by the norm of them all
  AxisList shard_axes = {};           // over which parameters are sharded as over one
  bool widens_gradients = false;      // the optimizer reads copies in fp32 of those in buffers
  bool local_modules = false;         // Megatron-Core's local specification (registration.hpp)
  bool updates_routing = false;       // biases of routers, by how many rows each expert has had
  std::optional<ShiftingPipeline> shifting = {};  // of one program (shifting_stages.hpp)
  Shifts shifts = {};                             // between its iterations
};

// Fills mesh, names, kernels, collectives, transfers and programs of the plan.
[[nodiscard]] Plan emit(const EmitInput& input);

}  // namespace shardsim
