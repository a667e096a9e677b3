// Products that Megatron-Core has as one, and those in pieces beside collectives.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "model_step.hpp"

namespace shardsim {
namespace {

// Llama 3.1 8B: 32 query head_width, 8 for keys and values, of 128.
constexpr std::int64_t row_count = 4096;  // tokens
constexpr std::int64_t hidden = 4096;
constexpr std::int64_t width = 14336;
constexpr std::int64_t head_width = 4096 + 2 * 1024;

Plan plan_over(const std::string& strategy, std::int64_t tp, DType compute = DType::bf16) {
  Step step;
  step.batch = 1;
  step.sequence = row_count;
  step.precision.compute = compute;
  return test::compile_step("llama-3.1-8b", Mesh({{"dp", 1}, {"tp", tp}}), strategy.c_str(), step)
      .plan;
}

std::string megatron(bool overlaps) {
  return std::string(R"({"name": "megatron", "sequence_parallel": true, "overlap": {"tp": )") +
         (overlaps ? "true}}" : "false}}");
}

// Of layer 3 in a phase, in the order of their issue.
std::vector<const Task*> tasks_of(const Plan& plan, Phase phase, TaskKind kind) {
  std::vector<const Task*> tasks;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.layer == 3 && task.phase == phase && task.kind == kind) tasks.push_back(&task);
  }
  return tasks;
}

std::vector<Product> products_of(const Plan& plan, Phase phase) {
  std::vector<Product> products;
  for (const Task* task : tasks_of(plan, phase, TaskKind::kernel)) {
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task->work)];
    if (kernel.kernel_class == KernelClass::matmul && kernel.launches > 0) {
      products.push_back(*kernel.product);
    }
  }
  return products;
}

double flops_of(const Plan& plan) {
  double flops = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind == TaskKind::kernel) {
      flops += plan.kernels[static_cast<std::size_t>(task.work)].flops.count();
    }
  }
  return flops;
}

std::int64_t payload_of(const Plan& plan, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& collective = plan.collectives[static_cast<std::size_t>(task.work)];
    if (collective.kind == kind) sum += collective.payload.count();
  }
  return sum;
}

bool waits_for(const Plan& plan, const Task& task, const Task& other) {
  const auto id = static_cast<TaskId>(&other - plan.programs[0].tasks.data());
  const auto after = plan.programs[0].after(task);
  return std::find(after.begin(), after.end(), id) != after.end();
}

}  // namespace

// linear_qkv, linear_proj, linear_fc1, linear_fc2: four products where there are seven weights, and
// eight in backward.
TEST_CASE(
    "queries, keys and values are one product in Megatron, and both halves of a gated layer") {
  const Plan plan = plan_over(megatron(false), 1);
  CHECK(products_of(plan, Phase::forward) ==
        std::vector<Product>{{1, row_count, head_width, hidden},
                             {1, row_count, hidden, hidden},
                             {1, row_count, 2 * width, hidden},
                             {1, row_count, hidden, width}});
  const std::vector<Product> backward = products_of(plan, Phase::backward);
  REQUIRE(backward.size() == 8);
  const auto has = [&](const Product& one) {
    return std::count(backward.begin(), backward.end(), one) == 1;
  };
  CHECK(has({1, row_count, hidden, head_width}));
  CHECK(has({1, row_count, hidden, 2 * width}));
  CHECK(has({1, head_width, hidden, row_count}));
  CHECK(has({1, 2 * width, hidden, row_count}));
}

// get_query_key_value_tensors of megatron/core/transformer/attention.py: values are copied, and
// queries where several share a key; gradients of all are put side by side. Numbers are of 2 bytes,
// read and written.
TEST_CASE("what joint queries, keys and values copy") {
  const Plan plan = plan_over(megatron(false), 1);
  const auto moved_by = [&](Phase phase, std::string_view op) {
    std::set<std::int64_t> bytes;
    for (const Task* task : tasks_of(plan, phase, TaskKind::kernel)) {
      const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task->work)];
      if (kernel.op == op) bytes.insert(kernel.bytes.count());
    }
    return bytes;
  };
  const std::int64_t keys = (head_width - hidden) / 2;
  CHECK(moved_by(Phase::forward, "copy") ==
        std::set<std::int64_t>{2 * 2 * row_count * (hidden + keys)});
  CHECK(moved_by(Phase::backward, "concatenate") ==
        std::set<std::int64_t>{2 * 2 * row_count * head_width});
}

