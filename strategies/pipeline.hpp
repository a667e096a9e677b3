// What a strategy says of its pipeline: over which axis of the mesh the model's stages lie, which
// layers each has, and in which order microbatches go through them.
//
//   "mesh": {"pp": 4, "fsdp": 8},
//   "strategy": {"name": "fsdp", "pipeline": {"schedule": "interleaved-1f1b", "virtual_stages": 2}}
//
//   key                 values                                  when left out
//   schedule            a name of schedule/schedules.hpp; or    1f1b
//                       {"actions": "file.csv"}, or
//                       {"ranks": [["0F0", "0B0"], ["1F0",
//                       "1B0"]]}, in the form of
//                       schedule/schedule_text.hpp
//   virtual_stages      stages per rank                         2 of schedules that run several
//                                                               (torchtitan), else 1
//   microbatch_group    Megatron's                              the ranks
//                       microbatch_group_size_per_vp_stage
//   layers              layers of each stage or rank,           evenly; where it does not come out
//                       Megatron's layout string, or            even the first stages have one
//                       "one-less-at-ends"; or "by-cost"        more, of megatron with a note;
//                       (layout/stage_costs.hpp)                of nanotron by cost
//   ends                {"first": 2, "last": 2}                 as the others
//   receives            with_sends, when_needed, one_ahead,     as PyTorch and Megatron have it
//                       exchanged (schedule/messages.hpp)
//   sends               unawaited, next_kernel, next_send,      as PyTorch and Megatron have it
//                       own_backward (schedule/messages.hpp)
//   embedding_counts,   true: counts as a layer where they are  false
//   loss_counts         dealt out
//
// A mesh whose stages' axis has one device has no pipeline. Where it has several and nothing is
// said of them, the schedule is 1F1B.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "strategies/layout/axis_roles.hpp"
#include "strategies/layout/stages.hpp"
#include "strategies/schedule/schedules.hpp"

namespace shardsim {

struct Pipeline {
  std::string axis;          // of the mesh
  ScheduleRequest schedule;  // but for its microbatches, which the step says
  StagesRequest stages;      // but for its layers, which the model says
  // Of layers that do not divide; none: the first stages have one more.
  std::optional<Remainder> remainder = {};
  std::optional<PipelineSchedule> written;  // action by action, in place of the schedule's name
  std::optional<Receives> receives;         // in place of how the schedule's runtime has it
  bool host_awaits_messages = false;        // before it issues what comes next
  std::optional<Sends> sends;               // unawaited
  Place place;                              // of the object
};

// `strategy` is a name or an object that may have "pipeline". Throws InputError: two axes for
// stages, a pipeline on a mesh that has none, an unknown key or schedule, stages that it does not
// have.
[[nodiscard]] std::optional<Pipeline> read_pipeline(const JsonReader& strategy, const Mesh& mesh,
                                                    const AxisRoles& roles);
// Read again it is the same pipeline.
[[nodiscard]] Json pipeline_to_json(const Pipeline& pipeline);

// The schedule of a step with so many microbatches, and the layers of each of its stages. Throws
// InputError for numbers that the schedule cannot do and layers that cannot be dealt out.
[[nodiscard]] PipelineSchedule schedule_of(const Pipeline& pipeline, std::int32_t microbatches);
// How its ranks receive.
[[nodiscard]] Receives receives_of(const Pipeline& pipeline);
[[nodiscard]] std::vector<StageLayers> stages_of(const Pipeline& pipeline, std::int32_t layers,
                                                 std::int32_t mtp_layers = 0);

}  // namespace shardsim
