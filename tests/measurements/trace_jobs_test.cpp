// Traces of the ranks of a job, and of files: which rank waited, what is wrong, a real job.
#include "measurements/trace_tables.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.hpp"
#include "experiments/collective_experiment.hpp"
#include "measurements/measured_tables.hpp"
#include "trace_events.hpp"

namespace shardsim::trace_jobs_test {
namespace {

using Catch::Contains;
using Catch::Equals;
using namespace testing;  // NOLINT(google-build-using-namespace)

}  // namespace

// Two ranks: the collectives begin together once the later rank is there. Of instance 1 rank 0
// waits 40 us for rank 1, of instance 2 rank 1 waits 300 us, of instance 3 rank 0 waits 10 us: they
// take 60, 64 and 80 us, the median of which is 64.
TEST_CASE("with all ranks a collective takes what the rank took that waited least") {
  const auto rank = [](int number, const std::vector<double>& durations, bool in_sequence) {
    Json events = Json::array();
    constexpr double apart = 1000;  // further than any of them takes
    double clock = trace_begin;
    int sequence = 41;
    for (const double duration : durations) {
      Event event;
      event.ranks = "[0, 1]";
      event.size = 2;
      event.out = 2 * event.in;
      event.begin = clock;
      event.duration = duration;
      events.push_back(kernel_of(event, sequence));
      if (in_sequence) events.back()["args"]["Seq"] = sequence;
      ++sequence;
      clock += apart;
    }
    return trace_of(document_of(events, number, 2), fmt::format("rank{}.json", number));
  };
  const auto time = [](const std::vector<RankTrace>& traces) {
    const std::vector<Json> tables = tables_of_traces(traces, "t", "s", 8);
    REQUIRE(tables.size() == 1);
    return std::pair(tables[0]["rows"][0]["time_us"].get<double>(), tables[0]["notes"].size());
  };
  for (const bool in_sequence : {false, true}) {
    const RankTrace zero = rank(0, {100, 64, 90}, in_sequence);
    CHECK(time({zero, rank(1, {60, 364, 80}, in_sequence)}) == std::pair(64.0, std::size_t{1}));
    // One rank alone: the shortest of its kernels, with a note.
    CHECK(time({zero}) == std::pair(64.0, std::size_t{2}));
    CHECK(time({rank(0, {100, 94, 90}, in_sequence)}).first == 90);
  }
  // Another rank's trace ends earlier: told apart by the sequence, the first two are whole, and
  // their median is 62; in order they cannot be matched, and the shortest kernel is taken.
  CHECK(time({rank(0, {100, 64, 90}, true), rank(1, {60, 364}, true)}).first == 62);
  CHECK(time({rank(0, {100, 64, 90}, false), rank(1, {60, 364}, false)}).first == 60);
}

// A number that comes twice on a rank is not two ranks: both are matched with their own. And who is
// not of the group does not make it whole.
TEST_CASE("a group is whole when all of its own ranks are there") {
  const auto rank = [](int number, const std::string& ranks, const std::vector<double>& durations) {
    Json events = Json::array();
    for (std::size_t i = 0; i < durations.size(); ++i) {
      Event event;
      event.ranks = ranks;
      event.size = 2;
      event.out = 2 * event.in;
      event.begin = trace_begin * static_cast<double>(i + 1);
      event.duration = durations[i];
      events.push_back(kernel_of(event, static_cast<int>(i) + 1));
      events.back()["args"]["Seq"] = 5;
    }
    return trace_of(document_of(events, number, 4), fmt::format("rank{}.json", number));
  };
  const auto time = [](const std::vector<RankTrace>& traces) {
    const std::vector<Json> tables = tables_of_traces(traces, "t", "s", 8);
    REQUIRE(tables.size() == 1);
    return std::pair(tables[0]["rows"][0]["time_us"].get<double>(), tables[0]["notes"].size());
  };
  CHECK(time({rank(0, "[0, 1]", {50, 90})}) == std::pair(50.0, std::size_t{2}));
  const RankTrace zero = rank(0, "[0, 1]", {50, 90});
  CHECK(time({zero, rank(1, "[0, 1]", {60, 70})}) == std::pair(60.0, std::size_t{1}));
  CHECK(time({zero, rank(2, "[0, 1]", {60, 70})}) == std::pair(50.0, std::size_t{2}));
  CHECK(time({rank(0, "", {50, 90}), rank(1, "", {60, 70})}).first == 50);
}

// Of two collectives with both ranks there one runs beside a matmul on both of them.
TEST_CASE("of whole collectives those count that run beside nothing, if there are some") {
  const auto rank = [](int number, bool both) {
    Event one;
    one.ranks = "[0, 1]";
    one.size = 2;
    one.out = 2 * one.in;
    one.begin = 100;
    Event two = one;
    two.begin = 200;
    two.duration = 90;
    Json events = events_of({one, two});
    Json matmul = {{"ph", "X"}, {"cat", "kernel"}, {"name", "nvjet_hsh"},
                   {"pid", 0},  {"ts", 210},       {"dur", 500}};
    if (both) matmul["ts"] = 120;
    events.push_back(matmul);
    return trace_of(document_of(events, number, 2), fmt::format("rank{}.json", number));
  };
  std::vector<Json> tables = tables_of_traces({rank(0, false), rank(1, false)}, "t", "s", 8);
  CHECK(tables[0]["rows"][0]["time_us"] == 50.0);
  tables = tables_of_traces({rank(0, true), rank(1, true)}, "t", "s", 8);
  CHECK(tables[0]["rows"][0]["time_us"] == 70.0);  // the median of 50 and 90
  CHECK(tables[0]["notes"][1] == "1 of 1 row: always beside other kernels");
}

TEST_CASE("traces of several ranks say which, and each another") {
  const RankTrace one = trace_of(document_of(events_of({Event{}})), "a.json");
  RankTrace two = trace_of(document_of(events_of({Event{}})), "b.json");
  CHECK_THROWS_WITH(
      tables_of_traces({one, two}, "t", "s", 8),
      Equals("b.json: /distributedInfo/rank: rank 0 is in a.json, too; give one trace "
             "of each rank, and other jobs in folders of their own"));
  two.rank.reset();
  CHECK_THROWS_WITH(tables_of_traces({one, two}, "t", "s", 8),
                    Equals("b.json: /distributedInfo/rank: is not said, and there are traces of "
                           "other ranks"));
}

TEST_CASE("a trace that cannot be read says where") {
  const auto with = [](const char* key, const Json& value) {
    Json document = document_of(events_of({Event{}, Event{}}));
    Json& event = document["traceEvents"][1];
    (event.contains(key) ? event[key] : event["args"][key]) = value;
    return trace_mistake(document);
  };
  CHECK(with("dur", -1) == "trace.json: /traceEvents/1/dur: -1 is no time in microseconds");
  CHECK(with("dur", 1e300) == "trace.json: /traceEvents/1/dur: 1e+300 is no time in microseconds");
  CHECK(with("ts", "soon") == "trace.json: /traceEvents/1/ts: expected a number, found a string");
  CHECK(with("name", 5) == "trace.json: /traceEvents/1/name: expected a string, found a number");
  CHECK(with("args", Json::array()) ==
        "trace.json: /traceEvents/1/args: expected an object, found an array");
  // 2^53 + 1, the first whole number that a double has not.
  CHECK_THAT(with("In msg nelems", 9007199254740993),
             Contains("/traceEvents/1/args/In msg nelems: 9007199254740993 is out of range"));
  CHECK_THAT(with("In msg nelems", 1.5), Contains("expected an integer, found 1.5"));
  CHECK_THAT(with("Group size", 0), Contains("/args/Group size: 0 is out of range"));
  CHECK_THAT(with("Process Group Ranks", "0-7"),
             Contains("/args/Process Group Ranks: \"0-7\" is no list of numbers"));
  CHECK_THAT(with("Process Group Ranks", "[0, -1]"), Contains("is no list of numbers"));
  CHECK_THAT(with("Process Group Ranks", "[..., 1]"), Contains("is no list of numbers"));
  CHECK(trace_mistake({{"traceEvents", 5}}) ==
        "trace.json: /traceEvents: expected an array, found a number");
  CHECK(trace_mistake({{"traceEvents", {5}}}) ==
        "trace.json: /traceEvents/0: expected an object, found a number");
  CHECK(trace_mistake(document_of(Json::array())) ==
        "trace.json: /traceEvents: no kernel of NCCL or RCCL is among them; profile with "
        "ProfilerActivity.CUDA");
}

// Whatever is cut off it is an error with its place, never a table.
TEST_CASE("a trace that is cut short is refused") {
  const std::string text = document_of(events_of({Event{}})).dump(1);
  for (std::size_t length = 1; length < text.size(); ++length) {
    try {
      static_cast<void>(read_trace(std::string_view(text).substr(0, length), "cut.json"));
      FAIL("read " << length << " bytes of " << text.size());
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), Contains("cut.json: line "));
    }
  }
}

