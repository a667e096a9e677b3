// Traces of one rank, read as measured tables: what a kernel measures, and what measures nothing.
#include "measurements/trace_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trace_events.hpp"

namespace shardsim::trace_tables_test {
namespace {

using Catch::Equals;
using namespace testing;  // NOLINT(google-build-using-namespace)

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
  Json bare = kernel_of(event, first_id);
  bare["ts"] = 100;
  bare["args"] = {{"External id", first_id}, {"correlation", 5}};
  Json operation = {{"ph", "X"}, {"cat", "cpu_op"}, {"name", "record_param_comms"},
                    {"ts", 1},   {"dur", 3},        {"args", record_of(event)}};
  operation["args"]["External id"] = first_id;
  const Json explained = document_of(Json::array({bare, operation}));
  const std::vector<Json> tables = tables_of_traces({trace_of(explained)}, "t", "s", 8);
  CHECK(tables[0]["rows"] == Json{{{"bytes", 1048576}, {"time_us", 50.0}}});
  CHECK_THAT(trace_mistake(document_of(Json::array({bare}))),
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

}  // namespace shardsim::trace_tables_test
