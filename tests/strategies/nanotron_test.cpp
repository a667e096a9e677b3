// What nanotron keeps of gradients, by arithmetic from its sources (frameworks/nanotron.hpp).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

#include "model_step.hpp"

namespace shardsim::nanotron_test {
namespace {

constexpr std::int64_t parameters = 8'030'261'248;  // of Llama-3.1-8B
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct Kept {
  std::int64_t always = 0;   // of gradients, bytes
  std::int64_t of_pass = 0;  // alive when the last backward pass ends
  std::int64_t state = 0;
};

Kept kept_on(std::int64_t devices) {
  Step step = test::usual_step();
  step.optimizer.gradients = DType::f32;
  const Plan plan =
      test::compile_step("llama-3.1-8b", Mesh({{"dp", devices}}), R"({"name": "nanotron"})", step)
          .plan;
  const Program& program = plan.programs.front();
  TaskId last = 0;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    const bool computes = task.kind == TaskKind::kernel && task.stream == 0;
    if (task.phase == Phase::backward && computes) last = static_cast<TaskId>(t);
  }
  Kept kept;
  for (const Buffer& buffer : program.buffers) {
    const auto freed = program.freed_after(buffer);
    if (buffer.category == BufferCategory::optimizer) kept.state += buffer.bytes.count();
    if (buffer.category == BufferCategory::gradients && freed.empty()) {
      kept.always += buffer.bytes.count();
    } else if (plan.names[static_cast<std::size_t>(buffer.name)].ends_with("weight.grad") &&
               !freed.empty() && *std::max_element(freed.begin(), freed.end()) == last) {
      kept.of_pass += buffer.bytes.count();
    }
  }
  return kept;
}

bool is_near(std::int64_t bytes, std::int64_t other) {
  return std::abs(bytes - other) < mebibyte;  // padding
}

}  // namespace

TEST_CASE("nanotron adds gradients up in fp32 behind DDP") {
  const Kept alone = kept_on(1);
  CHECK(is_near(alone.always, 4 * parameters));
  CHECK(is_near(alone.of_pass, 2 * parameters));
  CHECK(is_near(alone.state, 12 * parameters));
  const Kept eight = kept_on(8);
  CHECK(is_near(eight.always, (4 + 2) * parameters));
  CHECK(is_near(eight.of_pass, 2 * parameters));
  CHECK(is_near(eight.state, 12 * parameters / 8));
}

}  // namespace shardsim::nanotron_test
