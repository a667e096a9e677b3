// Against real PyTorch: the collectives of FSDP2 and HSDP steps in order, byte for byte, and what a
// rank holds between steps. Cases: tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "model_step.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_records.hpp"

#include "base/json.hpp"

namespace shardsim::torch_golden_test {
namespace {

using namespace shardsim::test;

// Why a record is beyond what is compared here; empty when it is not.
std::string skip_reason(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  if (settings.value("cp", 1) != 1) return "context parallelism";
  if (settings.value("ep", 1) != 1) return "expert parallelism";
  if (settings.value("wrap", "blocks") != "blocks") return "other units than blocks";
  if (settings.value("optimizer", "fused") == "sgd") return "SGD without momentum";
  if (record["model"]["name"] == "GPT-2 XL") return "projections are transposed";
  const std::string ac = settings.value("ac", "none");
  if (ac != "none" && ac != "full") return "activation checkpointing policy";
  return "";
}

// Of its dimensions.
ModelConfig model_of(const Json& record) {
  Json config = record["model"];
  // Names of the records' own: there is no model with norms of queries or biases among them.
  for (const char* key :
       {"name", "qk_norm", "attention_bias", "num_local_experts", "num_experts_per_tok"}) {
    const bool of_experts =
        config["model_type"] == "mixtral" && std::string(key).starts_with("num_");
    if (!of_experts) config.erase(key);
  }
  return load_model_config(JsonReader(config, {record["id"], "/model"}), "");
}

Json strategy_of(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  const bool tp = settings.value("tp", 1) > 1;
  const bool explicit_prefetch =
      settings.value("prefetch", "").starts_with("explicit, 2 blocks each way");
  Json strategy = {{"name", tp ? "fsdp+tp" : "fsdp"},
                   {"shard_axis", "dp_shard"},
                   {"reshard_after_forward", settings["reshard_after_forward"]},
                   {"reshard_root_after_forward", settings.value("root_reshard", false)},
                   {"reduce_each_microbatch", settings.value("no_sync", false) ? "none" : "all"},
                   {"ask_ahead", explicit_prefetch ? "always" : "backward"},
                   {"prefetch", explicit_prefetch ? 2 : 1},
                   {"reduce_model_axis", "apart"},
                   {"repeat_forward", "when_needed"}};
  if (tp) {
    strategy["sequence_parallel"] = settings["sp"];
    strategy["loss_parallel"] = settings["loss_parallel"];
    strategy["input_gradients"] = settings["sp"].get<bool>() ? "together" : "apart";
  }
  return strategy;
}

Step step_of(const Json& record, const Mesh& mesh) {
  const Json& settings = record["strategy"]["settings"];
  Step step{.batch = 1};
  step.microbatches = settings.value("microbatches", 1);
  step.batch = mesh.devices() / settings.value("tp", 1) *
               record["batch"]["per_rank"].get<std::int64_t>() * step.microbatches;
  step.sequence = record["batch"]["sequence"].get<std::int64_t>();
  if (settings["param_dtype"].is_null()) step.precision.compute = DType::f32;
  step.optimizer.parameters = DType::f32;
  step.optimizer.master.reset();
  step.optimizer.gradients = settings["reduce_dtype"] == "bf16" ? DType::bf16 : DType::f32;
  if (settings.value("ac", "none") == "full") {
    step.rematerialization.policy = Rematerialization::Policy::full;
  }
  return step;
}

CompiledStep compile_record(const Json& record) {
  std::vector<MeshAxis> axes;
  for (const Json& axis : record["mesh"]) axes.push_back({axis[0], axis[1]});
  const Mesh mesh(axes);
  const Step step = step_of(record, mesh);
  const Json strategy = strategy_of(record);
  return compile(build_step(model_of(record), step), step, mesh,
                 read_strategy(JsonReader(strategy, {record["id"], "/strategy"}), mesh));
}

// AdamW's state beside the two moments: one fp32 step count per parameter tensor.
std::int64_t moments(const Json& record) {
  std::int64_t tensors = 0;
  for (const Json& p : record["params_local"]) tensors += p["count"].get<std::int64_t>();
  return record["optimizer_state_bytes"].get<std::int64_t>() - 4 * tensors;
}

bool agrees(const Json& record) {
  const std::string id = record["id"];
  const CompiledStep step = compile_record(record);
  const Program& program = step.plan.programs[0];
  bool same = same_calls(planned_calls(step.plan, program), recorded_calls(record), id);
  const std::int64_t shard = record["memory"]["steps"][1]["peak"]["sharded_param"];
  const std::int64_t ours_shard = held_bytes(program, BufferCategory::parameters);
  if (ours_shard != shard) {
    std::cout << "  " << id << ": parameters " << ours_shard << ", PyTorch " << shard << "\n";
    same = false;
  }
  const std::int64_t state = held_bytes(program, BufferCategory::optimizer);
  // PyTorch keeps state for the rows that a rank owns, we for the padded shard.
  const bool padded = !record["padding"].empty();
  if (padded ? state < moments(record) : state != moments(record)) {
    std::cout << "  " << id << ": optimizer " << state << ", PyTorch " << moments(record) << "\n";
    same = false;
  }
  return same;
}

void compare_folder(const std::string& name) {
  const std::filesystem::path folder = golden_folder(name);
  const std::vector<std::string> files = golden_files(folder, ".json");
  if (!std::filesystem::exists(folder)) return;
  int compared = 0;
  for (const std::string& file : files) {
    const Json record = load_json(file);
    const std::string reason = skip_reason(record);
    if (!reason.empty()) {
      std::cout << std::filesystem::path(file).filename().string() << ": skipped (" << reason
                << ")\n";
      continue;
    }
    bool passed = false;
    try {
      passed = agrees(record);
    } catch (const InputError& error) {
      std::cout << "  " << error.what() << "\n";
    }
    std::cout << std::filesystem::path(file).filename().string() << ": "
              << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("Collectives, in order, and state of FSDP2 and HSDP steps are PyTorch's", "[golden]") {
  compare_folder("torch/fsdp");
}

}  // namespace shardsim::torch_golden_test