// Figures of a real job, Llama 3.2 Vision by FSDP on 8 H100, of which rank 0 was traced: of every
// size its shortest and its longest kernel (AMD-AGI/TraceLens, coll_analysis.csv @4dc822d; the file
// names it). Judged by nccl-tests on another machine of 8 H100
// (tests/measurements/collectives/h100_xxrjun_1n8g_allgather.json): 721.26 us for 256 MiB and
// 1389.46 us for 512 MiB make 1138.9 us for the 416 MiB that took 1130.7 us here. The mean of those
// 480 all-gathers was 20.6 ms, and two bytes more on every rank took 1790.9 us.
TEST_CASE("the shortest kernel of one rank of a real job is what nccl-tests measure") {
  const std::string path =
      SHARDSIM_SOURCE_DIR "/examples/kineto-traces/llama-3.2-fsdp-8xh100-rank0.json";
  const std::vector<MeasuredTable> tables = load_measured_tables({path}, 8);
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].table["rows"] == Json{{{"bytes", 39344640}, {"time_us", 128.417}},
                                        {{"bytes", 436224000}, {"time_us", 1130.748}}});
  CHECK(tables[1].table["rows"] == Json{{{"bytes", 39344640}, {"time_us", 125.247}},
                                        {{"bytes", 436224000}, {"time_us", 1146.109}}});
  const Json beside = load_json(SHARDSIM_SOURCE_DIR
                                "/tests/measurements/collectives/h100_xxrjun_1n8g_allgather.json");
  const auto at = [&](std::int64_t bytes) {
    for (const Json& row : beside["rows"]) {
      if (row["bytes"] == bytes) return row["time_us"].get<double>();
    }
    return 0.0;
  };
  constexpr std::int64_t below = std::int64_t{256} << 20;
  const double share = static_cast<double>(436224000 - below) / below;
  const double expected = at(below) + share * (at(2 * below) - at(below));
  CHECK(expected == Approx(1138.9).margin(0.1));
  CHECK(tables[0].table["rows"][1]["time_us"].get<double>() == Approx(expected).epsilon(0.01));
}