TEST_CASE("joint products do the work of their parts") {
  const auto plan_with = [](const char* fused) {
    return plan_over(
        R"({"name": "ddp", "kernels": {"base": "eager", "fused": [)" + std::string(fused) + "]}}",
        1);
  };
  const double products = flops_of(plan_with(R"("qkv")"));
  // Three sums of as many numbers as the hidden state has are not there, of 32 layers.
  CHECK(products == Approx(flops_of(plan_with("")) - 32.0 * 3 * row_count * hidden).epsilon(1e-12));
}

// A product of [m, k] x [k, n] over 4 devices: three quarters of the rows beside the gather of its
// input, a quarter behind; a quarter before the scatter of its sums begins.
TEST_CASE("products go in pieces beside the collectives next to them") {
  const Plan apart = plan_over(megatron(false), 4);
  const Plan beside = plan_over(megatron(true), 4);
  CHECK(flops_of(apart) == Approx(flops_of(beside)).epsilon(1e-12));
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    CHECK(payload_of(apart, kind) == payload_of(beside, kind));
  }
  CHECK(products_of(beside, Phase::forward) ==
        std::vector<Product>{{1, row_count * 3 / 4, head_width / 4, hidden},
                             {1, row_count / 4, head_width / 4, hidden},
                             {1, row_count / 4, hidden, hidden / 4},
                             {1, row_count * 3 / 4, hidden, hidden / 4},
                             {1, row_count * 3 / 4, 2 * width / 4, hidden},
                             {1, row_count / 4, 2 * width / 4, hidden},
                             {1, row_count / 4, hidden, width / 4},
                             {1, row_count * 3 / 4, hidden, width / 4}});
  std::vector<const Task*> products;
  for (const Task* task : tasks_of(beside, Phase::forward, TaskKind::kernel)) {
    const Kernel& kernel = beside.kernels[static_cast<std::size_t>(task->work)];
    if (kernel.kernel_class == KernelClass::matmul && kernel.launches > 0) products.push_back(task);
  }
  const auto collectives = tasks_of(beside, Phase::forward, TaskKind::collective);
  REQUIRE(collectives.size() == 6);  // gather, two scatters, and the same of the second half
  CHECK_FALSE(waits_for(beside, *products[0], *collectives[0]));
  CHECK(waits_for(beside, *products[1], *collectives[0]));
  CHECK(waits_for(beside, *collectives[1], *products[2]));
  CHECK_FALSE(waits_for(beside, *products[3], *collectives[1]));
  CHECK(waits_for(beside, *collectives[2], *products[3]));
}

// Transformer Engine: a byte a number travels before products of 8 bits, two behind them.
TEST_CASE("what is gathered for products of 8 bits travels in 8 bits") {
  const auto gathered = [](DType compute) {
    const Plan plan = plan_over(megatron(true), 4, compute);
    const auto gathers = tasks_of(plan, Phase::forward, TaskKind::collective);
    return plan.collectives[static_cast<std::size_t>(gathers.front()->work)].payload.count();
  };
  CHECK(gathered(DType::bf16) == 2 * row_count * hidden);
  CHECK(gathered(DType::f8) == row_count * hidden);
}

// XLA: two pieces of each scatter, which carry what o_proj and down_proj sum over on all devices;
// of the gathers, and over 2 devices, none.
TEST_CASE("scatters that XLA may window say what their products sum over") {
  const auto contracted = [](std::int64_t tp) {
    const Plan plan = plan_over(R"({"name": "xla"})", tp);
    std::multiset<std::pair<CollectiveKind, std::int64_t>> all;
    for (const Task* task : tasks_of(plan, Phase::forward, TaskKind::collective)) {
      const Collective& collective = plan.collectives[static_cast<std::size_t>(task->work)];
      if (collective.contracted > 0) all.emplace(collective.kind, collective.contracted);
    }
    return all;
  };
  constexpr CollectiveKind scatter = CollectiveKind::reduce_scatter;
  CHECK(contracted(4) ==
        std::multiset<std::pair<CollectiveKind, std::int64_t>>{
            {scatter, hidden}, {scatter, hidden}, {scatter, width}, {scatter, width}});
  CHECK(contracted(2).empty());
}

}  // namespace shardsim
