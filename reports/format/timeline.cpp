#include "reports/format/timeline.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/text.hpp"

namespace shardsim {
namespace {

std::vector<Segment> segments_of(const Plan& plan, const Program& program,
                                 const std::vector<TaskTimes>& times) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Task& task = program.tasks[i];
    if (times[i].start == times[i].end) continue;
    segments.push_back({.start = times[i].start,
                        .end = times[i].end,
                        .busy = times[i].end - times[i].start,
                        .stream = task.stream,
                        .kind = kind_of(plan, task),
                        .layer = task.layer,
                        .name = task.name,
                        .tasks = 1});
  }
  std::stable_sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) {
    return std::tie(a.stream, a.start) < std::tie(b.stream, b.start);
  });
  return segments;
}

std::vector<MicrobatchPass> passes_of(const Program& program, const std::vector<TaskTimes>& times,
                                      SimTime step) {
  constexpr std::int64_t visible = 1000;  // of a step: a wait as long parts a pass
  std::vector<MicrobatchPass> passes;
  bool has_several = false;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Task& task = program.tasks[i];
    const bool counts = task.kind == TaskKind::kernel && task.stream == 0 &&
                        task.phase != Phase::optimizer && times[i].start < times[i].end;
    if (!counts) continue;
    const Phase phase =
        task.recompute && task.phase == Phase::forward ? Phase::backward : task.phase;
    has_several |= task.microbatch > 0;
    const bool goes_on = !passes.empty() && passes.back().microbatch == task.microbatch &&
                         passes.back().phase == phase &&
                         times[i].start - passes.back().end <= step / visible;
    if (!goes_on) {
      passes.push_back({.start = times[i].start, .microbatch = task.microbatch, .phase = phase});
    }
    MicrobatchPass& pass = passes.back();
    pass.end = times[i].end;
    if (task.layer < 0) continue;
    pass.first_layer = pass.first_layer < 0 ? task.layer : std::min(pass.first_layer, task.layer);
    pass.last_layer = std::max(pass.last_layer, task.layer);
  }
  return has_several ? passes : std::vector<MicrobatchPass>();
}

bool mergeable(const Segment& a, const Segment& b, SimTime resolution, bool across_layers) {
  if (a.stream != b.stream || b.start - a.end > resolution) return false;
  if (b.end - a.start <= resolution) return true;
  return a.kind == b.kind && (across_layers || a.layer == b.layer);
}

void absorb(Segment& segment, const Segment& next) {
  segment.end = std::max(segment.end, next.end);
  segment.busy += next.busy;
  segment.tasks += next.tasks;
  if (segment.kind != next.kind) segment.kind = SegmentKind::mixed;
  if (segment.layer != next.layer) segment.layer = -1;
  segment.name = -1;
}

