// Training steps of decoders from their descriptions. Expectations: parameters, FLOPs and what fused
// mixers keep of the records of tests/golden/models (torch 2.15.0 and transformers 5.23.0 on tensors without data; the
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
    {"ernie-4.5-21b-a3b", "a parameter of the router that is not trained"},
    {"zamba2-1.2b", "unknown architecture"},
    {"zamba2-2.7b", "unknown architecture"},
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

// Of scans, which are in no total of a record.
double scan_flops(const Workload& workload) {
  double flops = 0;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      if (kind_of(op) != OpKind::scan && kind_of(op) != OpKind::chunked_scan) continue;
      for (const Operations& work : op.work) {
        double points = work.flops * static_cast<double>(block.instances());
        for (const LabelId label : work.over) {
          points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
        }
        flops += points;
      }
    }
  }
  return flops;
}

// Storages of a module's activations that the block's backward pass reads.
std::int64_t kept_bytes(const Workload& workload, const Block& block, const std::string& module) {
  std::map<TensorId, TensorId> within;
  for (const Op& op : block.forward) {
    if (!op.view) continue;
    for (const Operand& part : op.results) within[part.tensor] = op.operands[0].tensor;
  }
  std::set<TensorId> kept;
  for (const Op& op : block.backward) {
    for (const Operand& operand : op.operands) {
      TensorId id = operand.tensor;
      while (within.contains(id)) id = within[id];
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
      const bool is_forward = tensor.role == TensorRole::activation && tensor.primal == no_tensor;
      if (is_forward && tensor.name.starts_with(module + ".")) kept.insert(id);
    }
  }
  std::int64_t bytes = 0;
  for (const TensorId id : kept) bytes += workload.bytes(id).count();
  return bytes;
}

// What a record's module saved, but for what its first projection reads and what is of no token
// (-exp(A_log) and the like, which our scan makes inside).
std::int64_t recorded_bytes(const Json& saved, const Json& tensors, const std::string& module) {
  const auto batch = saved["batch"].get<std::int64_t>();
  const std::int64_t tokens = batch * saved["sequence"].get<std::int64_t>();
  std::int64_t bytes = 0;
  for (const Json& tensor : tensors) {
    const auto name = tensor[0].get<std::string>();
    const auto rows = tensor[2][0].get<std::int64_t>();
    const bool inside = name == module || name.starts_with(module + ".");
    const bool of_tokens = rows == batch || rows % tokens == 0;
    if (inside && of_tokens && name != module + ".in_proj") bytes += tensor[3].get<std::int64_t>();
  }
  return bytes;
}

// Mamba and Mamba-2 in one function: mixers that keep what mamba_ssm's keep, to the byte.
void check_fused_mixers(const Json& saved, const models::Stack& stack, const Workload& workload) {
  for (const Block& block : workload.blocks) {
    if (!block.is_layer) continue;
    const auto number = static_cast<std::size_t>(block.numbers.front());
    const auto& kind = stack.kinds[static_cast<std::size_t>(stack.order[number])];
    const auto& body = kind.branches[0].body;
    const auto* mamba = std::get_if<models::Mamba>(&body);
    const auto* second = std::get_if<models::Mamba2>(&body);
    const std::string layer = instance_name(block.name, block.numbers.front());
    const Json& kinds = saved["tensors_of_first_of_each_kind"];
    if ((second == nullptr && (mamba == nullptr || mamba->norms)) || !kinds.contains(layer))
      continue;
    const std::string& module = mamba != nullptr ? mamba->name : second->name;
    INFO(layer << "." << module);
    CHECK(kept_bytes(workload, block, block.name + "." + module) ==
          recorded_bytes(saved, kinds[layer], module));
  }
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
    for (std::size_t p = 0; p < record["flops"].size(); ++p) {
      const Json& point = record["flops"][p];
      const WorkloadOptions options{.batch = point["batch"], .sequence = point["sequence"]};
      Workload workload = models::build_decoder_graph(spec, options, config.place());
      CHECK(shapes_of(workload) == recorded_shapes(record));
      add_backward(workload, {});
      check_saves(workload);
      const RecordedFlops expected = recorded_flops(point);
      CHECK(product_flops(workload, &Block::forward) == expected.forward);
      CHECK(product_flops(workload, &Block::backward) == expected.backward);
      CHECK(scan_flops(workload) == point.value("scan_forward_by_formula_not_counted_above", 0.0));
      check_fused_mixers(record["saved_activations"][p], spec.stacks[0], workload);
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
    const auto known = refused.find(name);
    if (known != refused.end() && known->second == "unknown architecture") continue;
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

namespace {

Json small_mamba2(std::int64_t groups) {
  return {{"model_type", "mamba2"}, {"hidden_size", 64}, {"num_hidden_layers", 1},
          {"num_heads", 8},         {"head_dim", 16},    {"state_size", 16},
          {"n_groups", groups},     {"chunk_size", 8},   {"vocab_size", 512}};
}

std::string reason_of(const Json& config, const std::string& parameter) {
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(config)}, {.batch = 2, .sequence = 16});
  add_backward(workload, {});
  add_optimizer(workload, {});
  for (const ParameterSharding& p : compile_with(workload, {{"model", 4}}, "tp").parameters) {
    if (p.name == parameter) return p.reason;
  }
  return "there is no such parameter";
}

}  // namespace

