// What nccl-tests print, read as measured tables. The forms are those of NVIDIA/nccl-tests
// src/util.cu @0fdb00a and of logs in the wild: older headings, Open MPI's tags, lines in between.
#include "measurements/nccl_tests_output.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.hpp"
#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim::nccl_tests_output_test {
namespace {

using Catch::Contains;
using Catch::Equals;

const std::string started = "# Collective test starting: all_gather_perf\n";
const std::string devices =
    "#  Rank  0 Group  0 Pid  14010 on node-a device  0 [0000:06:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  14011 on node-a device  1 [0000:09:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid  14012 on node-b device  0 [0000:06:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid  14013 on node-b device  1 [0000:09:00] NVIDIA H100 80GB HBM3\n";
const std::string heading =
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time"
    "   algbw   busbw  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)"
    "  (GB/s)  (GB/s)         \n";
const std::string rows =
    "           0             0     float    none      -1     9.31    0.00    0.00       0     9.2"
    "    0.00    0.00       0\n"
    "     1048576         65536     float    none      -1    30.52   34.36   25.77       0    29.80"
    "   35.19   26.39       0\n"
    "  8589934592     536870912     float    none      -1  1.2e+05   71.58   53.69     N/A   119000"
    "   72.18   54.14     N/A\n";
const std::string footer = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 41.2\n#\n";

Json table(const std::string& text) { return table_of_log(text, "a.log"); }

std::string mistake(const std::string& text) {
  return testing::mistake_of([&] { return table(text); });
}

}  // namespace

TEST_CASE("a log says what ran where, and how long it took") {
  const Json expected = {
      {"collective", "all_gather"},
      {"ranks", 4},
      {"nodes", 2},
      {"rows",
       {{{"bytes", 1048576}, {"time_us", 30.52}, {"inplace_time_us", 29.8}},
        {{"bytes", 8589934592}, {"time_us", 1.2e5}, {"inplace_time_us", 119000.0}}}}};
  CHECK(table(started + devices + heading + rows + footer) == expected);
  // In a job's log, behind mpirun --tag-output, with lines of NCCL's in between.
  std::string tagged = "Warning: Permanently added 'node-b' to the list of known hosts.\n";
  const std::string whole = started + devices + heading + rows + footer;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at);
    tagged += "[1,0]<stdout>:" + whole.substr(at, end - at) + "\r\n";
    tagged += "node-a:21:21 [0] NCCL INFO comm 0x55 rank 0\n";
    at = end + 1;
  }
  CHECK(table(tagged) == expected);
}

TEST_CASE("what an older log leaves out is in its command line, or open") {
  const std::string old_devices =
      "#   Rank  0 Pid  43 on node-a device  0 [0x0f] A100\n"
      "#   Rank  1 Pid  44 on node-a device  1 [0x15] A100\n";
  const std::string old =
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw"
      "   busbw  error\n"
      "         256            64   float     sum    21.04    0.01    0.01  0e+00    20.96    0.01"
      "    0.01  0e+00\n" +
      footer;
  const Json read = table("$ mpirun ./build/all_reduce_perf -b 256 -e 256\n" + old_devices + old);
  CHECK(read["collective"] == "all_reduce");
  CHECK(read["ranks"] == 2);
  CHECK(read["rows"][0]["time_us"] == 21.04);
  CHECK(table(old)["collective"] == "unknown");
  CHECK_FALSE(table(old).contains("ranks"));
  CHECK(table("all_reduce_perf\nalltoall_perf\n" + old)["collective"] == "unknown");
}

TEST_CASE("timestamps have two words, statistics of iterations columns of their own") {
  const std::string stamped =
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp\n"
      "256 64 float sum -1 21.04 0.01 0.01 0 20.96 0.01 0.01 0 2026-01-02 10:20:30\n";
  CHECK(table(started + stamped + footer)["rows"][0]["inplace_time_us"] == 20.96);
  const std::string per_iteration =
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw #wrong i_min i_max i_p99 i_cv%\n"
      "256 64 float sum -1 21.04 0.01 0.01 0 20.0 23.0 22.9 3.1 20.96 0.01 0.01 0 20 22 22 2\n";
  CHECK(table(started + per_iteration + footer)["rows"][0]["inplace_time_us"] == 20.96);
}

