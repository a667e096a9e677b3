// Traces of the PyTorch profiler, made up. The form of an event is that of pytorch/kineto
// libkineto/src/output_json.cpp @002d991 (handleActivity); names, elements in and out, and split
// sizes are those of ProcessGroupNCCL.cpp; a list of more than 30 members ends in "..."
// (torch/csrc/profiler/util.cpp, format_list).
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../base/mistake.hpp"
#include "base/json.hpp"
#include "measurements/trace_tables.hpp"

namespace shardsim::testing {

inline constexpr const char* all_gather_kernel =
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
inline constexpr const char* all_reduce_kernel =
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

// Where made-up traces begin, in microseconds, and the first id of an operation: any will do.
inline constexpr double trace_begin = 1000;
inline constexpr int first_id = 2049;

// An all-gather of 1 MiB, 128 KiB of each of 8 ranks, by default.
struct Event {
  std::string kernel = all_gather_kernel;
  std::string name = "_allgather_base";
  std::int64_t in = 64 * KiB;  // elements of two bytes
  std::int64_t out = 8 * in;
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

inline Json record_of(const Event& event) {
  return {{"Collective name", event.name},     {"dtype", event.dtype},
          {"In msg nelems", event.in},         {"Out msg nelems", event.out},
          {"Group size", event.size},          {"In split size", event.splits},
          {"Out split size", event.splits},    {"Process Group Name", event.group},
          {"Process Group Ranks", event.ranks}};
}

inline Json kernel_of(const Event& event, int id) {
  Json args = record_of(event);
  args["External id"] = event.id > 0 ? event.id : id;
  args["stream"] = event.stream;
  return {{"ph", "X"},           {"cat", "kernel"},   {"name", event.kernel},  {"pid", 0},
          {"tid", event.stream}, {"ts", event.begin}, {"dur", event.duration}, {"args", args}};
}

inline Json document_of(const Json& events, int rank = 0, int world = 8) {
  return {{"schemaVersion", 1},
          {"distributedInfo", {{"backend", "nccl"}, {"rank", rank}, {"world_size", world}}},
          {"traceEvents", events}};
}

// Kernels of one stream: where no begin is given they follow each other.
inline Json events_of(const std::vector<Event>& events) {
  Json list = Json::array();
  double clock = trace_begin;
  int id = first_id;
  for (Event event : events) {
    if (event.begin == 0) event.begin = clock;
    clock = event.begin + event.duration + 1;
    list.push_back(kernel_of(event, id++));
  }
  return list;
}

inline RankTrace trace_of(const Json& document, const std::string& file = "trace.json") {
  return read_trace(document.dump(1), file);
}

inline std::vector<Json> tables_of(const std::vector<Event>& events,
                                   std::optional<std::int64_t> devices_per_node = 8) {
  return tables_of_traces({trace_of(document_of(events_of(events)))}, "t", "s", devices_per_node);
}

// Of one kernel beside a plain all-gather: what the notes say is passed over.
inline std::string passed_over(const Event& event) {
  const std::vector<Json> tables = tables_of({Event{}, event});
  REQUIRE(tables.size() == 1);
  const auto last = tables[0]["notes"].back().get<std::string>();
  constexpr std::string_view heading = "kernels passed over: ";
  return last.starts_with(heading) ? last.substr(heading.size()) : "";
}

inline std::string trace_mistake(const Json& document) {
  return mistake_of([&] { return tables_of_traces({trace_of(document)}, "t", "s", 8); });
}

}  // namespace shardsim::testing
