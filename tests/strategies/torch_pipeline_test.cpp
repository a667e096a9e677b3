// Against real PyTorch: what a rank of a pipeline sends, receives, gathers and reduces in a step,
// in order, and what it holds between steps. Cases: tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_records.hpp"

namespace shardsim::torch_pipeline_test {
namespace {

using test::Calls;
using test::compile_step;
using test::golden_files;
using test::golden_folder;
using test::held_bytes;
using test::planned_calls;
using test::recorded_calls;
using test::same_calls;
using test::usual_step;

struct Rank {
  const Json& record;
  const Json& settings;
  std::size_t number;
};

CompiledStep compile_record(const Rank& rank) {
  const std::map<std::string, std::string> models = {{"Llama-3.1-8B", "llama-3.1-8b"},
                                                     {"Llama-3.1-70B", "llama-3.1-70b"}};
  const Json& settings = rank.settings;
  std::vector<MeshAxis> axes;
  for (const Json& axis : rank.record["mesh"]) axes.push_back({axis[0], axis[1]});
  const bool shards = settings["dp_shard"] > 1;
  Json strategy = {
      {"name", "fsdp2"},
      {"reshard_after_forward", settings["reshard_after_forward"]},
      {"pipeline", {{"schedule", settings["schedule"]}, {"virtual_stages", settings["v"]}}}};
  if (settings["tp"] > 1) strategy["sequence_parallel"] = true;
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
  return compile_step(models.at(rank.record["model"]["name"]), Mesh(axes), strategy.dump(), step);
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
