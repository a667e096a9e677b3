// The simulated step as viewers of traces want it: slices on tracks, counters, arrows. What the
// writers of Perfetto's and Chrome's formats have in common; docs/export.md shows what comes out.
//
//   write_perfetto(trace_of(prediction))
//
//   one class of devices   a group of tracks: "stage 0 (8 devices)"
//   one stream             a track; its slices, one per task, never overlap
//   memory                 a counter for every category
//   links                  a counter for every level of links, in percent of its bandwidth
//   a dependency           an arrow from the producer's slice to the consumer's, where they are on
//                          different streams; and one for every message between classes
//
// Unlike the timeline of a page (reports/format/timeline.hpp) nothing is merged: a trace has every
// task that takes time. What is the same for all runs of a kernel or collective is stored once.
//
// Cost: O((tasks + dependencies) log tasks).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "experiments/experiment.hpp"
#include "reports/format/timeline.hpp"

namespace shardsim {

// A name and a value that a viewer shows beside a slice. Units are in the name: "payload_bytes".
struct TraceArgument {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

struct TraceSlice {
  SimTime start{0};
  SimTime end{0};
  SimTime exposed{0};  // of communication: see exposed_times
  SegmentKind kind = SegmentKind::forward;
  std::int32_t stream = 0;
  std::int32_t name = 0;         // index into StepTrace::names
  std::int32_t work = 0;         // index into StepTrace::works
  std::int32_t layer = -1;       // -1: none
  std::int32_t microbatch = -1;  // -1: the step has but one
};

struct TraceCounters {
  std::string name;    // "memory"
  bool bytes = true;   // else percent
  bool stacks = true;  // the sum of the series means something
  std::vector<std::string> series = {};
  std::vector<SimTime> times = {};
  std::vector<std::vector<double>> values = {};  // by series, then time: from then on
};

struct TraceClass {
  std::string name;  // "all (8 devices)"
  std::vector<std::string> streams;
  std::vector<TraceSlice> slices = {};  // by start
  std::vector<TraceCounters> counters = {};
};

struct TraceFlow {
  std::int32_t from_class = 0;
  std::int32_t from_slice = 0;  // index into TraceClass::slices
  std::int32_t to_class = 0;
  std::int32_t to_slice = 0;
};

struct StepTrace {
  std::string title;  // what was simulated, in a line
  SimTime step{0};
  std::vector<std::string> names;  // distinct
  std::vector<std::vector<TraceArgument>> works;
  std::vector<TraceClass> classes;
  std::vector<TraceFlow> flows;
};

// Of a simulation that kept its timeline (SimulationOptions::keep_timeline; link_bins for links).
[[nodiscard]] StepTrace trace_of(const Prediction& prediction);

// What a slice has beside what its work has: "exposed_us" of communication, "layer", "microbatch".
[[nodiscard]] std::vector<TraceArgument> own_arguments(const TraceSlice& slice);

// For every task of a program the time in which it is in flight and no kernel runs, shared evenly,
// to the picosecond, with what else is then in flight; of kernels nothing. Adds up to
// ProgramResult::exposed_time exactly (sim/step/accounting.hpp has the same for rows of a table).
[[nodiscard]] std::vector<SimTime> exposed_times(const Program& program,
                                                 const std::vector<TaskTimes>& times);

// "model.layers.0.mlp.up_proj", "all-gather model.layers.0", "send model.layers.3".
[[nodiscard]] std::string label_of(const Plan& plan, const Task& task);

}  // namespace shardsim
