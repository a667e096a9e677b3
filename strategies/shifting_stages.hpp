// A pipeline that is one program: all devices of an axis run the same loop, in which each applies
// its own layers to a microbatch and hands the result to its neighbour, as lingvo's, praxis' and
// MaxText's layers do it with GSPMD (schedule/shifting_pipeline.hpp).
//
//   "mesh": {"stage": 4, "data": 8},
//   "strategy": {"name": "praxis", ..., "pipeline": {"schedule": "shifting", "repeats": 2}}
//
//   repeats    times that a microbatch goes round the stages, each time through other layers (1)
//   stream_io  inputs lie dealt out over the stages and shift towards the first, a permute more in
//              each iteration (false: every stage has them)
//
// The microbatches are the step's. The embedding and the head are computed for all microbatches on
// the devices of every stage, before and behind the loop (praxis; MaxText deals their examples out
// over the stages, too).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/plan.hpp"
#include "strategies/layout/axis_roles.hpp"
#include "strategies/layout/stage_ranges.hpp"
#include "strategies/schedule/schedule.hpp"
#include "strategies/schedule/shifting_pipeline.hpp"

namespace shardsim {

struct ShiftingStages {
  std::string axis;  // of the mesh
  std::int64_t stages = 1;
  std::int64_t repeats = 1;
  bool stream_io = false;
  Place place;
};

// Of a strategy whose "pipeline" has the schedule "shifting". Throws InputError: a mesh without an
// axis for stages, an unknown key.
[[nodiscard]] std::optional<ShiftingStages> read_shifting_stages(const JsonReader& strategy,
                                                                 const Mesh& mesh,
                                                                 const AxisRoles& roles);
[[nodiscard]] Json shifting_stages_to_json(const ShiftingStages& shifting);

// Throws InputError, RuleError: microbatches that it cannot do with.
[[nodiscard]] ShiftingPipeline pipeline_of(const ShiftingStages& shifting,
                                           std::int64_t microbatches);

// With the layers that a device has, of every repeat. Throws InputError: layers that do not divide
// or are not alike from stage to stage, something between the layers.
[[nodiscard]] Workload with_layers_of_a_stage(Workload workload, const ShiftingStages& shifting);
// Of such a workload: what is before the layers, those of each repeat, what is behind.
[[nodiscard]] std::vector<StageRange> shifting_ranges(const Workload& workload,
                                                      const ShiftingStages& shifting);

// What each device hands to its neighbour between two iterations, sizes left open: the state or its
// gradient, then, of stream_io, a microbatch of the stream that inputs come and results leave by.
struct Shifts {
  std::vector<Collective> forward, backward;
};
[[nodiscard]] Shifts shifts_of(const ShiftingStages& shifting, const Workload& workload,
                               const Mesh& mesh);

}  // namespace shardsim