// Megatron-Core's MambaMixer: in_proj by columns, convolution, scan and norm of a device's groups,
// out_proj by rows. Beside the embedding's rows and the head's input one reduction each way.
TEST_CASE("Tensor parallelism of Mamba-2 reduces what an MLP's does") {
  CHECK(reduced_elements(small_mamba2(4), Phase::forward) == 32 * 64 * (1 + 1));
  CHECK(reduced_elements(small_mamba2(4), Phase::backward) == 32 * 64 * (1 + 1));
  CHECK(reason_of(small_mamba2(4), "backbone.layers.{}.mixer.in_proj.weight") == "");
}

// Megatron asserts that groups divide. 2 groups over 4 devices: 8 heads still do.
TEST_CASE("Groups of Mamba-2 that do not divide leave what lies by groups whole") {
  const std::string why =
      "2 groups do not go evenly over the 4 devices of model: it is whole on each";
  const std::string mixer = "backbone.layers.{}.mixer.";
  CHECK(reason_of(small_mamba2(2), mixer + "in_proj.weight") == why);
  CHECK(reason_of(small_mamba2(2), mixer + "conv1d.weight") == why);
  CHECK(reason_of(small_mamba2(2), mixer + "out_proj.weight") == "");
  CHECK(reason_of(small_mamba2(2), mixer + "A_log") == "");
}

// As vLLM's MambaMixer: x_proj sums over the channels of all devices, rank 4 and twice a state of
// 16; what comes back to its parts are sums over the devices.
TEST_CASE("Tensor parallelism of Mamba reduces steps, b and c besides") {
  const Json mamba{{"model_type", "mamba"}, {"hidden_size", 64}, {"num_hidden_layers", 1},
                   {"vocab_size", 512},     {"state_size", 16},  {"time_step_rank", 4}};
  CHECK(reduced_elements(mamba, Phase::forward) == 32 * (64 + 64 + 4 + 2 * 16));
  CHECK(reduced_elements(mamba, Phase::backward) == 32 * (64 + 64 + 4 + 2 * 16));
}

// Heads of keys with their values on one device, from projections to the row-parallel one. The
// weight of the norm, of 16, is common to all heads: its gradient is a sum over the devices.
TEST_CASE("Tensor parallelism of the delta rule reduces what attention's does") {
  const Json qwen{{"model_type", "qwen3_5_text"},
                  {"hidden_size", 64},
                  {"num_hidden_layers", 1},
                  {"num_attention_heads", 8},
                  {"num_key_value_heads", 4},
                  {"head_dim", 16},
                  {"intermediate_size", 128},
                  {"layer_types", {"linear_attention"}},
                  {"linear_num_key_heads", 4},
                  {"linear_num_value_heads", 8},
                  {"linear_key_head_dim", 16},
                  {"linear_value_head_dim", 16},
                  {"vocab_size", 512},
                  {"tie_word_embeddings", false}};
  CHECK(reduced_elements(qwen, Phase::forward) == 32 * 64 * (1 + 1 + 1));
  CHECK(reduced_elements(qwen, Phase::backward) == 32 * 64 * (1 + 1 + 1) + 16);
}

// Channels of LFM2's convolutions are split as an MLP's width.
TEST_CASE("Tensor parallelism of a short convolution reduces what an MLP's does") {
  const Json lfm2{{"model_type", "lfm2"},     {"hidden_size", 64},        {"num_hidden_layers", 1},
                  {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"layer_types", {"conv"}},
                  {"block_ff_dim", 128},      {"vocab_size", 512}};
  CHECK(reduced_elements(lfm2, Phase::forward) == 32 * 64 * (1 + 1 + 1));
  CHECK(reduced_elements(lfm2, Phase::backward) == 32 * 64 * (1 + 1 + 1));
}

// Query i of s sees min(i + 1, w) keys: w s - w (w - 1) / 2 pairs, of which the convention in which
// the causal triangle is s^2 / 2 leaves the terms of second order. w = 2, s = 8: 16 - 2 of 64.
TEST_CASE("A window leaves its share of attention") {
  CHECK(models::attention_fraction(0, 8) == 0.5);
  CHECK(models::attention_fraction(8, 8) == 0.5);
  CHECK(models::attention_fraction(100, 8) == 0.5);
  CHECK(models::attention_fraction(2, 8) == 14.0 / 64);
}
