// Against DeepSpeed: what a rank sends in a step under ZeRO 0 to 3, in order.
// Cases: tests/golden/deepspeed/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "model_step.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_memory.hpp"
#include "torch_records.hpp"

namespace shardsim::deepspeed_test {
namespace {

using test::Calls;
using test::golden_files;
using test::golden_folder;
using test::planned_calls;
using test::recorded_calls;
using test::same_calls;

// Neighbours of the world are a node, and parameters that stay whole are gathered at the end in the
// order of their modules' registration, which is the recorder's model's.
Calls comparable(Calls calls) {
  for (std::string& call : calls) {
    const std::size_t node = call.find("intra_node");
    if (node != std::string::npos) call.replace(node, 10, "world_sub8");
  }
  auto last = calls.end();
  while (last != calls.begin() && std::prev(last)->starts_with("all-gather")) --last;
  std::sort(last, calls.end());
  return calls;
}

Json config_of(const Json& model) {
  Json config = model;
  config.erase("name");
  const bool is_gpt2 = model["model_type"] == "gpt2";
  config["architectures"] = {is_gpt2 ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  if (is_gpt2) {
    config["activation_function"] = "gelu_new";
    return config;
  }
  for (const char* key : {"qk_norm", "num_local_experts", "num_experts_per_tok"}) config.erase(key);
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = 1e-5;
  config["max_position_embeddings"] = 131072;  // Llama 3.1's config.json
  return config;
}

CompiledStep compile_record(const Json& record, const Json& zero) {
  const Json& settings = record["strategy"]["settings"];
  const std::int64_t ranks = record["world_size"];
  const Mesh mesh({{"world", ranks}});
  Json strategy = {{"name", "deepspeed"},
                   {"batch_axes", {"world"}},
                   {"zero_stage", zero["stage"]},
                   {"bucket_elements", zero["reduce_bucket_size"]},
                   {"overlap_comm", zero["overlap_comm"]},
                   {"round_robin_gradients", zero["round_robin_gradients"]}};
  const std::int64_t stage = zero["stage"];
  const bool is_parted = stage == 1 || stage == 2;
  if (is_parted) strategy["reduce_scatter"] = zero.value("reduce_scatter", true);
  if (is_parted && !zero.value("compute_grad_norm", true)) strategy["clip_gradients"] = false;
  const Json& given = settings["ds_config"]["zero_optimization"];
  if (given.contains("offload_optimizer") && given["offload_optimizer"]["device"] == "cpu") {
    strategy["offload"]["optimizer"] = "cpu";
  }
  if (zero["stage"] == 3) {
    strategy["prefetch_bucket_elements"] = zero["prefetch_bucket_size"];
    strategy["persistence_threshold_elements"] = zero["param_persistence_threshold"];
    strategy["max_live_elements"] = zero["max_live_parameters"];
    strategy["max_reuse_distance_elements"] = zero["max_reuse_distance"];
    strategy["sub_group_elements"] = zero["sub_group_size"];
    strategy["hpz"] = zero["zero_hpz_partition_size"];
    strategy["qwz"] = zero["zero_quantized_weights"];
    strategy["allgather_sequential"] = zero.value("allgather_sequential", false);
    strategy["memory_efficient_linear"] = zero.value("memory_efficient_linear", true);
    // As sys.maxsize by default.
    const double in_all = zero.value("model_persistence_threshold", 1e18);
    if (in_all < 1e12) strategy["model_persistence_elements"] = in_all;
  }
  Step step;
  step.sequence = record["batch"]["sequence"].get<std::int64_t>();
  step.dropout = 0;  // no record keeps masks
  step.microbatches = record["batch"]["microbatches"];
  step.batch = ranks * record["batch"]["per_rank"].get<std::int64_t>() * step.microbatches;
  if (settings["ds_config"]["bf16"]["enabled"] == false) {
    step.precision.compute = DType::f32;
    step.optimizer.parameters = step.optimizer.gradients = DType::f32;
    step.optimizer.master.reset();
  }
  const Json config = config_of(record["model"]);
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"record", "/model"}), ""), step);
  return compile(workload, step, mesh, read_strategy(JsonReader(strategy, {"strategy", ""}), mesh));
}

// What a rank keeps between steps, and the most that it has within one, in bytes; on the host, too.
struct Held {
  double kept = 0;
  double peak = 0;
};

Held held_by(const Program& program) {
  Held held;
  for (const BufferCategory category :
       {BufferCategory::parameters, BufferCategory::gradients, BufferCategory::optimizer}) {
    held.kept += static_cast<double>(test::held_bytes(program, category));
  }
  held.peak = test::replayed_peak(program);
  return held;
}

// Rotary tables are buffers among `params`: of Llama 4096 positions of 128 numbers, sine and cosine
// in bf16.
Held recorded(const Json& record) {
  const Json& memory = record["memory"];
  const Json& end = memory["marks"]["step2 end"];
  const double tables = record["model"]["model_type"] == "llama" ? 2.0 * 4096 * 128 * 2 : 0;
  const double kept =
      end.value("params", 0.0) + end["zero"].get<double>() + end.value("opt_state", 0.0) - tables;
  return {kept, memory["peak"]["total"].get<double>()};
}

constexpr double of_kept = 0.01;
constexpr double of_peak = 0.03;

// What is further off: where it is, of DeepSpeed's, and why. It may be no further from there than
// others from DeepSpeed's own.
struct Known {
  double ratio = 1;
  std::string_view reason = {};
};

Known known_of_kept(const std::string&) { return {}; }
Known known_of_peak(const std::string& name) {
  // Two of lm_head in fp32, 2 x 128256 x 4096 x 4 bytes of 57,331 MiB: 7 %.
  if (name == "l8b-z0.json") return {0.93, "the recorder's AdamW has temporaries"};
  return {};
}

void check_memory(const Held& ours, const Held& theirs, const std::string& name) {
  const auto check = [&](const char* what, double mine, double other, double relative,
                         const Known& known) {
    CHECK(mine == Approx(known.ratio * other).epsilon(relative));
    if (known.reason.empty()) return;
    std::cout << "  " << name << ": " << what << " " << mine / other
              << " of DeepSpeed's: " << known.reason << "\n";
  };
  check("kept", ours.kept, theirs.kept, of_kept, known_of_kept(name));
  check("peak", ours.peak, theirs.peak, of_peak, known_of_peak(name));
}

}  // namespace

TEST_CASE("Ranks do what DeepSpeed's do, in order", "[golden]") {
  const std::filesystem::path folder = golden_folder("deepspeed");
  if (!std::filesystem::exists(folder)) return;
  int compared = 0;
  for (const std::string& file : golden_files(folder, ".json")) {
    const Json record = load_json(file);
    if (!record.contains("collectives")) continue;  // index.json
    const Json& zero = record["strategy"]["settings"]["resolved_zero"];
    const std::string name = std::filesystem::path(file).filename().string();
    const CompiledStep step = compile_record(record, zero);
    const Calls planned = planned_calls(step.plan, step.plan.programs.at(0));
    const bool passed =
        same_calls(comparable(planned), comparable(recorded_calls(record)), record["id"]);
    std::cout << name << ": " << (passed ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
    CHECK(passed);
    check_memory(held_by(step.plan.programs.at(0)), recorded(record), name);
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace shardsim::deepspeed_test
