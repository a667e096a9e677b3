// What nanotron keeps of gradients, by arithmetic from its sources (frameworks/nanotron.hpp).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

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

// Layers of each stage.
std::vector<std::size_t> layers_of(const std::string& model, std::int64_t stages,
                                   const std::string& pipeline) {
  Step step = test::usual_step();
  step.microbatches = 8;
  const std::string strategy = R"({"name": "nanotron", "pipeline": )" + pipeline + "}";
  const Plan plan = test::compile_step(model, Mesh({{"pp", stages}}), strategy, step).plan;
  std::vector<std::size_t> counts;
  for (const Program& program : plan.programs) {
    std::set<std::int32_t> numbers;
    for (const Task& task : program.tasks) {
      const bool computes = task.kind == TaskKind::kernel && task.phase == Phase::forward;
      if (computes && task.layer >= 0) numbers.insert(task.layer);
    }
    counts.push_back(numbers.size());
  }
  return counts;
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

// By hand, nanotron's build_model over its get_block_compute_costs. Llama 2 7B: a head of 0.65
// layers' cost, 16.3 for each of two stages, beyond which the 17th layer is. Llama 3.1 8B, whose
// keys' heads count as queries': a head of 2.16, 8.54 for each of four.
TEST_CASE("nanotron deals layers out by cost, unless they are said") {
  using Counts = std::vector<std::size_t>;
  CHECK(layers_of("llama-2-7b", 2, "{}") == Counts{17, 15});
  CHECK(layers_of("llama-3.1-8b", 4, "{}") == Counts{9, 9, 8, 6});
  CHECK(layers_of("llama-3.1-8b", 4, R"({"layers": [8, 8, 8, 8]})") == Counts{8, 8, 8, 8});
}

}  // namespace shardsim::nanotron_test
