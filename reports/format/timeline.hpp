// One step as a picture needs it: segments on lanes and a memory curve, few enough for a page.
//
// Neighbouring tasks of a stream are drawn as one segment where a step has more tasks than
// `limits.segments`. With a resolution r, two segments merge when at most r lies between them and
// they are of one kind and layer, or are together no longer than r; r starts at 1/4096 of the step
// and doubles until the limit holds. Layers, too, merge once r has doubled. A segment says how many
// tasks it stands for and how long they ran, so that nothing is drawn that is not said.
//
// Memory keeps its first sample and the largest of every interval, of which there are one fewer
// than there may be samples, all of one length: an upper envelope that has the peak exactly.
//
// Cost: O(tasks * log(tasks)) in the worst case, O(tasks) for plans of usual size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "experiments/experiment.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

// What a segment shows: kernels by phase, communication by kind.
enum class SegmentKind : std::uint8_t {
  forward,
  recompute,
  backward,
  optimizer,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  collective_permute,
  broadcast,
  transfer,
  to_host,
  from_host,
  mixed
};
inline constexpr int segment_kinds = 14;
[[nodiscard]] std::string_view name_of(SegmentKind kind);  // "forward", "all-gather"
[[nodiscard]] SegmentKind kind_of(const Plan& plan, const Task& task);

// "scale-up links", "scale-out links, in", "x links, up", "device 0 -> device 1, 8 links".
[[nodiscard]] std::string label_of(const LinkUsage& usage);

struct Segment {
  SimTime start{0};
  SimTime end{0};
  SimTime busy{0};  // the sum over its tasks; less than end - start where gaps were merged
  int stream = 0;
  SegmentKind kind = SegmentKind::forward;
  std::int32_t layer = -1;  // -1: none, or several
  std::int32_t name = -1;   // index into Timeline::names; -1: several tasks
  std::int32_t tasks = 1;
};

// A microbatch on its way through a stage, forward or backward: kernels of one microbatch and phase
// that follow one another on the compute stream, recomputation with the backward pass it is for.
// One that waits for more than a thousandth of the step is there in parts.
struct MicrobatchPass {
  SimTime start{0};
  SimTime end{0};
  std::int32_t microbatch = 0;
  Phase phase = Phase::forward;
  std::int32_t first_layer = -1;  // -1: none has a number
  std::int32_t last_layer = -1;
};

struct TimelineClass {
  std::string name;
  std::vector<std::string> streams;
  std::vector<MicrobatchPass> passes;  // in order; empty where a step has one microbatch
  std::vector<Segment> segments;       // by stream, then start
  std::vector<MemorySample> memory;
  SimTime peak_time{0};
  Bytes peak{0};
  std::vector<LinkUsage> links = {};  // where they were kept
};

struct Timeline {
  std::vector<std::string> names;  // of tasks, with "{}" for the layer
  std::vector<TimelineClass> classes;
  bool merged = false;  // some segment stands for several tasks

  [[nodiscard]] bool empty() const { return classes.empty(); }
};

struct TimelineLimits {
  std::size_t segments = 12'000;
  std::size_t samples = 800;
};

// Empty when the simulation kept no timeline.
[[nodiscard]] Timeline timeline_of(const Prediction& prediction, const TimelineLimits& limits);

}  // namespace shardsim