TEST_CASE("a test that failed or was cut off is not healthy") {
  CHECK_FALSE(table(started + heading + rows + footer).contains("healthy"));
  const Json cut = table(started + heading + rows);
  CHECK(cut["healthy"] == "unknown");
  CHECK(cut["healthy_reason"] == "the end of the test is missing");
  const Json wrong = table(started + heading +
                           "1024 64 float none -1 9.3 0.1 0.1 12 9.2 0.1 0.1 0\n" + rows + footer);
  CHECK(wrong["healthy"] == false);
  CHECK(wrong["healthy_reason"] == "1 rows have wrong results");
}

TEST_CASE("a log that cannot be read says which line") {
  CHECK_THAT(mistake("hello\n"),
             Equals("a.log: is neither a measured table nor what nccl-tests print"));
  CHECK_THAT(mistake(started + heading + footer),
             Equals("a.log: line 2: no row follows this heading"));
  CHECK_THAT(mistake(heading + "1024 64 float none -1 9.3 0.1\n"),
             Equals("a.log: line 3: has 7 figures, the heading at line 1 names 13"));
  CHECK_THAT(mistake(heading + "1024 64 float none -1 none 0.1 0.1 0 9.2 0.1 0.1 0\n"),
             Equals("a.log: line 3: \"none\" is no time"));
  CHECK_THAT(mistake(heading + rows + heading),
             Equals("a.log: line 6: is the second table, the first is at line 1; give them apart"));
  CHECK_THAT(mistake("# size count type cputime algbw\n"),
             Equals("a.log: line 1: times are the CPU's (-C), not the collective's"));
  CHECK_THAT(mistake("# size count type\n"), Equals("a.log: line 1: has no column \"time\""));
}

// The JSON lists one device of each process: two processes of 2 threads with 2 GPUs are 8 ranks.
TEST_CASE("the JSON of -J is a table, too") {
  const Json body = {{"time", 30.5}, {"alg_bw", 34.3}, {"bus_bw", 25.7}, {"nwrong", nullptr}};
  Json document = {{"version", 2},
                   {"args", {"/opt/all_reduce_perf_mpi", "-b", "8"}},
                   {"config",
                    {{"nthreads", 2},
                     {"ngpus", 2},
                     {"devices",
                      {{{"rank", 0}, {"group", 0}, {"hostname", "node-a"}},
                       {{"rank", 4}, {"group", 0}, {"hostname", "node-b"}}}}}},
                   {"results",
                    {{{"size", 0}, {"out_of_place", body}, {"in_place", body}},
                     {{"size", 1024}, {"out_of_place", body}, {"in_place", body}}}},
                   {"out_of_bounds", {{"count", 0}, {"okay", "true"}}}};
  const auto read = [&] { return table_of_json(document, "a.json"); };
  const Json whole = read();
  CHECK(whole == Json{{"collective", "all_reduce"},
                      {"ranks", 8},
                      {"nodes", 2},
                      {"rows", {{{"bytes", 1024}, {"time_us", 30.5}, {"inplace_time_us", 30.5}}}}});
  document["results"][1]["in_place"]["nwrong"] = 3.0;
  CHECK(read()["healthy"] == false);
  document.erase("out_of_bounds");
  document["results"][1]["in_place"]["nwrong"] = 0.0;
  CHECK(read()["healthy"] == "unknown");
  document["results"][1]["out_of_place"] = {{"cpu_time", 3.0}};
  CHECK_THROWS_WITH(read(), Contains("a.json: /results/1/out_of_place/cpu_time: times are the"));
  document["results"] = Json::array();
  CHECK_THROWS_WITH(read(), Equals("a.json: /results: no row was measured"));
}

TEST_CASE("a log stands beside predictions as a table does") {
  const std::string path = SHARDSIM_SOURCE_DIR "/examples/nccl-tests/a100-2x8-all-reduce.log";
  const CollectivePrediction prediction = predict_collective(
      read_collective({{"against", path}, {"machine", "oci-bm-gpu4.8"}}, "test"));
  CHECK(prediction.experiment.kind == CollectiveKind::all_reduce);
  CHECK(prediction.nodes == 2);
  REQUIRE(prediction.points.size() == 31);
  CHECK(prediction.points.back().measured->count() == Approx(67689e-6));
  REQUIRE(prediction.errors);
  CHECK(prediction.errors->rows == 31);
  CHECK_THROWS_WITH(read_collective({{"against", path}}, "test"),
                    Contains("/machine: the file leaves it open; give \"machine\""));
}

}  // namespace shardsim::nccl_tests_output_test
