// Segments and memory curves of the fixture, and of plans made here with known times.
#include "reports/format/timeline.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "fixture.hpp"
#include "reports/step/html_report.hpp"

namespace shardsim {
namespace {

using fixture::ms;

SimTime busy(const std::vector<Segment>& segments, int stream) {
  SimTime sum{0};
  for (const Segment& segment : segments) {
    if (segment.stream == stream) sum += segment.busy;
  }
  return sum;
}

std::int32_t tasks(const std::vector<Segment>& segments) {
  return std::accumulate(
      segments.begin(), segments.end(), 0,
      [](std::int32_t sum, const Segment& segment) { return sum + segment.tasks; });
}

// `layers` layers of ten tasks of 1 ms each, one after the other on one stream.
Prediction long_plan(int layers) {
  Prediction p = fixture::fsdp();
  Program& program = p.step.plan.programs[0];
  ProgramResult& result = p.result.programs[0];
  program.tasks.clear();
  result.tasks.clear();
  result.memory_curve.clear();
  for (int i = 0; i < 10 * layers; ++i) {
    (void)program.add_task({.layer = i / 10}, {});
    result.tasks.push_back({ms(i), ms(i + 1)});
    MemorySample sample;
    sample.time = ms(i);
    sample.by_category[0] = Bytes(i == 777 ? 1'000'000 : i);
    result.memory_curve.push_back(sample);
  }
  p.result.step_time = ms(10 * layers);
  return p;
}

TEST_CASE("All steps of a page share what it may draw") {
  const TimelineLimits page;
  const auto timelines = timelines_of({long_plan(2000), long_plan(2000), long_plan(2000)});
  std::size_t segments = 0;
  std::size_t samples = 0;
  for (const Timeline& timeline : timelines) {
    CHECK(tasks(timeline.classes[0].segments) == 20'000);
    segments += timeline.classes[0].segments.size();
    samples += timeline.classes[0].memory.size();
  }
  CHECK(segments <= page.segments);
  CHECK(samples <= page.samples);
}

TEST_CASE("A short step is drawn task by task") {
  const Timeline timeline = timeline_of(fixture::fsdp(), {});
  REQUIRE(timeline.classes.size() == 1);
  CHECK_FALSE(timeline.merged);
  const std::vector<Segment>& segments = timeline.classes[0].segments;
  REQUIRE(segments.size() == 5);
  // By stream, then start.
  CHECK(segments[0].kind == SegmentKind::forward);
  CHECK(segments[1].layer == 1);
  CHECK(segments[2].kind == SegmentKind::backward);
  CHECK(segments[2].start == ms(800));
  CHECK(segments[3].kind == SegmentKind::all_gather);
  CHECK(segments[4].kind == SegmentKind::reduce_scatter);
  CHECK(segments[4].end == ms(1250));
}

TEST_CASE("Without times there is no timeline") {
  Prediction prediction = fixture::fsdp();
  prediction.result.programs[0].tasks.clear();
  CHECK(timeline_of(prediction, {}).empty());
  CHECK(timeline_of(fixture::dp(), {}).empty());
}

TEST_CASE("A long step merges tasks of a layer first, and loses no time") {
  const Timeline timeline = timeline_of(long_plan(100), {.segments = 100, .samples = 50});
  const std::vector<Segment>& segments = timeline.classes[0].segments;
  REQUIRE(segments.size() == 100);
  CHECK(timeline.merged);
  for (int layer = 0; layer < 100; ++layer) {
    CHECK(segments[static_cast<std::size_t>(layer)].layer == layer);
    CHECK(segments[static_cast<std::size_t>(layer)].tasks == 10);
  }
  CHECK(busy(segments, 0) == ms(1000));
}

TEST_CASE("However long the step, the limit holds") {
  for (std::size_t limit : {1, 7, 60}) {
    const Timeline timeline = timeline_of(long_plan(100), {.segments = limit, .samples = 50});
    const std::vector<Segment>& segments = timeline.classes[0].segments;
    CHECK(segments.size() <= limit);
    CHECK(tasks(segments) == 1000);
    CHECK(busy(segments, 0) == ms(1000));
  }
}

TEST_CASE("Gaps are not merged over while they can be seen") {
  Prediction prediction = long_plan(100);
  // Layer 50 starts late: 100 ms of 1100 without work.
  for (std::size_t i = 500; i < 1000; ++i) {
    TaskTimes& times = prediction.result.programs[0].tasks[i];
    times = {times.start + ms(100), times.end + ms(100)};
  }
  prediction.result.step_time = ms(1100);
  const Timeline timeline = timeline_of(prediction, {.segments = 20, .samples = 50});
  for (const Segment& segment : timeline.classes[0].segments) {
    CHECK_FALSE((segment.start < ms(500) && segment.end > ms(600)));
  }
}

TEST_CASE("A thinned memory curve keeps the peak and stays in order") {
  const Timeline timeline = timeline_of(long_plan(100), {.segments = 100, .samples = 50});
  const std::vector<MemorySample>& memory = timeline.classes[0].memory;
  CHECK(memory.size() <= 50);
  CHECK(memory.front().time == ms(0));
  bool peak_kept = false;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    peak_kept |= memory[i].by_category[0] == Bytes(1'000'000) && memory[i].time == ms(777);
    if (i > 0) CHECK(memory[i - 1].time < memory[i].time);
  }
  CHECK(peak_kept);
}

TEST_CASE("Device classes share the limit") {
  Prediction prediction = long_plan(100);
  prediction.step.plan.programs.push_back(prediction.step.plan.programs[0]);
  prediction.result.programs.push_back(prediction.result.programs[0]);
  const Timeline timeline = timeline_of(prediction, {.segments = 100, .samples = 50});
  REQUIRE(timeline.classes.size() == 2);
  CHECK(timeline.classes[0].segments.size() + timeline.classes[1].segments.size() <= 100);
}

}  // namespace
}  // namespace shardsim
