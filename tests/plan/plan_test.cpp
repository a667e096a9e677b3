#include "plan/plan.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

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
  Program buffers;
  CHECK(buffers.add_buffer({}, {}) == 0);
  CHECK(buffers.add_buffer({}, {}) == 1);
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

// Two of everything that verify looks at, so that a first and a last one can be broken.
Plan plan_of_two() {
  Plan plan = small_plan();
  plan.kernels.push_back(plan.kernels[0]);
  plan.kernels[0].product = plan.kernels[1].product = {1, 2, 3, 4};
  plan.collectives.push_back(plan.collectives[0]);
  plan.transfers = {{0, true, DType::bf16, Bytes{8}, ""}, {1, false, DType::bf16, Bytes{8}, ""}};
  plan.programs[0].devices = {0, 1, 2, 3};
  plan.programs.push_back(plan.programs[0]);
  plan.programs[1].name = "rest";
  return plan;
}

// What verify says after one change to a good plan.
std::string complaint(const std::function<void(Plan&)>& break_it) {
  Plan plan = plan_of_two();
  break_it(plan);
  try {
    verify(plan);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

template <class Thing>
struct Break {
  std::string says;
  std::function<void(Thing&)> change;
};

// Each, of either of the two things in the plan's list.
template <class Thing>
void check_breaks(const std::string& what, std::vector<Thing> Plan::*list,
                  const std::vector<Break<Thing>>& breaks) {
  for (const auto& [says, change] : breaks) {
    for (const std::size_t i : {0U, 1U}) {
      CHECK(complaint([&](Plan& p) { change((p.*list)[i]); }) ==
            "plan: " + what + " " + std::to_string(i) + ": " + says);
    }
  }
}

// Each, of these things in the list of either program.
template <class Thing>
void check_breaks(const std::string& what, std::vector<Thing> Program::*list,
                  const std::vector<std::size_t>& things, const std::vector<Break<Thing>>& breaks) {
  for (const auto& [says, change] : breaks) {
    for (const std::size_t program : {0U, 1U}) {
      for (const std::size_t i : things) {
        CHECK(complaint([&](Plan& p) { change((p.programs[program].*list)[i]); }) ==
              "plan: program " + std::string(program == 0 ? "all" : "rest") + ": " + what + " " +
                  std::to_string(i) + ": " + says);
      }
    }
  }
}

TEST_CASE("a good plan passes") {
  CHECK(complaint([](Plan&) {}) == "");
  // Two digits of one axis, in either order, are distinct.
  CHECK(complaint([](Plan& p) { p.collectives[0].axes = {{0, 1, 2}, {0, 2, 2}}; }) == "");
  CHECK(complaint([](Plan& p) { p.collectives[0].axes = {{0, 2, 2}, {0, 1, 2}}; }) == "");
  CHECK(complaint([](Plan& p) { p.collectives[0].parts.clear(); }) == "");
}

TEST_CASE("verify looks at every kernel") {
  const std::vector<Break<Kernel>> breaks = {
      {"impossible flops", [](Kernel& k) { k.flops = Flops(-1); }},
      {"impossible flops", [](Kernel& k) { k.flops = Flops(std::nan("")); }},
      {"impossible flops", [](Kernel& k) { k.flops = Flops(HUGE_VAL); }},
      {"negative bytes", [](Kernel& k) { k.bytes = Bytes(-1); }},
      {"a product of nothing", [](Kernel& k) { k.product->batch = 0; }},
      {"a product of nothing", [](Kernel& k) { k.product->m = 0; }},
      {"a product of nothing", [](Kernel& k) { k.product->n = 0; }},
      {"a product of nothing", [](Kernel& k) { k.product->k = 0; }}};
  check_breaks("kernel", &Plan::kernels, breaks);
}

TEST_CASE("verify looks at every collective") {
  using Axes = std::vector<AxisRef>;
  const auto grouped = [](std::vector<std::vector<std::int64_t>> groups) {
    return [groups = std::move(groups)](Collective& c) {
      c.axes.clear();
      c.groups = groups;
    };
  };
  const auto over = [](Axes axes) {
    return [axes = std::move(axes)](Collective& c) { c.axes = axes; };
  };
  const auto permuting = [](std::int64_t source, std::int64_t target) {
    return [=](Collective& c) {
      c.kind = CollectiveKind::collective_permute;
      c.source_targets = {{0, 1}, {source, target}};
    };
  };
  const auto in_parts = [](std::int64_t first, std::int64_t second) {
    return [=](Collective& c) {
      c.parts[0].payload = Bytes(first);
      c.parts[1].payload = Bytes(second);
    };
  };
  const std::vector<Break<Collective>> breaks = {
      {"negative payload",
       [](Collective& c) {
         c.payload = Bytes(-1);
         c.parts.clear();
       }},
      {"both axes and groups",
       [](Collective& c) {
         c.groups = {{0, 1, 2, 3}};
       }},
      {"neither axes nor groups", over({})},
      {"no axis 1", over({{1, 1, 4}})},
      {"no axis -1", over({{-1, 1, 4}})},
      {"a part that does not divide its axis", over({{0, 1, 3}})},
      {"a part that does not divide its axis", over({{0, 3, 1}})},
      {"a part that does not divide its axis", over({{0, 2, 4}})},
      {"a part that does not divide its axis", over({{0, 0, 4}})},
      {"a part that does not divide its axis", over({{0, 1, 0}})},
      {"axes overlap", over({{0, 1, 4}, {0, 2, 2}})},
      {"axes overlap", over({{0, 2, 2}, {0, 1, 4}})},
      {"axes overlap", over({{0, 1, 2}, {0, 1, 2}})},
      {"groups of unequal size", grouped({{0, 1}, {2}})},
      {"groups of unequal size", grouped({{}})},
      {"no device 4", grouped({{0, 1}, {2, 4}})},
      {"no device -1", grouped({{0, -1}})},
      {"device 1 twice", grouped({{0, 1}, {1, 2}})},
      {"pairs of no permute",
       [](Collective& c) {
         c.source_targets = {{0, 1}};
       }},
      {"no pair 4 -> 0", permuting(4, 0)},
      {"no pair -1 -> 0", permuting(-1, 0)},
      {"no pair 0 -> 4", permuting(0, 4)},
      {"no pair 0 -> -1", permuting(0, -1)},
      {"negative payload of a part", in_parts(101, -1)},
      {"negative payload of a part", in_parts(-1, 101)},
      {"parts add up to 100 bytes, payload is 99", [](Collective& c) { c.payload = Bytes(99); }},
      {"parts add up to 61 bytes, payload is 100", in_parts(60, 1)},
      {"parts add up to 41 bytes, payload is 100", in_parts(1, 40)}};
  check_breaks("collective", &Plan::collectives, breaks);
}

TEST_CASE("verify looks at every transfer") {
  const std::vector<Break<Transfer>> breaks = {
      {"no program 2", [](Transfer& t) { t.peer_program = 2; }},
      {"no program -1", [](Transfer& t) { t.peer_program = -1; }},
      {"negative payload", [](Transfer& t) { t.payload = Bytes(-1); }},
      {"no channel -1", [](Transfer& t) { t.channel = -1; }},
      {"no channel " + std::to_string(most_channels),
       [](Transfer& t) { t.channel = most_channels; }}};
  check_breaks("transfer", &Plan::transfers, breaks);
}

TEST_CASE("verify looks at every task of every program") {
  const auto works_on = [](TaskKind kind, std::int32_t work) {
    return [=](Task& t) {
      t.kind = kind;
      t.work = work;
    };
  };
  const std::vector<Break<Task>> breaks = {
      {"no stream 2", [](Task& t) { t.stream = 2; }},
      {"no name 2", [](Task& t) { t.name = 2; }},
      {"no name -1", [](Task& t) { t.name = -1; }},
      {"negative layer or microbatch", [](Task& t) { t.layer = -2; }},
      {"negative layer or microbatch", [](Task& t) { t.microbatch = -1; }},
      {"no kernel 2", works_on(TaskKind::kernel, 2)},
      {"no kernel -1", works_on(TaskKind::kernel, -1)},
      {"no collective 2", works_on(TaskKind::collective, 2)},
      {"no transfer 2", works_on(TaskKind::transfer, 2)},
      {"no to-host 2", works_on(TaskKind::to_host, 2)},
      {"dependencies out of range", [](Task& t) { t.first_dependency = 3; }},
      {"dependencies out of range", [](Task& t) { t.dependency_count = 3; }}};
  check_breaks("task", &Program::tasks, {0, 3}, breaks);
  // Of the two dependencies 1 -> 0 and 3 -> 2.
  CHECK(complaint([](Plan& p) { p.programs[0].dependencies[0] = 1; }) ==
        "plan: program all: task 1: depends on task 1");
  CHECK(complaint([](Plan& p) { p.programs[0].dependencies[0] = -1; }) ==
        "plan: program all: task 1: depends on task -1");
  CHECK(complaint([](Plan& p) { p.programs[1].dependencies[1] = 4; }) ==
        "plan: program rest: task 3: depends on task 4");
}

TEST_CASE("verify looks at every buffer of every program") {
  const std::vector<Break<Buffer>> breaks = {
      {"no name 2", [](Buffer& b) { b.name = 2; }},
      {"no name -1", [](Buffer& b) { b.name = -1; }},
      {"negative layer or size", [](Buffer& b) { b.layer = -2; }},
      {"negative layer or size", [](Buffer& b) { b.bytes = Bytes(-1); }},
      {"allocated by task 4", [](Buffer& b) { b.allocated_by = 4; }},
      {"allocated by task -2", [](Buffer& b) { b.allocated_by = -2; }},
      {"frees out of range", [](Buffer& b) { b.first_free = 3; }},
      {"frees out of range", [](Buffer& b) { b.free_count = 3; }}};
  check_breaks("buffer", &Program::buffers, {0, 1}, breaks);
  CHECK(complaint([](Plan& p) { p.programs[0].frees[1] = 1; }) ==
        "plan: program all: buffer 1 (layers.{}): allocated by task 2, freed after task 1");
  CHECK(complaint([](Plan& p) { p.programs[1].frees[0] = 4; }) ==
        "plan: program rest: buffer 0 (layers.{}): allocated by task 0, freed after task 4");
}

TEST_CASE("verify looks at names, programs and their devices") {
  CHECK(complaint([](Plan& p) { p.names[1] = p.names[0]; }) == "plan: name \"layers.{}\" twice");
  CHECK(complaint([](Plan& p) { p.programs[1].streams[0] = "main"; }) ==
        "plan: program rest: the first stream is not \"compute\"");
  CHECK(complaint([](Plan& p) { p.programs[0].streams.clear(); }) ==
        "plan: program all: the first stream is not \"compute\"");
  CHECK(complaint([](Plan& p) { p.programs[1].devices[3] = 4; }) ==
        "plan: program rest: no device 4");
  CHECK(complaint([](Plan& p) { p.programs[0].devices[0] = -1; }) ==
        "plan: program all: no device -1");
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
