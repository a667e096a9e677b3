// Where PyTorch's DistributedDataParallel keeps gradients; its records are compared in
// torch_golden_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>

#include "model_step.hpp"

namespace shardsim::ddp_test {
namespace {

using namespace shardsim::test;

// GPT-2 of 124,439,808 parameters in fp32.
constexpr std::int64_t parameters = 4 * 124439808LL;

Plan plan_of(const Json& keys, const Mesh& mesh, std::int64_t microbatches = 1) {
  Json strategy = {{"name", "ddp"}};
  strategy.update(keys);
  Step step{.batch = 8 * microbatches, .sequence = 128, .microbatches = microbatches};
  step.precision.compute = step.optimizer.parameters = step.optimizer.gradients = DType::f32;
  step.optimizer.master.reset();
  step.gradient_clipping = true;
  return compile_step("gpt2", mesh, strategy.dump(), step).plan;
}

// Bytes of gradients that are there when the optimizer begins.
std::int64_t gradients(const Plan& plan) {
  const Program& program = plan.programs.front();
  const auto update = std::find_if(program.tasks.begin(), program.tasks.end(),
                                   [](const Task& task) { return task.phase == Phase::optimizer; });
  const auto begin = static_cast<TaskId>(update - program.tasks.begin());
  std::int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    const auto last = program.freed_after(buffer);
    const bool stays = last.empty() || *std::max_element(last.begin(), last.end()) >= begin;
    if (buffer.category == BufferCategory::gradients && buffer.allocated_by < begin && stays) {
      bytes += buffer.bytes.count();
    }
  }
  return bytes;
}

// Bytes that copies move of what their names end with.
std::int64_t copied(const Plan& plan, const std::string& end) {
  std::int64_t bytes = 0;
  for (const Task& task : plan.programs.front().tasks) {
    if (task.kind == TaskKind::kernel && plan.task_name(task).ends_with(end)) {
      bytes += plan.kernels[static_cast<std::size_t>(task.work)].bytes.count();
    }
  }
  return bytes;
}

const Mesh four({{"dp", 4}});

}  // namespace

TEST_CASE("DDP's gradients lie by themselves beside its buckets, unless they are views") {
  for (const std::int64_t microbatches : {1, 3}) {
    const Plan apart = plan_of(Json::object(), four, microbatches);
    CHECK(gradients(apart) == 2 * parameters);
    CHECK(copied(apart, "copied in") == 2 * parameters);  // read and written once
    CHECK(copied(apart, "copied out") == 2 * parameters);
    const Plan views = plan_of({{"gradient_as_bucket_view", true}}, four, microbatches);
    CHECK(gradients(views) == parameters);
    CHECK(copied(views, "copied in") == 2 * parameters);
    CHECK(copied(views, "copied out") == 0);
    CHECK(collectives(views) == collectives(apart));
  }
}

TEST_CASE("One device reduces nothing, and copies nothing out") {
  const Plan plan = plan_of(Json::object(), Mesh({{"dp", 1}}));
  CHECK(collectives(plan).empty());
  CHECK(copied(plan, "copied out") == 0);
}

// The head's gradient is a transposed view, beside which that of the look-ups is added.
TEST_CASE("A tied table's two gradients are added up in a third table") {
  const std::int64_t table = 4 * 50257LL * 768;
  const Plan plan = plan_of(Json::object(), four);
  const Program& program = plan.programs.front();
  const auto add = std::find_if(program.tasks.rbegin(), program.tasks.rend(), [&](const Task& t) {
    const bool is_kernel = t.kind == TaskKind::kernel && t.phase == Phase::backward;
    return is_kernel && plan.kernels[static_cast<std::size_t>(t.work)].op == "add";
  });
  REQUIRE(add != program.tasks.rend());
  const auto id = static_cast<TaskId>(program.tasks.rend() - add) - 1;
  CHECK(std::count_if(program.buffers.begin(), program.buffers.end(), [&](const Buffer& buffer) {
          const auto last = program.freed_after(buffer);
          const bool lives = last.empty() || *std::max_element(last.begin(), last.end()) >= id;
          return buffer.category == BufferCategory::gradients && buffer.bytes.count() == table &&
                 buffer.allocated_by <= id && buffer.allocated_by != before_the_step && lives;
        }) == 3);
}

}  // namespace shardsim::ddp_test
