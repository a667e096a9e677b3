// Against real PyTorch: what a rank of a pipeline sends, receives, gathers and reduces in a step,
// in order, and what it holds between steps. Cases: tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_memory.hpp"
#include "torch_records.hpp"

namespace shardsim::torch_pipeline_test {
namespace {

using test::Calls;
using test::golden_files;
using test::golden_folder;
using test::held_bytes;
using test::planned_calls;
using test::recorded_calls;
using test::same_calls;
using test::usual_step;

constexpr double of_peak = 0.03;

struct Rank {
  const Json& record;
  const Json& settings;
  std::size_t number;
};

CompiledStep compile_record(const Rank& rank) {
  Json model = rank.record["model"];
  for (const std::string key :
       {"name", "qk_norm", "attention_bias", "num_local_experts", "num_experts_per_tok"}) {
    model.erase(key);
  }
  const Json& settings = rank.settings;
  std::vector<MeshAxis> axes;
  for (const Json& axis : rank.record["mesh"]) axes.push_back({axis[0], axis[1]});
  const bool shards = settings["dp_shard"] > 1;
  Json strategy = {
      {"name", "fsdp2"},
      {"reshard_after_forward", settings["reshard_after_forward"]},
      {"pipeline", {{"schedule", settings["schedule"]}, {"virtual_stages", settings["v"]}}}};
  if (settings["tp"] > 1) strategy["sequence_parallel"] = settings["sp"];
  Step step = usual_step();
  step.gradient_clipping = true;
  step.batch = rank.record["batch"]["per_rank"].get<std::int64_t>() *
               settings["dp_shard"].get<std::int64_t>();
  step.microbatches = settings["microbatches"];
  step.sequence = rank.record["batch"]["sequence"].get<std::int64_t>();
  // Without FSDP the model itself is in bf16.
  const DType kept = shards ? DType::f32 : DType::bf16;
  step.optimizer.parameters = step.optimizer.gradients = step.optimizer.moments = kept;
  step.optimizer.master.reset();
  if (settings["ac"] == "full") {
    step.rematerialization.policy = Rematerialization::Policy::full;
  }
  const Mesh mesh(axes);
  const ModelConfig config =
      load_model_config(JsonReader(model, {rank.record["id"], "/model"}), "");
  return compile(build_step(config, step), step, mesh,
                 read_strategy(JsonReader(strategy, {rank.record["id"], "/strategy"}), mesh));
}

bool agrees(const Json& record) {
  const std::string id = record["id"];
  const Json& settings = record["strategy"]["settings"];
  const Rank rank{record, settings, settings["pp_rank"].get<std::size_t>()};
  const CompiledStep step = compile_record(rank);
  const Program& program = step.plan.programs.at(rank.number);
  const Calls ours = planned_calls(step.plan, program);
  const Calls theirs = recorded_calls(record);
  bool same = same_calls(ours, theirs, id);
  const Json& memory = record["memory"]["steps"][1]["peak"];
  const auto compare = [&](const char* what, BufferCategory category, std::int64_t theirs) {
    const std::int64_t ours = held_bytes(program, category);
    if (ours == theirs) return;
    std::cout << "  " << id << ": " << what << " " << ours << ", PyTorch " << theirs << "\n";
    same = false;
  };
  compare("parameters", BufferCategory::parameters, memory["sharded_param"]);
  // AdamW's state beside the two moments: one fp32 step count per parameter tensor.
  std::int64_t tensors = 0;
  for (const Json& p : record["params_local"]) tensors += p["count"].get<std::int64_t>();
  compare("moments", BufferCategory::optimizer,
          memory["opt_state"].get<std::int64_t>() - 4 * tensors);
  const double peak = test::replayed_peak(program);
  const double theirs_peak = memory["total"];
  if (std::abs(peak / theirs_peak - 1) > of_peak) {
    std::cout << "  " << id << ": peak " << peak << ", PyTorch " << theirs_peak << " ("
              << 100 * (peak / theirs_peak - 1) << " %)\n";
    same = false;
  }
  return same;
}

}  // namespace

TEST_CASE("Ranks of pipelines do what PyTorch's do, in order", "[golden]") {
  const std::filesystem::path folder = golden_folder("torch/pipeline");
  const std::vector<std::string> files = golden_files(folder, ".json");
  if (!std::filesystem::exists(folder)) return;
  CHECK(!files.empty());
  for (const std::string& file : files) {
    const bool passed = agrees(load_json(file));
    std::cout << std::filesystem::path(file).filename().string() << ": "
              << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
  }
}

}  // namespace shardsim::torch_pipeline_test
