// Training steps of decoders from their descriptions. Expectations: parameters and FLOPs of the
// records of tests/golden/models (torch 2.15.0 and transformers 5.23.0 on tensors without data; the
// README there), the share of a window by hand.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/workloads/model_records.hpp"
#include "workloads/models/build.hpp"
#include "workloads/models/described_model.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/decoder_graph.hpp"
#include "workloads/models/graph/graph_context.hpp"
#include "workloads/step/backward.hpp"
#include "workloads/step/optimizer.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

// Records of causal models that have no op graph yet, and what of them has none.
const std::map<std::string, std::string> refused = {
    {"codestral-mamba-7b", "Mamba-2"},
    {"ernie-4.5-21b-a3b", "a parameter of the router that is not trained"},
    {"jamba-v0.1", "Mamba"},
    {"mamba-130m", "Mamba"},
    {"mamba-2.8b", "Mamba"},
    {"mamba2-2.7b", "Mamba-2"},
    {"nemotron-3-nano-30b-a3b", "Mamba-2"},
    {"nemotron-h-8b", "Mamba-2"},
    {"qwen3-next-80b-a3b", "the gated delta rule"},
    {"zamba2-1.2b", "a block that layers share"},
    {"zamba2-2.7b", "a block that layers share"},
};

// Keys of the hub's files whose values are not built, whatever the model.
const std::map<std::string, std::string> keys_refused = {
    {"deepseek-v3", "/quantization_config"},  {"gemma-2-27b", "/_attn_implementation"},
    {"gpt-oss-120b", "/quantization_config"}, {"gpt-oss-20b", "/quantization_config"},
    {"kimi-k2", "/quantization_config"},
};

Shapes shapes_of(const Workload& workload) {
  Shapes shapes;
  for (const ParameterView& view : parameters(workload)) {
    const std::string& name = workload.tensors[static_cast<std::size_t>(view.tensor)].name;
    for (const std::int32_t number : view.numbers) shapes[instance_name(name, number)] = view.shape;
  }
  return shapes;
}

// Of products and attention, all that a record counts; attention whole, whatever its mask.
double product_flops(const Workload& workload, std::vector<Op> Block::*ops) {
  double flops = 0;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.*ops) {
      const bool attends = kind_of(op) == OpKind::attention;
      if (kind_of(op) != OpKind::einsum && !attends) continue;
      double points = flops_per_point(workload, op) * static_cast<double>(block.instances());
      for (const LabelId label : factors(op)) {
        points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
      }
      flops += attends ? points : points * op.work_fraction;
    }
  }
  return flops;
}

struct RecordedFlops {
  double forward = 0;
  double backward = 0;
};

// Where a class multiplies attention out, its backward pass is four products of scores; that of one
// kernel, which computes the scores again, is five.
RecordedFlops recorded_flops(const Json& point) {
  RecordedFlops flops;
  for (const auto& [op, count] : point["forward"].items()) {
    flops.forward += count.get<double>();
    if (op == "bmm" || op == "baddbmm") flops.backward += count.get<double>() / 2;
  }
  for (const auto& [op, count] : point["forward_backward"].items()) {
    flops.backward += count.get<double>();
  }
  flops.backward -= flops.forward;
  return flops;
}

CompiledStep compile_with(const Workload& workload, const std::vector<MeshAxis>& axes,
                          const char* strategy) {
  const Mesh mesh(axes);
  const Json json = parse_json(fmt::format("\"{}\"", strategy), "strategy");
  return compile(workload, {}, mesh, read_strategy(JsonReader(json, {"strategy", ""}), mesh));
}

void compile_under(const Workload& workload, const std::vector<MeshAxis>& axes,
                   const char* strategy) {
  INFO(strategy);
  const CompiledStep step = compile_with(workload, axes, strategy);
  CHECK(!step.plan.programs.at(0).tasks.empty());
}

void compile_steps(Workload workload) {
  add_backward(workload, {});
  add_optimizer(workload, {});
  compile_under(workload, {{"data", 8}}, "dp");
  compile_under(workload, {{"fsdp", 8}}, "fsdp");
  compile_under(workload, {{"model", 8}}, "tp");
  compile_under(workload, {{"fsdp", 4}, {"model", 2}}, "fsdp+tp");
}

// Of an op's activations the backward pass reads none but those that the table of functions says.
void check_saves(const Workload& workload) {
  for (const Block& block : workload.blocks) {
    std::map<std::string, std::set<TensorId>> read;
    for (const Op& op : block.backward) {
      for (const Operand& operand : op.operands) read[op.name].insert(operand.tensor);
    }
    for (const Op& op : block.forward) {
      const Saves saves = traits(op.function).saves;
      const auto all_said = [&](const std::vector<Operand>& tensors, unsigned said) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          const TensorId id = tensors[i].tensor;
          const bool kept = (said >> i & 1U) != 0;
          const TensorRole role = workload.tensors[static_cast<std::size_t>(id)].role;
          if (!kept && role == TensorRole::activation && read[op.name].contains(id)) return false;
        }
        return true;
      };
      INFO(op.name << " " << name_of(op.function));
      CHECK(all_said(op.operands, saves.operands));
      CHECK(all_said(op.results, saves.results));
    }
  }
}