TEST_CASE("a trace stands beside predictions, told apart by what it is of") {
  const std::string path =
      SHARDSIM_SOURCE_DIR "/examples/kineto-traces/llama-3.2-fsdp-8xh100-rank0.json";
  const Json asked = {{"against", path}, {"machine", "dgx-h100"}};
  Json of_kind = asked;
  of_kind["kind"] = "reduce-scatter";
  const CollectivePrediction prediction = predict_collective(read_collective(of_kind, "test"));
  CHECK(prediction.nodes == 1);
  REQUIRE(prediction.points.size() == 2);
  CHECK(prediction.points[1].measured->count() == Approx(1146.109e-6));
  CHECK_THROWS_WITH(read_collective(asked, "test"),
                    Contains("has 2 tables: all-gather of 8 devices on 1 node, reduce-scatter of 8 "
                             "devices on 1 node; tell them apart with \"kind\" (--kind)"));
  of_kind["kind"] = "all-reduce";
  CHECK_THROWS_WITH(read_collective(of_kind, "test"), Contains("has no such table; it has all-"));
}

TEST_CASE("a folder is a job, and so are files of one folder") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "shardsim_trace_tables_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    Event event;
    event.size = 2;
    event.out = 2 * event.in;
    event.ranks = "[0, 1]";
    event.duration = 50 + 10 * rank;
    files.push_back((folder / fmt::format("rank{}.pt.trace.json", rank)).string());
    write_file(files.back(), document_of(events_of({event}), rank, 2).dump());
  }
  write_file((folder / "other.json").string(), "{}");
  write_file((folder / "notes.txt").string(), "traced on Monday");
  for (const auto& paths : {std::vector{folder.string()}, files}) {
    const std::vector<MeasuredTable> tables = load_measured_tables(paths, 8);
    REQUIRE(tables.size() == 1);
    CHECK(tables[0].table["id"] == "shardsim_trace_tables_test_1n2g_all-gather");
    CHECK(tables[0].table["rows"][0]["time_us"] == 50.0);
    CHECK(tables[0].table["notes"].size() == 1);
  }
  const MeasuredTable here = load_measured_tables({(folder / ".").string()}, 8).front();
  CHECK(here.table["id"] == "shardsim_trace_tables_test_1n2g_all-gather");
  fs::remove(files[0]);
  fs::remove(files[1]);
  CHECK_THROWS_WITH(load_measured_tables({folder.string()}, 8),
                    Contains("holds no trace of the PyTorch profiler"));
  fs::remove_all(folder);
}

}  // namespace shardsim::trace_jobs_test
