// A pipeline that is one program: all devices of an axis run the same loop, in which each applies
// its own layers to a microbatch and hands the result to its neighbour, as lingvo's, praxis' and
// MaxText's layers do it with GSPMD (schedule/shifting_pipeline.hpp).
//
//   "mesh": {"stage": 4, "data": 8},
//   "strategy": {"name": "praxis", ..., "pipeline": {"schedule": "shifting", "repeats": 2}}
//
//   repeats    times that a microbatch goes round the stages, each time through other layers (1)
//   stream_io  inputs lie dealt out over the stages and shift towards the first, a permute more in
//              each iteration; results leave by the same stream, and what is before and behind the
//              loop has its examples dealt out over the stages, too (false: every stage has them)
//
// The microbatches are the step's. What is before the loop, the embedding, and behind it, the head,
// is computed once, for all microbatches together. Without a stream every stage does so: results go
// from the last stage to all others, and gradients of inputs from the first, behind the loop.
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

// With the layers that a device has, of every repeat, each of them over one microbatch, and all
// else over all microbatches. Throws InputError: layers that do not divide or are not alike from
// stage to stage, something between the layers or, but for constants, read by them and others.
[[nodiscard]] Workload with_layers_of_a_stage(Workload workload, const ShiftingStages& shifting,
                                              std::int64_t microbatches);
// Are examples of all microbatches along it, in such a workload?
[[nodiscard]] bool is_of_all_microbatches(const Label& label);
// Of such a workload: what is before the layers, those of each repeat, what is behind.
[[nodiscard]] std::vector<StageRange> shifting_ranges(const Workload& workload,
                                                      const ShiftingStages& shifting);

// What devices hand each other, sizes left open, as XLA splits praxis' loop for TPUs (libtpu
// 0.0.51).
//
//   forward, backward    to the neighbour, between two iterations: the state or its gradient first;
//                        that of one that goes round comes by two permutes; then, of stream_io, a
//                        microbatch of the stream that inputs come and results leave by
//   late                 where microbatches go round and are more than stages: what an iteration
//                        has made, round, beside the next one, for a later one
//   results, gradients   behind the loop and without a stream: what the last stage has made of all
//                        iterations goes to where a slice of one stage lies, the first, and from
//                        there to all; gradients of the results to the last stage; those of inputs
//                        to all
struct Shifts {
  std::vector<Collective> forward = {}, backward = {};
  std::vector<Collective> late = {}, late_backward = {};
  std::vector<Collective> results = {}, gradients_of_results = {}, gradients_of_inputs = {};
};
[[nodiscard]] Shifts shifts_of(const ShiftingStages& shifting, std::int64_t microbatches,
                               const Workload& workload, const Mesh& mesh);

}  // namespace shardsim
