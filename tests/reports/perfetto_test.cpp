// Perfetto's traces read back and held to what the simulation and the plan say.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/index.hpp"
#include "fixture.hpp"
#include "perfetto_reader.hpp"
#include "reports/traces/perfetto.hpp"
#include "traced.hpp"

namespace shardsim::perfetto_test {
namespace {

using fixture::ms;

ReadTrace read_back(const Prediction& prediction) {
  return read_perfetto(perfetto_trace(trace_of(prediction)));
}

double sum(const ReadTrace& trace, const std::string& number,
           const std::function<bool(const ReadTrace::Slice&)>& counts) {
  double total = 0;
  for (const ReadTrace::Slice& slice : trace.slices) {
    const auto found = slice.numbers.find(number);
    if (found != slice.numbers.end() && counts(slice)) total += found->second;
  }
  return total;
}

bool always(const ReadTrace::Slice&) { return true; }

std::string axes_of(const CommunicationRow& row) {
  std::string axes;
  for (const std::string& axis : row.axes) axes += (axes.empty() ? "" : ",") + axis;
  return axes;
}

TEST_CASE("A trace has every task that takes time, and as much of it") {
  for (const Prediction* prediction : traced::examples()) {
    const Program& program = prediction->step.plan.programs[0];
    const ProgramResult& result = prediction->result.programs[0];
    const ReadTrace trace = read_back(*prediction);
    std::map<std::string, std::pair<std::int64_t, SimTime>> expected;  // tasks and time, by stream
    for (std::size_t i = 0; i < result.tasks.size(); ++i) {
      auto& [tasks, time] = expected[program.streams[program.tasks[i].stream]];
      tasks += result.tasks[i].end > result.tasks[i].start ? 1 : 0;
      time += result.tasks[i].end - result.tasks[i].start;
    }
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> actual;
    for (const ReadTrace::Slice& slice : trace.slices) {
      auto& [tasks, nanoseconds] = actual[trace.tracks.at(slice.track).name];
      ++tasks;
      nanoseconds += slice.end - slice.start;
    }
    for (const auto& [stream, counted] : expected) {
      INFO(stream);
      const auto [tasks, nanoseconds] = actual[stream];
      CHECK(tasks == counted.first);
      // Rounded down at both ends: less than one nanosecond off for each.
      CHECK(std::abs(nanoseconds - counted.second.count() / 1000) <= tasks);
    }
    // One kernel at a time: what the result calls compute time, to the picosecond.
    SimTime compute{0};
    const StepTrace exact = trace_of(*prediction);
    for (const TraceSlice& slice : exact.classes[0].slices) {
      if (slice.stream == 0) compute += slice.end - slice.start;
    }
    CHECK(compute == result.compute_time + result.contention_time);
  }
}

TEST_CASE("Exposed times of a trace add up to those of the result") {
  for (const Prediction* prediction : traced::examples()) {
    const ProgramResult& result = prediction->result.programs[0];
    const std::vector<SimTime> exposed =
        exposed_times(prediction->step.plan.programs[0], result.tasks);
    CHECK(std::accumulate(exposed.begin(), exposed.end(), SimTime(0)) == result.exposed_time);
    const ReadTrace trace = read_back(*prediction);
    CHECK(sum(trace, "exposed_us", always) ==
          Approx(to_seconds(result.exposed_time).count() * 1e6).epsilon(1e-9));
    for (const CommunicationRow& row : prediction->result.communication) {
      const auto is_of_row = [&](const ReadTrace::Slice& slice) {
        return slice.category == row.kind && slice.texts.at("axes") == axes_of(row);
      };
      INFO(row.kind << " over " << axes_of(row));
      CHECK(sum(trace, "exposed_us", is_of_row) ==
            Approx(to_seconds(row.exposed).count() * 1e6).epsilon(1e-6).margin(1e-3));
    }
  }
}

// From the times in fixture.hpp: no kernel runs from 0.4 to 0.8 s, and after 1.2 s.
TEST_CASE("What is exposed is what no kernel hides") {
  const Prediction prediction = fixture::fsdp();
  const std::vector<SimTime> exposed =
      exposed_times(prediction.step.plan.programs[0], prediction.result.programs[0].tasks);
  CHECK(exposed == std::vector<SimTime>{ms(0), ms(0), ms(400), ms(0), ms(50)});
}

TEST_CASE("Collectives in flight together share what is exposed evenly") {
  Prediction prediction = fixture::fsdp();
  // The gather of 0.4 to 0.8 s and one from 0.6 to 0.9 s, of which a kernel hides the last 0.1:
  // 0.2 alone and half of 0.2, the other half.
  prediction.result.programs[0].tasks[4] = {ms(600), ms(900)};
  const std::vector<SimTime> exposed =
      exposed_times(prediction.step.plan.programs[0], prediction.result.programs[0].tasks);
  CHECK(exposed == std::vector<SimTime>{ms(0), ms(0), ms(300), ms(0), ms(100)});
}

TEST_CASE("Collectives of a trace carry the bytes and the algorithm of the result") {
  for (const Prediction* prediction : traced::examples()) {
    const ReadTrace trace = read_back(*prediction);
    for (const CommunicationRow& row : prediction->result.communication) {
      INFO(row.kind << " over " << axes_of(row));
      std::int64_t count = 0;
      std::set<std::string> algorithms;
      const auto is_of_row = [&](const ReadTrace::Slice& slice) {
        return slice.category == row.kind && slice.texts.at("axes") == axes_of(row);
      };
      for (const ReadTrace::Slice& slice : trace.slices) {
        if (!is_of_row(slice)) continue;
        ++count;
        const auto protocol = slice.texts.find("protocol");
        algorithms.insert(slice.texts.at("algorithm") +
                          (protocol == slice.texts.end() ? "" : " " + protocol->second));
        CHECK_FALSE(slice.texts.at("reason").empty());
      }
      CHECK(count == row.count);
      CHECK(sum(trace, "payload_bytes", is_of_row) == static_cast<double>(row.payload.count()));
      CHECK(sum(trace, "wire_bytes_per_device", is_of_row) ==
            static_cast<double>(row.wire_bytes_per_device.count()));
      CHECK(algorithms == std::set<std::string>(row.algorithms.begin(), row.algorithms.end()));
    }
  }
}

TEST_CASE("The memory of a trace has the peak, by category, and links stay below all of theirs") {
  for (const Prediction* prediction : traced::examples()) {
    const ProgramResult& result = prediction->result.programs[0];
    const ReadTrace trace = read_back(*prediction);
    std::size_t links = 0;
    bool has_total = false;
    for (const auto& [track, values] : trace.counters) {
      const std::string path = trace.path(track);
      const double most = *std::max_element(values.begin(), values.end());
      INFO(path);
      if (path.ends_with("/memory/total")) {
        has_total = true;
        CHECK(most == static_cast<double>(result.peak.count()));
      } else if (path.ends_with("/memory/parameters")) {
        // Shards live before and after the step.
        CHECK(values ==
              std::vector<double>{static_cast<double>(result.peak_by_category[0].count())});
      } else if (path.find("/links/") != std::string::npos) {
        ++links;
        CHECK(most > 0);
        CHECK(most <= 100.0001);
        CHECK(values.back() == 0);
      }
    }
    CHECK(has_total);
    CHECK(links >= 1);
  }
}

// A flow begins at one slice and ends at one that begins no earlier, and comes later in the file.
void check_flows(const ReadTrace& trace, std::size_t expected) {
  std::map<std::uint64_t, std::size_t> begun;  // by flow: the slice
  std::size_t ended = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    for (const std::uint64_t flow : trace.slices[i].flows_to) {
      const auto found = begun.find(flow);
      REQUIRE(found != begun.end());
      CHECK(trace.slices[found->second].start <= trace.slices[i].start);
      ++ended;
    }
    for (const std::uint64_t flow : trace.slices[i].flows_from) {
      CHECK(begun.emplace(flow, i).second);
    }
  }
  CHECK(ended == begun.size());
  CHECK(ended == expected);
}

TEST_CASE("Flows lead from producers to consumers on other streams") {
  for (const Prediction* prediction : traced::examples()) {
    const Program& program = prediction->step.plan.programs[0];
    const std::vector<TaskTimes>& times = prediction->result.programs[0].tasks;
    std::size_t expected = 0;
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      for (const TaskId before : program.after(program.tasks[i])) {
        const bool crosses = program.tasks[at(before)].stream != program.tasks[i].stream;
        const bool seen =
            times[i].end > times[i].start && times[at(before)].end > times[at(before)].start;
        expected += crosses && seen ? 1 : 0;
      }
    }
    REQUIRE(expected > 0);
    check_flows(read_back(*prediction), expected);
  }
}

