// Traces of the PyTorch profiler, read as measured tables. The form of an event is that of
// pytorch/kineto libkineto/src/output_json.cpp @002d991 (handleActivity); names, elements in and
// out, and split sizes are those of ProcessGroupNCCL.cpp; a list of more than 30 members ends in
// "..." (torch/csrc/profiler/util.cpp, format_list).
#include "experiments/trace_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "experiments/collective_experiment.hpp"
#include "experiments/measured_tables.hpp"

namespace shardsim {
namespace {

using Catch::Contains;
using Catch::Equals;

constexpr const char* all_gather_kernel =
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* all_reduce_kernel =
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

// An all-gather of 1 MiB, 128 KiB of each of 8 ranks, by default.
struct Event {
  std::string kernel = all_gather_kernel;
  std::string name = "_allgather_base";
  std::int64_t in = 65536;
  std::int64_t out = 524288;
  std::int64_t size = 8;
  std::string dtype = "BFloat16";
  std::string group = "0";
  std::string ranks = "[0, 1, 2, 3, 4, 5, 6, 7]";
  std::string splits = "[]";
  double begin = 0;
  double duration = 50;
  int id = 0;  // 0: its own
  int stream = 32;
};

Json record_of(const Event& event) {
  return {{"Collective name", event.name},     {"dtype", event.dtype},
          {"In msg nelems", event.in},         {"Out msg nelems", event.out},
          {"Group size", event.size},          {"In split size", event.splits},
          {"Out split size", event.splits},    {"Process Group Name", event.group},
          {"Process Group Ranks", event.ranks}};
}

Json kernel_of(const Event& event, int id) {
  Json args = record_of(event);
  args["External id"] = event.id > 0 ? event.id : id;
  args["stream"] = event.stream;
  return {{"ph", "X"},           {"cat", "kernel"},   {"name", event.kernel},  {"pid", 0},
          {"tid", event.stream}, {"ts", event.begin}, {"dur", event.duration}, {"args", args}};
}

Json document_of(const Json& events, int rank = 0, int world = 8) {
  return {{"schemaVersion", 1},
          {"distributedInfo", {{"backend", "nccl"}, {"rank", rank}, {"world_size", world}}},
          {"traceEvents", events}};
}

// Kernels of one stream: where no begin is given they follow each other.
Json events_of(const std::vector<Event>& events) {
  Json list = Json::array();
  double clock = 1000;
  int id = 2049;
  for (Event event : events) {
    if (event.begin == 0) event.begin = clock;
    clock = event.begin + event.duration + 1;
    list.push_back(kernel_of(event, id++));
  }
  return list;
}

RankTrace trace_of(const Json& document, const std::string& file = "trace.json") {
  return read_trace(document.dump(1), file);
}

std::vector<Json> tables_of(const std::vector<Event>& events,
                            std::optional<std::int64_t> devices_per_node = 8) {
  return tables_of_traces({trace_of(document_of(events_of(events)))}, "t", "s", devices_per_node);
}

// Of one kernel beside a plain all-gather: what the notes say is passed over.
std::string passed_over(const Event& event) {
  const std::vector<Json> tables = tables_of({Event{}, event});
  REQUIRE(tables.size() == 1);
  const auto last = tables[0]["notes"].back().get<std::string>();
  constexpr std::string_view heading = "kernels passed over: ";
  return last.starts_with(heading) ? last.substr(heading.size()) : "";
}

std::string mistake(const Json& document) {
  try {
    static_cast<void>(
        tables_of_traces({trace_of(document)}, "t", "s", std::optional<std::int64_t>(8)));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

// 524,288 elements of 2 bytes: 1 MiB.
TEST_CASE("a kernel is a row") {
  const std::vector<Json> tables = tables_of({Event{}});
  REQUIRE(tables.size() == 1);
  CHECK(tables[0]["id"] == "t_1n8g_all-gather");
  CHECK(tables[0]["collective"] == "all-gather");
  CHECK(tables[0]["ranks"] == 8);
  CHECK(tables[0]["nodes"] == 1);
  CHECK(tables[0]["rows"] == Json{{{"bytes", 1048576}, {"time_us", 50.0}}});
  CHECK(tables[0]["notes"] ==
        Json{"times are those of 1 kernel alone, without their launch",
             "1 of 1 row: 1 of 8 ranks traced, whose kernels wait for the others; the shortest is "
             "taken"});
}

// plan.hpp's payload: the result of an all-gather, the operand of a reduce-scatter and all-reduce,
// a device's buffer of an all-to-all, a broadcast's message.
TEST_CASE("payloads are the plan's, whichever way PyTorch counts") {
  const auto row = [](Event event) {
    const std::vector<Json> tables = tables_of({std::move(event)});
    REQUIRE(tables.size() == 1);
    return fmt::format("{} {}", tables[0]["collective"].get<std::string>(),
                       tables[0]["rows"][0]["bytes"].get<std::int64_t>());
  };
  const auto event = [](const char* kernel, const char* name, std::int64_t in, std::int64_t out,
                        const char* dtype) {
    Event result;
    result.kernel = kernel;
    result.name = name;
    result.in = in;
    result.out = out;
    result.dtype = dtype;
    return result;
  };
  const char* const send_receive = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  CHECK(row(event(all_reduce_kernel, "allreduce", 1000, 1000, "BFloat16")) == "all-reduce 2000");
  CHECK(row(event(all_gather_kernel, "all_gather", 64, 512, "Float")) == "all-gather 2048");
  CHECK(row(event("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", "_reduce_scatter_base", 512, 64,
                  "Float")) == "reduce-scatter 2048");
  CHECK(row(event(send_receive, "all_to_allv", 512, 512, "Half")) == "all-to-all 1024");
  CHECK(row(event(send_receive, "all_to_all", 512, 512, "Byte")) == "all-to-all 512");
  CHECK(row(event("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast", 3, 3, "Long")) ==
        "broadcast 24");
  // RCCL has one kernel for everything (ROCm/rccl src/device/generate.py); NCCL before 2.19 could
  // show any collective as sends and receives (NVIDIA/nccl issue 739).
  CHECK(row(event("ncclDevKernel_Generic_4(x)", "allreduce", 8, 8, "Float8_e4m3fn")) ==
        "all-reduce 8");
  CHECK(row(event("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "allreduce", 8, 8,
                  "ComplexDouble")) == "all-reduce 128");
}

// NCCL names its kernels after what is compiled into them, not after what they run:
// src/device/generate.py @081eafa, best_kernel; src/enqueue.cc of 2.18, NCCL_FUNC5.
TEST_CASE("the name of a kernel tells trees, and before NCCL 2.19 the algorithm") {
  const auto algorithm = [](const char* kernel) -> std::string {
    Event event;
    event.kernel = kernel;
    event.name = "allreduce";
    event.in = event.out;
    const std::vector<Json> tables = tables_of({event});
    REQUIRE(tables.size() == 1);
    CHECK_FALSE(tables[0].contains("proto"));
    return tables[0].value("algo", "");
  };
  CHECK(algorithm(all_reduce_kernel).empty());
  CHECK(algorithm("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(x)") == "Tree");
  CHECK(
      algorithm("ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)") ==
      "Ring");
  CHECK(algorithm("ncclKernel_AllReduce_TREE_LL_Sum_half(x)") == "Tree");
  CHECK(algorithm("ncclKernel_AllReduce_NVLS_LL_Sum_half(x)") == "NVLS");
  CHECK(algorithm("ncclKernel_AllReduce_NVLS_TREE_LL_Sum_half(x)") == "NVLSTree");
  CHECK(algorithm("ncclKernel_AllReduce_COLLNET_DIRECT_LL_Sum_half(x)") == "CollNetDirect");
  CHECK(algorithm("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)").empty());
  CHECK(algorithm("mscclKernel_Sum_half_Simple_false(x)").empty());
}

TEST_CASE("what is no measurement of a collective is passed over, and counted") {
  CHECK(passed_over({}).empty());
  Event event;
  event.size = 1;
  event.ranks = "[0]";
  event.out = event.in;
  CHECK(passed_over(event) == "1 of groups of one rank");
  event = {};
  event.name = "barrier";
  event.in = event.out = 0;
  event.dtype = "Byte";
  CHECK(passed_over(event) == "1 without data");
  event = {};
  event.name = "send";
  event.in = event.out;
  CHECK(passed_over(event) == "1 of sends and receives");
  event = {};
  event.name = "allgather_into_tensor_coalesced";
  CHECK(passed_over(event) == "1 of coalesced collectives");
  event.name = "gather";
  CHECK(passed_over(event) == "1 of collectives that are not modelled (\"gather\")");
  event = {};
  event.dtype = "QInt4";
  CHECK(passed_over(event) == "1 of an unknown dtype (\"QInt4\")");
  event = {};
  event.kernel = "ncclSymkDevKernel_AllGather_LL(x)";
  CHECK(passed_over(event) == "1 on symmetric memory");
  // An all-gather of tensors that differ in size is broadcasts (ProcessGroupNCCL::allgather).
  event.kernel = "ncclDevKernel_Broadcast_RING_LL(x)";
  CHECK(passed_over(event) == "1 that do something else than their record says");
  event = {};
  event.out += 8;
  CHECK(passed_over(event) == "1 with uneven parts");
  event = {};
  event.name = "all_to_allv";
  event.kernel = "ncclDevKernel_SendRecv(x)";
  event.in = event.out;
  event.splits = "[4096, 4096, 4096, 4096, 4096, 4096, 4096, 4104]";
  CHECK(passed_over(event) == "1 with uneven parts");
  event = {};
  event.duration = 0;
  CHECK(passed_over(event) == "1 without a time");
  event = {};
  event.ranks = "[0, 1, 2, 3, 4, 5, 6, 8]";
  CHECK(passed_over(event) == "1 of groups that lie unevenly on nodes");
  // 65,537 elements of 2 bytes: 131,074 bytes of each rank.
  event = {};
  event.in += 1;
  event.out += 8;
  CHECK(passed_over(event) == "1 with parts that are no multiple of 16 bytes");
}

// Two kernels of one operation; and two on different streams, of which the first has half of its
// time, 25 us, to itself.
TEST_CASE("kernels that share a call or their time are passed over") {
  Event one;
  one.id = 7;
  CHECK(passed_over(Event{}).empty());
  const Json both = events_of({Event{}, one, one});
  std::vector<Json> tables = tables_of_traces({trace_of(document_of(both))}, "t", "s", 8);
  CHECK_THAT(tables[0]["notes"].back().get<std::string>(),
             Equals("kernels passed over: 2 of calls that launched several"));
  Event first;
  first.begin = 5000;
  Event second;
  second.begin = 5025;
  second.stream = 36;
  Event alone;
  alone.begin = 6000;
  alone.duration = 70;
  tables = tables_of({first, second, alone});
  CHECK(tables[0]["rows"][0]["time_us"] == 70.0);
  CHECK_THAT(tables[0]["notes"].back().get<std::string>(),
             Equals("kernels passed over: 2 beside other collectives"));
  // Neighbours whose clocks touch, a quarter of a microsecond of 50: they share nothing.
  second.begin = 5049.75;
  CHECK(tables_of({first, second})[0]["notes"].size() == 2);
}

// A kernel without a record has that of the operation which launched it, by its External id; where
// there is none (batches of sends, coalesced collectives: pytorch/pytorch issues 131462 and 194693,
// mlcommons/chakra issue 178) it is counted.
TEST_CASE("a kernel is explained by the operation that launched it") {
  const Event event;
  Json bare = kernel_of(event, 2049);
  bare["ts"] = 100;
  bare["args"] = {{"External id", 2049}, {"correlation", 5}};
  Json operation = {{"ph", "X"}, {"cat", "cpu_op"}, {"name", "record_param_comms"},
                    {"ts", 1},   {"dur", 3},        {"args", record_of(event)}};
  operation["args"]["External id"] = 2049;
  const Json explained = document_of(Json::array({bare, operation}));
  const std::vector<Json> tables = tables_of_traces({trace_of(explained)}, "t", "s", 8);
  CHECK(tables[0]["rows"] == Json{{{"bytes", 1048576}, {"time_us", 50.0}}});
  CHECK_THAT(mistake(document_of(Json::array({bare}))),
             Equals("trace.json: /traceEvents: no collective can be taken for a measurement: 1 "
                    "that do not say what they do"));
}

TEST_CASE("nodes come from the ranks of a group and the devices of a node") {
  const auto nodes = [](const std::string& ranks, std::int64_t size, const std::string& group = "9",
                        std::optional<std::int64_t> devices_per_node = 8) -> Json {
    Event event;
    event.ranks = ranks;
    event.size = size;
    event.out = event.in * size;
    event.group = group;
    Json document = document_of(events_of({event}), 0, 512);
    document["distributedInfo"]["pg_config"] = {
        {{"pg_name", "listed"}, {"pg_size", 4}, {"ranks", {0, 8, 16, 24}}}};
    const std::vector<Json> tables =
        tables_of_traces({trace_of(document)}, "t", "s", devices_per_node);
    REQUIRE(tables.size() == 1);
    return tables[0].value("nodes", Json());
  };
  CHECK(nodes("[0, 1, 2, 3]", 4) == 1);
  CHECK(nodes("[6, 7, 8, 9]", 4) == 2);
  CHECK(nodes("[5, 13, 21]", 3) == 3);
  CHECK(nodes("[0, 1, 2, 3]", 4, "9", 2) == 2);
  CHECK(nodes("[0, 1, 2, 3]", 4, "9", std::nullopt).is_null());
  // Without a list: that of pg_config, or all ranks of the job.
  CHECK(nodes("", 4, "listed") == 4);
  CHECK(nodes("", 512) == 64);
  CHECK(nodes("", 4).is_null());
  // 30 of 64 with a step of 8: rank 0, 8, ... 504, each on a node of its own.
  std::vector<int> shown;
  for (int i = 0; i < 30; ++i) shown.push_back(8 * i);
  CHECK(nodes(fmt::format("[{}, ...]", fmt::join(shown, ", ")), 64) == 64);
  // Steps that differ do not go on.
  CHECK(nodes("[0, 1, 8, 9, ...]", 64).is_null());
}

// Two ranks: the collectives begin together once the later rank is there. Of instance 1 rank 0
// waits 40 us for rank 1, of instance 2 rank 1 waits 300 us, of instance 3 rank 0 waits 10 us: they
// take 60, 64 and 80 us, the median of which is 64.
TEST_CASE("with all ranks a collective takes what the rank took that waited least") {
  const auto rank = [](int number, const std::vector<double>& durations, bool in_sequence) {
    Json events = Json::array();
    double clock = 1000;
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
      clock += 1000;
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
      event.begin = 1000 * static_cast<double>(i + 1);
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
    return mistake(document);
  };
  CHECK(with("dur", -1) == "trace.json: /traceEvents/1/dur: -1 is no time in microseconds");
  CHECK(with("dur", 1e300) == "trace.json: /traceEvents/1/dur: 1e+300 is no time in microseconds");
  CHECK(with("ts", "soon") == "trace.json: /traceEvents/1/ts: expected a number, found a string");
  CHECK(with("name", 5) == "trace.json: /traceEvents/1/name: expected a string, found a number");
  CHECK(with("args", Json::array()) ==
        "trace.json: /traceEvents/1/args: expected an object, found an array");
  CHECK_THAT(with("In msg nelems", 9007199254740993),
             Contains("/traceEvents/1/args/In msg nelems: 9007199254740993 is out of range"));
  CHECK_THAT(with("In msg nelems", 1.5), Contains("expected an integer, found 1.5"));
  CHECK_THAT(with("Group size", 0), Contains("/args/Group size: 0 is out of range"));
  CHECK_THAT(with("Process Group Ranks", "0-7"),
             Contains("/args/Process Group Ranks: \"0-7\" is no list of numbers"));
  CHECK_THAT(with("Process Group Ranks", "[0, -1]"), Contains("is no list of numbers"));
  CHECK_THAT(with("Process Group Ranks", "[..., 1]"), Contains("is no list of numbers"));
  CHECK(mistake({{"traceEvents", 5}}) ==
        "trace.json: /traceEvents: expected an array, found a number");
  CHECK(mistake({{"traceEvents", {5}}}) ==
        "trace.json: /traceEvents/0: expected an object, found a number");
  CHECK(mistake(document_of(Json::array())) ==
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

}  // namespace shardsim
