// Against real PyTorch: the collectives of FSDP2 and HSDP steps in order, byte for byte, and what a
// rank holds between steps; the same of torchtitan; DDP's buckets. Cases:
// tests/golden/torch/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "model_step.hpp"
#include "tests/base/golden_files.hpp"
#include "torch_memory.hpp"
#include "torch_records.hpp"

#include "base/json.hpp"
#include "launch/torchtitan_models.hpp"

namespace shardsim::torch_golden_test {
namespace {

using namespace shardsim::test;

// torchtitan's by its name.
ModelConfig titan_model(const Json& settings) {
  Facts facts({"torchtitan", "/model"});
  facts.set("arg.name", settings["family"]);
  facts.set("arg.flavor", settings["flavor"]);
  std::vector<std::string> notes;
  Json model = torchtitan_model(facts, notes);
  if (settings.contains("layers")) {
    if (model.is_string()) model = {{"base", model}};
    model["num_hidden_layers"] = settings["layers"];
  }
  return load_model_config(JsonReader(model, {"torchtitan", "/model"}), "");
}

// Of its dimensions.
ModelConfig model_of(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  if (settings.contains("flavor")) return titan_model(settings);
  Json config = record["model"];
  const bool has_experts = config["model_type"] == "mixtral";
  for (const std::string key :
       {"name", "qk_norm", "attention_bias", "num_local_experts", "num_experts_per_tok"}) {
    if (!has_experts || !key.starts_with("num_")) config.erase(key);
  }
  return load_model_config(JsonReader(config, {record["id"], "/model"}), "");
}

// The records' GPT-2 is of torch.nn.Linear, [out, in]; transformers' has Conv1D, [in, out].
void transpose_products(Workload& workload) {
  std::vector<bool> swaps(workload.tensors.size(), false);
  for (std::size_t t = 0; t < swaps.size(); ++t) {
    const TensorId primal = workload.tensors[t].primal;
    const std::string name =
        workload.tensors[primal == no_tensor ? t : static_cast<std::size_t>(primal)].name;
    const TensorRole role = workload.tensors[t].role;
    const bool of_parameter = role == TensorRole::parameter ||
                              role == TensorRole::parameter_gradient ||
                              role == TensorRole::optimizer_state;
    swaps[t] = of_parameter && name.find(".c_") != std::string::npos && name.ends_with(".weight");
    if (swaps[t]) std::swap(workload.tensors[t].dims[0], workload.tensors[t].dims[1]);
  }
  for (Block& block : workload.blocks) {
    for (std::vector<Op>* ops : {&block.forward, &block.backward, &block.optimizer}) {
      for (Op& op : *ops) {
        for (std::vector<Operand>* list : {&op.operands, &op.results}) {
          for (Operand& operand : *list) {
            if (swaps[static_cast<std::size_t>(operand.tensor)])
              std::swap(operand.dims[0], operand.dims[1]);
          }
        }
      }
    }
  }
}

// As the records name what fully_shard was called on.
std::string units_of(const Json& settings) {
  const std::map<std::string, std::string> names = {{"blocks", "layers"},
                                                    {"root", "model"},
                                                    {"embed-head", "layers+embedding+head"},
                                                    {"titan", "layers+ends"}};
  return names.at(settings.value("wrap", "blocks"));
}

Json torchtitan_strategy(const Json& settings) {
  Json strategy = {{"name", "torchtitan"}, {"kernels", "eager"}};  // no record is compiled
  if (settings.value("ep", 1) != 1) strategy["experts"] = {{"parallel", settings["ep"]}};
  strategy["spmd_backend"] = settings["backend"];
  // torchtitan 0.3's ChunkedCELoss has 8 chunks.
  if (settings["loss"] == "chunked") strategy["loss_chunks"] = 8;
  const std::string reshard = settings["reshard"];
  if (reshard == "default") return strategy;
  strategy["reshard_after_forward"] = reshard == "always";
  strategy["reshard_root_after_forward"] = reshard == "always";
  return strategy;
}

Json fsdp_strategy(const Json& settings) {
  Json strategy = {{"name", "fsdp2"},
                   {"units", units_of(settings)},
                   {"reshard_after_forward", settings["reshard_after_forward"]},
                   {"await_reductions", "step"},  // set_is_last_backward(False) before the last
                   {"reshard_root_after_forward", settings.value("root_reshard", false)}};
  if (settings.value("ep", 1) != 1) {
    strategy["experts"] = {{"parallel", settings["ep"]}, {"shard_dimension", "first"}};
    strategy["expert_units"] = "own";
  }
  if (settings.value("no_sync", false)) strategy["reduce_each_microbatch"] = "none";
  if (settings.value("prefetch", "").starts_with("explicit, 2 blocks each way")) {
    strategy["ask_ahead"] = "always";
    strategy["prefetch"] = 2;
  }
  if (settings.value("cp", 1) > 1) {
    strategy["context"] = {{"balanced", settings.value("cp_load_balance", true)}};
  }
  if (settings["tp"] > 1) {
    strategy["sequence_parallel"] = settings["sp"];
    strategy["loss_parallel"] = settings["loss_parallel"];
  }
  return strategy;
}

// Clipping by plain modules does not know of the devices that experts are dealt out over, and
// leaves their norms out: its calls are not compared.
bool knows_experts(const Json& record) {
  return record["strategy"]["settings"].value("ep", 1) == 1 ||
         record["model"]["model_type"] != "mixtral";
}

Step step_of(const Json& record, const Mesh& mesh) {
  const Json& settings = record["strategy"]["settings"];
  Step step{.batch = 1};
  step.gradient_clipping = settings.value("clip", false) && knows_experts(record);
  step.microbatches = settings.value("microbatches", 1);
  step.batch = mesh.devices() / settings.value("tp", 1) / settings.value("cp", 1) *
               record["batch"]["per_rank"].get<std::int64_t>() * step.microbatches;
  step.sequence = record["batch"]["sequence"].get<std::int64_t>();
  step.dropout = 0;  // no record keeps masks
  const Json& computed = settings["param_dtype"];
  if (computed.is_null() || computed == "fp32") step.precision.compute = DType::f32;
  step.optimizer.parameters = step.optimizer.gradients = DType::f32;
  step.optimizer.master.reset();
  if (settings.value("reduce_dtype", Json()) == "bf16") step.optimizer.reduce = DType::bf16;
  if (settings.value("optimizer", "fused") == "sgd") {
    step.optimizer.kind = "sgd";
    step.optimizer.momentum = false;
  }
  const std::string checkpointing = settings.value("ac", "none");
  if (checkpointing == "selective") {
    step.rematerialization = {.policy = Rematerialization::Policy::of_jax,
                              .save = {"every_other_product"}};
  } else if (checkpointing != "none") {
    step.rematerialization.policy = Rematerialization::Policy::full;
  }
  if (checkpointing == "every-2") {
    step.rematerialization.layers = Rematerialization::Layers::every;
    step.rematerialization.count = 2;
  }
  return step;
}

CompiledStep compile_record(const Json& record, const Json& strategy) {
  std::vector<MeshAxis> axes;
  for (const Json& axis : record["mesh"]) {
    const bool is_of_experts = axis[0] == "ep" || axis[0] == "efsdp";
    if (!is_of_experts) axes.push_back({axis[0], axis[1]});
  }
  if (axes.empty()) axes = {{"dp_shard", record["strategy"]["settings"]["dp_shard"]}};
  const Mesh mesh(axes);
  const Strategy read = read_strategy(JsonReader(strategy, {record["id"], "/strategy"}), mesh);
  Step step = step_of(record, mesh);
  if (read.experts) {
    step.exchange = read.experts->exchange;
    step.exchange->splits_sequence = read.sequence_parallel;
  }
  step.rematerialization.to_end = read.runtime.repeats == RepeatForward::to_end;
  Workload workload = build_step(model_of(record), step);
  if (record["model"]["model_type"] == "gpt2") transpose_products(workload);
  return compile(workload, step, mesh, read);
}

std::int64_t parameters_of(const Json& record) {
  std::int64_t tensors = 0;
  for (const Json& p : record["params_local"]) tensors += p["count"].get<std::int64_t>();
  return tensors;
}

// AdamW's state beside the two moments: one fp32 step count per parameter tensor.
std::int64_t moments(const Json& record) {
  if (record["optimizer_state_bytes"] == 0) return 0;
  return record["optimizer_state_bytes"].get<std::int64_t>() - 4 * parameters_of(record);
}

// Norms of gradients are as many as parameters: torchtitan's q, k and v are one, the gates of the
// records' experts are apart.
void count_parameters_as(const Json& record, const Plan& plan, Calls& calls) {
  const bool apart = record["strategy"]["settings"].value("ep", 1) != 1;
  const auto is_experts = [&](const std::string& name) {
    return apart && name.find("experts.") != std::string::npos &&
           name.find("shared_experts.") == std::string::npos;
  };
  const auto end = [](std::int64_t norms) { return " " + std::to_string(4 * norms) + " fp32"; };
  for (const bool experts : {false, true}) {
    std::int64_t ours = 0, theirs = 0;
    for (const Buffer& buffer : plan.programs[0].buffers) {
      const bool is_parameter = buffer.category == BufferCategory::parameters &&
                                buffer.free_count == 0 &&
                                !plan.buffer_name(buffer).ends_with("correction_bias");
      ours += is_parameter && is_experts(plan.buffer_name(buffer)) == experts;
    }
    for (const Json& p : record["params_local"]) {
      if (is_experts(p["name"]) == experts) theirs += p["count"].get<std::int64_t>();
    }
    for (std::string& call : calls) {
      if (ours == 0 || !call.starts_with("all-reduce") || !call.ends_with(end(ours))) continue;
      call.resize(call.size() - end(ours).size());
      call += end(theirs);
    }
  }
}

// Buffers that we count with parameters.
std::int64_t router_biases(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (plan.buffer_name(buffer).ends_with("correction_bias")) bytes += buffer.bytes.count();
  }
  return bytes;
}

bool agrees(const Json& record) {
  const std::string id = record["id"];
  const Json& settings = record["strategy"]["settings"];
  const bool is_titan = record["id"].get<std::string>().starts_with("titan");
  const CompiledStep step =
      compile_record(record, is_titan ? torchtitan_strategy(settings) : fsdp_strategy(settings));
  const Program& program = step.plan.programs[0];
  Calls ours = planned_calls(step.plan, program);
  count_parameters_as(record, step.plan, ours);
  bool same = same_calls(ours, recorded_calls(record, knows_experts(record)), id);
  const std::int64_t shard = record["memory"]["steps"][1]["peak"]["sharded_param"];
  const std::int64_t ours_shard =
      held_bytes(program, BufferCategory::parameters) - router_biases(step.plan);
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

Json ddp_strategy(const Json& settings) {
  Json strategy = {{"name", "ddp"},
                   {"gradient_as_bucket_view", settings["gradient_as_bucket_view"]}};
  const Json& cap = settings["bucket_cap_mb"];
  if (!cap.is_null()) strategy["bucket_cap_mb"] = cap;
  return strategy;
}

// The buckets of DDP from the second step on, by the bytes that each reduces.
bool same_buckets(const Json& record) {
  const CompiledStep step = compile_record(record, ddp_strategy(record["strategy"]["settings"]));
  Calls buckets;
  for (const Json& bucket : record["rebuilt_buckets"]) {
    buckets.push_back("all-reduce dp_replicate " + bucket["bytes"].dump() + " fp32");
  }
  return same_calls(planned_calls(step.plan, step.plan.programs[0]), buckets, record["id"]);
}

template <class Compare>
void compare_folder(const std::string& name, const Compare& compare) {
  const std::filesystem::path folder = golden_folder(name);
  const std::vector<std::string> files = golden_files(folder, ".json");
  if (!std::filesystem::exists(folder)) return;
  int compared = 0;
  for (const std::string& path : files) {
    const std::string file = std::filesystem::path(path).filename().string();
    const Json record = load_json(path);
    const bool passed = compare(record);
    std::cout << file << (passed ? ": 1 passed, 0 failed\n" : ": 0 passed, 1 failed\n");
    CHECK(passed);
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("Collectives, in order, and state of FSDP2 and HSDP steps are PyTorch's", "[golden]") {
  compare_folder("torch/fsdp", agrees);
}

TEST_CASE("Their memory is PyTorch's, by category", "[golden]") {
  compare_folder("torch/fsdp", [](const Json& record) {
    const CompiledStep step = compile_record(record, fsdp_strategy(record["strategy"]["settings"]));
    return same_memory(record, step.plan);
  });
}

TEST_CASE("So they are of torchtitan's", "[golden]") { compare_folder("torch/torchtitan", agrees); }

TEST_CASE("Their memory is, too", "[golden]") {
  compare_folder("torch/torchtitan", [](const Json& record) {
    if (!record["memory"]["steps"][1].contains("marks")) return true;  // made without (README.md)
    const Json strategy = torchtitan_strategy(record["strategy"]["settings"]);
    return same_memory(record, compile_record(record, strategy).plan);
  });
}

TEST_CASE("DDP's buckets are PyTorch's", "[golden]") { compare_folder("torch/ddp", same_buckets); }

TEST_CASE("DDP's memory is PyTorch's, by category", "[golden]") {
  compare_folder("torch/ddp", [](const Json& record) {
    const Json strategy = ddp_strategy(record["strategy"]["settings"]);
    return same_memory(record, compile_record(record, strategy).plan);
  });
}

}  // namespace shardsim::torch_golden_test