std::vector<Segment> merged(const std::vector<Segment>& segments, SimTime resolution,
                            bool across_layers) {
  std::vector<Segment> result;
  for (const Segment& next : segments) {
    if (!result.empty() && mergeable(result.back(), next, resolution, across_layers)) {
      absorb(result.back(), next);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

std::vector<Segment> at_most(std::vector<Segment> segments, std::size_t limit, SimTime step) {
  SimTime resolution = std::max(SimTime(1), step / 4096);
  bool across_layers = false;
  while (segments.size() > limit) {
    segments = merged(segments, resolution, across_layers);
    if (resolution >= step) break;  // one segment per stream
    resolution = std::min(step, resolution + resolution);
    across_layers = true;
  }
  return segments;
}

Bytes total(const MemorySample& sample) {
  Bytes sum{0};
  for (Bytes bytes : sample.by_category) sum += bytes;
  return sum;
}

std::vector<MemorySample> envelope(const std::vector<MemorySample>& curve, std::size_t limit,
                                   SimTime step) {
  if (curve.size() <= limit || curve.empty()) return curve;
  const auto intervals = std::max<std::int64_t>(1, static_cast<std::int64_t>(limit) - 1);
  const std::int64_t width = ceil_div(step.count() + 1, intervals);
  std::vector<MemorySample> result = {curve.front()};
  std::optional<std::int64_t> interval;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const std::int64_t its = curve[i].time.count() / width;
    if (interval != its) {
      result.push_back(curve[i]);
      interval = its;
    } else if (total(curve[i]) > total(result.back())) {
      result.back() = curve[i];
    }
  }
  return result;
}

}  // namespace

std::string_view name_of(SegmentKind kind) {
  static constexpr std::array<std::string_view, segment_kinds> names{
      "forward",    "recompute",  "backward",           "optimizer", "all-gather", "reduce-scatter",
      "all-reduce", "all-to-all", "collective-permute", "broadcast", "transfer",   "to-host",
      "from-host",  "mixed"};
  return names[static_cast<std::size_t>(kind)];
}

SegmentKind kind_of(const Plan& plan, const Task& task) {
  switch (task.kind) {
    case TaskKind::transfer:
      return SegmentKind::transfer;
    case TaskKind::to_host:
      return SegmentKind::to_host;
    case TaskKind::from_host:
      return SegmentKind::from_host;
    case TaskKind::collective:
      switch (plan.collectives[static_cast<std::size_t>(task.work)].kind) {
        case CollectiveKind::all_gather:
          return SegmentKind::all_gather;
        case CollectiveKind::reduce_scatter:
          return SegmentKind::reduce_scatter;
        case CollectiveKind::all_reduce:
          return SegmentKind::all_reduce;
        case CollectiveKind::all_to_all:
          return SegmentKind::all_to_all;
        case CollectiveKind::collective_permute:
          return SegmentKind::collective_permute;
        case CollectiveKind::broadcast:
          return SegmentKind::broadcast;
      }
      break;
    case TaskKind::kernel:
      break;
  }
  if (task.recompute) return SegmentKind::recompute;
  if (task.phase == Phase::forward) return SegmentKind::forward;
  return task.phase == Phase::optimizer ? SegmentKind::optimizer : SegmentKind::backward;
}

std::string label_of(const LinkUsage& usage) {
  if (usage.links > 1) return fmt::format("{}, {}", usage.link, counted(usage.links, "link"));
  if (!usage.link.empty()) return usage.link;
  const bool has_sides = usage.level == LinkLevel::scale_up ||
                         usage.level == LinkLevel::scale_out || usage.level == LinkLevel::dcn ||
                         usage.level == LinkLevel::host;
  switch (usage.direction) {
    case LinkDirection::both:
      return fmt::format("{} links", name_of(usage.level));
    case LinkDirection::out:
      return fmt::format("{} links, {}", name_of(usage.level), has_sides ? "out" : "up");
    case LinkDirection::in:
      return fmt::format("{} links, {}", name_of(usage.level), has_sides ? "in" : "down");
  }
  return {};
}

Timeline timeline_of(const Prediction& prediction, const TimelineLimits& limits) {
  const Plan& plan = prediction.step.plan;
  const Result& result = prediction.result;
  Timeline timeline;
  if (plan.programs.empty() || result.programs.size() != plan.programs.size()) return timeline;
  const std::size_t share = plan.programs.size();
  for (std::size_t i = 0; i < share; ++i) {
    const Program& program = plan.programs[i];
    const ProgramResult& times = result.programs[i];
    if (times.tasks.empty() || times.tasks.size() != program.tasks.size()) return {};
    TimelineClass one{
        .name = program.name,
        .streams = program.streams,
        .passes = passes_of(program, times.tasks, result.step_time),
        .segments = at_most(segments_of(plan, program, times.tasks), limits.segments / share,
                            result.step_time),
        .memory = envelope(times.memory_curve, limits.samples / share, result.step_time),
        .peak_time = times.peak_time,
        .peak = times.peak,
        .links = times.links};
    timeline.merged |= std::any_of(one.segments.begin(), one.segments.end(),
                                   [](const Segment& segment) { return segment.tasks > 1; });
    timeline.classes.push_back(std::move(one));
  }
  timeline.names = plan.names;
  return timeline;
}

}  // namespace shardsim
