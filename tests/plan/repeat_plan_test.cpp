// Steps one after another, of one program and of stages.
#include "plan/repeat_plan.hpp"

#include <catch2/catch.hpp>

namespace shardsim {
namespace {

// A stage of two microbatches, each a kernel of its own; the kernel writes 8 bytes.
Program stage(const std::string& name, std::int64_t device) {
  Program program;
  program.name = name;
  program.devices = {device};
  program.streams = {"compute", "activation sends", "activation receives"};
  for (std::int32_t microbatch = 0; microbatch < 2; ++microbatch) {
    Task kernel;
    kernel.microbatch = microbatch;
    const TaskId id = program.add_task(kernel, {});
    Buffer result;
    result.bytes = Bytes(8);
    result.allocated_by = id;
    (void)program.add_buffer(result, {id});
  }
  return program;
}

Plan plan_of_stages(std::int64_t stages) {
  Plan plan;
  plan.mesh = Mesh({{"pp", stages}});
  plan.names = {"next_token"};
  plan.kernels.push_back({"top_k", KernelClass::memory, DType::bf16, Flops(0), Bytes(8)});
  for (std::int64_t s = 0; s < stages; ++s) {
    plan.programs.push_back(stage("stage " + std::to_string(s), s));
  }
  return plan;
}

}  // namespace

TEST_CASE("a step of one program begins when the one before it is through") {
  const Plan plan = followed_by(plan_of_stages(1), plan_of_stages(1), 2);
  verify(plan);
  const Program& program = plan.programs[0];
  REQUIRE(program.tasks.size() == 6);
  CHECK(plan.transfers.empty());
  for (const std::size_t second : {2U, 3U}) {
    CHECK(program.after(program.tasks[second]).front() == 1);
  }
}

// Each microbatch of a further step waits in the first stage for what the last one ended it with;
// in the others nothing more than the step before is waited for.
TEST_CASE("of stages the last one hands each microbatch's tokens to the first") {
  const Plan plan = followed_by(plan_of_stages(3), plan_of_stages(3), 2);
  verify(plan);
  const Program& first = plan.programs.front();
  const Program& last = plan.programs.back();
  REQUIRE(first.tasks.size() == 2 + 2 * (2 + 2));
  REQUIRE(last.tasks.size() == first.tasks.size());
  CHECK(plan.programs[1].tasks.size() == 2 * 3);
  for (std::size_t step = 1; step <= 2; ++step) {
    const std::size_t messages = 2 + 4 * (step - 1);
    for (std::size_t m = 0; m < 2; ++m) {
      const Task& receive = first.tasks[messages + m];
      REQUIRE(receive.kind == TaskKind::transfer);
      const Transfer& received = plan.transfers[static_cast<std::size_t>(receive.work)];
      CHECK_FALSE(received.sends);
      CHECK(received.peer_program == 2);
      CHECK(received.payload == Bytes(8));
      const Task& next = first.tasks[messages + 2 + m];
      CHECK(next.microbatch == static_cast<std::int32_t>(m));
      CHECK(first.after(next).front() == static_cast<TaskId>(messages + m));

      const Task& send = last.tasks[messages + m];
      REQUIRE(send.kind == TaskKind::transfer);
      CHECK(plan.transfers[static_cast<std::size_t>(send.work)].sends);
      CHECK(last.after(send).front() == static_cast<TaskId>(messages - 2 + m));
    }
  }
}

}  // namespace shardsim
