#include "plan/plan.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>

#include "plan/stream_order.hpp"

namespace shardsim {
namespace {

// Two layers: gather, then a matmul that reads what was gathered.
Plan small_plan() {
  Plan plan;
  plan.mesh = Mesh({{"fsdp", 4}});
  plan.names = {"layers.{}", "layers.{}.proj"};
  plan.kernels = {{"einsum", KernelClass::matmul, DType::bf16, Flops{8}, Bytes{6}}};
  Collective gather;
  gather.kind = CollectiveKind::all_gather;
  gather.axes = {plan.mesh.whole(0)};
  gather.payload = Bytes{100};
  gather.parts = {{"layers.{}.proj.weight", Bytes{60}}, {"layers.{}.proj.bias", Bytes{40}}};
  plan.collectives = {gather};
  Program program;
  program.name = "all";
  program.streams = {"compute", "fsdp"};
  for (int layer = 0; layer < 2; ++layer) {
    Task collective;
    collective.kind = TaskKind::collective;
    collective.stream = 1;
    collective.layer = layer;
    const TaskId gathered = program.add_task(collective, {});
    Task matmul;
    matmul.name = 1;
    matmul.layer = layer;
    const TaskId used = program.add_task(matmul, {gathered});
    Buffer whole;
    whole.layer = layer;
    whole.category = BufferCategory::gathered_parameters;
    whole.bytes = Bytes{100};
    whole.allocated_by = gathered;
    program.add_buffer(whole, {used});
  }
  plan.programs = {program};
  return plan;
}

TEST_CASE("tasks and buffers keep what they were given") {
  const Plan plan = small_plan();
  const Program& program = plan.programs[0];
  CHECK(plan.task_name(program.tasks[3]) == "layers.1.proj");
  CHECK(plan.buffer_name(program.buffers[1]) == "layers.1");
  REQUIRE(program.after(program.tasks[3]).size() == 1);
  CHECK(program.after(program.tasks[3])[0] == 2);
  CHECK(program.after(program.tasks[2]).empty());
  CHECK(program.freed_after(program.buffers[1])[0] == 3);
  CHECK(executions(plan) == std::vector<std::int64_t>{2});
  CHECK(group_size(plan, plan.collectives[0]) == 4);
}

TEST_CASE("wire bytes of a ring, by the formulas of nccl-tests' PERFORMANCE.md") {
  // n = 8, P = 64 MiB: (n-1)/n P = 56 MiB, twice that for an all-reduce.
  const Bytes payload{64 * MiB};
  CHECK(wire_bytes_per_device(CollectiveKind::all_gather, 8, payload) == Bytes{56 * MiB});
  CHECK(wire_bytes_per_device(CollectiveKind::reduce_scatter, 8, payload) == Bytes{56 * MiB});
  CHECK(wire_bytes_per_device(CollectiveKind::all_to_all, 8, payload) == Bytes{56 * MiB});
  CHECK(wire_bytes_per_device(CollectiveKind::all_reduce, 8, payload) == Bytes{112 * MiB});
  CHECK(wire_bytes_per_device(CollectiveKind::collective_permute, 8, payload) == payload);
  CHECK(wire_bytes_per_device(CollectiveKind::broadcast, 8, payload) == payload);
  // One device sends nothing; 2/3 of 10 is 6.67, rounded up; 4/3 of 10 is 13.3.
  CHECK(wire_bytes_per_device(CollectiveKind::all_reduce, 1, payload) == Bytes{0});
  CHECK(wire_bytes_per_device(CollectiveKind::all_gather, 3, Bytes{10}) == Bytes{7});
  CHECK(wire_bytes_per_device(CollectiveKind::all_reduce, 3, Bytes{10}) == Bytes{14});
}

// What verify says after one change to a good plan.
std::string complaint(const std::function<void(Plan&)>& break_it) {
  Plan plan = small_plan();
  break_it(plan);
  try {
    verify(plan);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("verify names the first violation") {
  CHECK(complaint([](Plan&) {}) == "");
  CHECK(complaint([](Plan& p) { p.programs[0].dependencies[0] = 1; }) ==
        "plan: program all: task 1: depends on task 1");
  CHECK(complaint([](Plan& p) { p.programs[0].dependencies[0] = -1; }) ==
        "plan: program all: task 1: depends on task -1");
  CHECK(complaint([](Plan& p) { p.programs[0].tasks[3].dependency_count = 2; }) ==
        "plan: program all: task 3: dependencies out of range");
  CHECK(complaint([](Plan& p) { p.programs[0].tasks[0].work = 1; }) ==
        "plan: program all: task 0: no collective 1");
  CHECK(complaint([](Plan& p) { p.programs[0].tasks[0].stream = 2; }) ==
        "plan: program all: task 0: no stream 2");
  CHECK(complaint([](Plan& p) { p.programs[0].frees[1] = 1; }) ==
        "plan: program all: buffer 1: allocated by task 2, freed after task 1");
  CHECK(complaint([](Plan& p) { p.collectives[0].payload = Bytes{99}; }) ==
        "plan: collective 0: parts add up to 100 bytes, payload is 99");
  CHECK(complaint([](Plan& p) { p.collectives[0].axes[0].size = 3; }) ==
        "plan: collective 0: a part that does not divide its axis");
  CHECK(complaint([](Plan& p) {
          p.collectives[0].axes = {{0, 1, 4}, {0, 2, 2}};
        }) == "plan: collective 0: axes overlap");
  CHECK(complaint([](Plan& p) {
          p.collectives[0].axes.clear();
          p.collectives[0].groups = {{0, 1}, {1, 2}};
        }) == "plan: collective 0: device 1 twice");
  CHECK(complaint([](Plan& p) { p.names[1] = p.names[0]; }) == "plan: name \"layers.{}\" twice");
  CHECK(complaint([](Plan& p) { p.programs[0].streams[0] = "main"; }) ==
        "plan: program all: the first stream is not \"compute\"");
}

// The header's example.
TEST_CASE("tasks on two streams wait for what their streams have not waited for") {
  Program program;
  StreamOrder order;
  const auto add = [&](std::uint8_t stream, const Ready& ready) {
    Task task;
    task.stream = stream;
    return order.add(program, task, ready);
  };
  const Ready a = add(0, {});
  const Ready b = add(1, a);
  Ready both = a;
  both.join(b);
  (void)add(0, both);
  (void)add(0, b);
  const auto after = [&](std::size_t task) {
    const auto tasks = program.after(program.tasks[task]);
    return std::vector<TaskId>(tasks.begin(), tasks.end());
  };
  CHECK(after(0).empty());
  CHECK(after(1) == std::vector<TaskId>{0});
  CHECK(after(2) == std::vector<TaskId>{1});
  CHECK(after(3).empty());
}

}  // namespace
}  // namespace shardsim