// The refusal, or nothing where the model was built.
std::string check_record(const Json& record, const std::string& path) {
  try {
    const JsonReader config(record["config"], {path, "/config"});
    const models::ModelSpec spec = models::read_model(config, path);
    for (const Json& point : record["flops"]) {
      const WorkloadOptions options{.batch = point["batch"], .sequence = point["sequence"]};
      Workload workload = models::build_decoder_graph(spec, options, config.place());
      CHECK(shapes_of(workload) == recorded_shapes(record));
      add_backward(workload, {});
      check_saves(workload);
      const RecordedFlops expected = recorded_flops(point);
      CHECK(product_flops(workload, &Block::forward) == expected.forward);
      CHECK(product_flops(workload, &Block::backward) == expected.backward);
    }
    compile_steps(models::build_decoder_graph(spec, {.batch = 8, .sequence = 64}, config.place()));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A decoder's op graph has the parameters and the work of its record") {
  std::set<std::string> seen;
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config") || record["kind"] != "causal") continue;
    const std::string name = std::filesystem::path(path).stem().string();
    INFO(name);
    seen.insert(name);
    const std::string refusal = check_record(record, path);
    INFO(refusal);
    const auto expected = refused.find(name);
    if (expected == refused.end()) {
      CHECK(refusal.empty());
    } else {
      CHECK(refusal.find(expected->second) != std::string::npos);
    }
  }
  CHECK(!seen.empty());
}

// The records' configurations are those of the hub (its README).
TEST_CASE("Every key of the hub's files is known") {
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config") || record["kind"] != "causal") continue;
    const std::string name = std::filesystem::path(path).stem().string();
    INFO(name);
    std::string error;
    try {
      static_cast<void>(read_described({name, name, OwnedJson(record["config"])}));
    } catch (const InputError& caught) {
      error = caught.what();
    }
    const auto expected = keys_refused.find(name);
    if (expected == keys_refused.end()) {
      CHECK(error == "");
    } else {
      CHECK(error.find(expected->second) != std::string::npos);
    }
  }
}

namespace {

// 32 tokens under tensor parallelism over 4 devices.
std::int64_t reduced_elements(const Json& config, Phase phase) {
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(config)}, {.batch = 2, .sequence = 16});
  add_backward(workload, {});
  add_optimizer(workload, {});
  const Plan plan = compile_with(workload, {{"model", 4}}, "tp").plan;
  std::int64_t bytes = 0;
  for (const Task& task : plan.programs.at(0).tasks) {
    if (task.kind != TaskKind::collective || task.phase != phase) continue;
    const Collective& c = plan.collectives[static_cast<std::size_t>(task.work)];
    if (c.kind == CollectiveKind::all_reduce && c.dtype == DType::bf16) bytes += c.payload.count();
  }
  return bytes / 2;
}

}  // namespace

// Megatron's tensor parallelism: rows of the embedding, of attention's and of the experts' output
// are sums over devices; backward those of the head's, the experts' and attention's input. Of the
// experts it is a row for each of the two that a token visits.
TEST_CASE("Tensor parallelism reduces the rows of experts") {
  const Json mixtral{
      {"model_type", "mixtral"},  {"hidden_size", 64},        {"num_hidden_layers", 1},
      {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"intermediate_size", 128},
      {"num_local_experts", 4},   {"num_experts_per_tok", 2}, {"vocab_size", 512}};
  CHECK(reduced_elements(mixtral, Phase::forward) == 32 * 64 * (1 + 1 + 2));
  CHECK(reduced_elements(mixtral, Phase::backward) == 32 * 64 * (1 + 2 + 1));
}

// What makes latents is whole on every device; gradients of the latents, and of the part of keys
// that heads have in common, are sums over devices: ranks of 16 and 8, 4 rotary dimensions.
TEST_CASE("Tensor parallelism reduces the gradients of latents") {
  const Json deepseek{{"model_type", "deepseek_v2"},
                      {"hidden_size", 64},
                      {"num_hidden_layers", 1},
                      {"num_attention_heads", 8},
                      {"num_key_value_heads", 8},
                      {"q_lora_rank", 16},
                      {"kv_lora_rank", 8},
                      {"qk_nope_head_dim", 8},
                      {"qk_rope_head_dim", 4},
                      {"v_head_dim", 8},
                      {"intermediate_size", 128},
                      {"first_k_dense_replace", 1},
                      {"vocab_size", 512}};
  CHECK(reduced_elements(deepseek, Phase::forward) == 32 * 64 * (1 + 1 + 1));
  CHECK(reduced_elements(deepseek, Phase::backward) == 32 * (64 + 64 + 16 + 8 + 4));
}

// Query i of s sees min(i + 1, w) keys: w s - w (w - 1) / 2 pairs, of which the convention in which
// the causal triangle is s^2 / 2 leaves the terms of second order. w = 2, s = 8: 16 - 2 of 64.
TEST_CASE("A window leaves its share of attention") {
  CHECK(models::attention_fraction(0, 8) == 0.5);
  CHECK(models::attention_fraction(8, 8) == 0.5);
  CHECK(models::attention_fraction(100, 8) == 0.5);
  CHECK(models::attention_fraction(2, 8) == 14.0 / 64);
}