TEST_CASE("Stages have tracks of their own, and messages lead from one to the other") {
  const Prediction prediction = traced::simulated(traced::two_stages());
  REQUIRE(prediction.result.step_time == SimTime(180));
  const StepTrace trace = trace_of(prediction);
  REQUIRE(trace.classes.size() == 2);
  CHECK(trace.classes[0].name == "first (2 devices)");
  CHECK(trace.classes[1].name == "second (2 devices)");
  const auto text = [&](std::int32_t one, std::int32_t index) {
    const TraceSlice& slice = trace.classes[at(one)].slices[at(index)];
    return trace.names[at(slice.name)] + " at " + std::to_string(slice.start.count());
  };
  std::set<std::string> flows;
  for (const TraceFlow& flow : trace.flows) {
    flows.insert(text(flow.from_class, flow.from_slice) + " to " +
                 text(flow.to_class, flow.to_slice));
  }
  // Names as PlanBuilder gives them: by the number of the task in its program.
  CHECK(flows == std::set<std::string>{"task 0 at 0 to all-gather task 1 at 100",
                                       "send task 2 at 120 to receive task 1 at 120",
                                       "receive task 1 at 120 to task 2 at 150",
                                       "task 2 at 150 to send task 3 at 160",
                                       "send task 3 at 160 to receive task 3 at 160",
                                       "receive task 3 at 160 to task 4 at 170"});
  // All within a nanosecond: the order in the file is all that tells them apart.
  check_flows(read_perfetto(perfetto_trace(trace)), flows.size());
}

TEST_CASE("Whatever the plan, its trace holds together") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = traced::simulated(traced::random_plan(seed));
    const Plan& plan = prediction.step.plan;
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      const ProgramResult& result = prediction.result.programs[p];
      const std::vector<SimTime> exposed = exposed_times(plan.programs[p], result.tasks);
      CHECK(std::accumulate(exposed.begin(), exposed.end(), SimTime(0)) == result.exposed_time);
    }
    const StepTrace trace = trace_of(prediction);
    check_flows(read_perfetto(perfetto_trace(trace)), trace.flows.size());
  }
}

}  // namespace
}  // namespace shardsim::perfetto_test
