// Rows that travel beside the work of another microbatch: the order of Megatron-Core's
// TransformerLayerSchedulePlan.run (model_chunk_schedule_plan.py, core 0.16.1).
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"

namespace shardsim::exchange_overlap_test {
namespace {

const Mesh mesh({{"dp", 2}});

// Two layers of Mixtral 8x7B in two microbatches.
Plan plan_with(const Json& experts) {
  const Json json = {{"name", "megatron"},
                     {"experts", {{"parallel", 2}, {"dispatch", "deepep"}}},
                     {"overlap", {{"experts", experts}}}};
  const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), mesh);
  Step step{.batch = 4, .sequence = 2048, .microbatches = 2};
  step.exchange = strategy.experts->exchange;
  const Json config = {{"base", "mixtral-8x7b"}, {"num_hidden_layers", 2}};
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
  return compile(workload, step, mesh, strategy).plan;
}

std::vector<const Task*> exchanges(const Plan& plan) {
  std::vector<const Task*> found;
  for (const Task& task : plan.programs[0].tasks) {
    const bool is_collective = task.kind == TaskKind::collective;
    if (is_collective &&
        plan.collectives[static_cast<std::size_t>(task.work)].kind == CollectiveKind::all_to_all) {
      found.push_back(&task);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("Layers of a forward and a backward pass exchange rows in turn") {
  const Plan plan = plan_with(true);
  std::string order;
  for (const Task* task : exchanges(plan)) {
    const bool is_forward = task->phase == Phase::forward;
    order += (is_forward ? "F" : "B") + std::to_string(task->microbatch) + "." +
             std::to_string(task->layer) + " ";
    CHECK(plan.programs[0].streams[task->stream] == "exchanges of rows");
  }
  // The first forward alone; combine of B, dispatch of F, dispatch of B, combine of F for each pair
  // of layers; the last backward alone.
  CHECK(order ==
        "F0.0 F0.0 F0.1 F0.1 "
        "B0.1 F1.0 B0.1 F1.0 B0.0 F1.1 B0.0 F1.1 "
        "B1.1 B1.1 B1.0 B1.0 ");
}

// With delayed weight gradients the rows that backward sends do not wait for those of its experts:
// of 5 products of a Mixtral expert's backward (down: 2, gate and up as one: 2, and the recomputed
// none) the two of weights come behind.
TEST_CASE("Delayed gradients of weights come behind the rows that backward sends") {
  const auto weights_before_rows = [](const Plan& plan) {
    int products = 0;
    bool in_experts = false;
    for (const Task& task : plan.programs[0].tasks) {
      const bool is_first =
          task.phase == Phase::backward && task.microbatch == 0 && task.layer == 1;
      if (!is_first) continue;
      if (task.kind == TaskKind::collective) {
        if (in_experts) return products;
        in_experts = plan.collectives[static_cast<std::size_t>(task.work)].kind ==
                     CollectiveKind::all_to_all;
      } else if (task.kind == TaskKind::kernel && in_experts) {
        const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
        products += kernel.op == "grouped_matmul" && kernel.flops.count() > 0 ? 1 : 0;
      }
    }
    return -1;
  };
  CHECK(weights_before_rows(plan_with(true)) == 4);
  CHECK(weights_before_rows(plan_with("delay_wgrad")) == 2);
}

// defer_embedding_wgrad_compute: the products of the first microbatches' gradients come behind all
// other backward work of the last rank.
TEST_CASE("Gradients of the head's weights wait until the last rank is through") {
  const Mesh stages({{"pp", 2}});
  for (const auto& [said, late] :
       std::vector<std::pair<Json, int>>{{false, 0}, {"deferred", 4}, {{{"microbatches", 3}}, 3}}) {
    const Json json = {{"name", "megatron"}, {"overlap", {{"embedding_gradient", said}}}};
    const Step step{.batch = 4, .sequence = 512, .microbatches = 4};
    const Json config = {{"base", "llama-3.1-8b"}, {"num_hidden_layers", 2}};
    const Workload workload =
        build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
    const Plan plan =
        compile(workload, step, stages, read_strategy(JsonReader(json, {"strategy", ""}), stages))
            .plan;
    std::vector<std::string> backward;
    for (const Task& task : plan.programs[1].tasks) {
      if (task.phase != Phase::backward || task.kind != TaskKind::kernel) continue;
      backward.push_back(plan.names[static_cast<std::size_t>(task.name)]);
    }
    int at_the_end = 0;
    while (backward[backward.size() - 1 - static_cast<std::size_t>(at_the_end)] == "lm_head") {
      ++at_the_end;
    }
    CHECK(at_the_end == late);
    CHECK(std::count(backward.begin(), backward.end(), "lm_head") == 8);  // 2 products each
  }
}

}  // namespace shardsim::exchange_overlap_test
