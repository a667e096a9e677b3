// What components of decoders come to in a plan: what tensor parallelism reduces, what is made
// again, what is not trained. Expectations by hand, beside each.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/strategies/compile_with.hpp"
#include "workloads/models/build.hpp"

using namespace shardsim;
using namespace shardsim::test;

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

namespace {

Json small_qwen() {
  return {{"model_type", "qwen3_5_text"},
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
}

// Of the one op of a function in a step of 32 tokens.
double operations_of(const Json& config, Function function) {
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(config)}, {.batch = 2, .sequence = 16});
  add_backward(workload, {});
  double flops = 0;
  for (const auto ops : {&Block::forward, &Block::backward}) {
    for (const Op& op : workload.blocks.at(1).*ops) {
      if (op.function != function) continue;
      for (const Operations& work : op.work) {
        double points = work.flops;
        for (const LabelId label : work.over) {
          points *= static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
        }
        flops += points;
      }
    }
  }
  return flops;
}

}  // namespace

// 32 tokens, 8 heads, keys and values of 16, one chunk of 16: forward 6 K V + 2 c (3 K + 2 V),
// backward 16 K V + 2 c (8 K + 5 V).
TEST_CASE("The delta rule's products are those of flash-linear-attention") {
  CHECK(operations_of(small_qwen(), Function::delta_rule) == 32 * 8 * (1536 + 2560));
  CHECK(operations_of(small_qwen(), Function::delta_rule_backward) == 32 * 8 * (4096 + 6656));
}

// 32 tokens, 4 groups of 2 heads of 16, a state of 16, chunks of 8. Forward scores 2 c G N, scores
// times x 2 c I, states twice 2 I N; backward three times the first two, of states five.
TEST_CASE("The products of Mamba-2's scan are those of mamba_ssm") {
  const std::int64_t scores = 2 * 8 * 4 * 16, values = 2 * 8 * 128, states = 2 * 128 * 16;
  const Json mamba2 = small_mamba2(4);
  CHECK(operations_of(mamba2, Function::chunked_scan) == 32 * (scores + values + 2 * states));
  CHECK(operations_of(mamba2, Function::chunked_scan_backward) ==
        32 * (3 * scores + 3 * values + 5 * states));
}

// mamba_ssm's residual_in_fp32: the stream is fp32, what blocks add to it and its gradient are not.
TEST_CASE("The gradient of what is added to a residual stream in fp32 has its own type") {
  Json mamba2 = small_mamba2(4);
  mamba2["residual_in_fp32"] = true;
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(mamba2)}, {.batch = 2, .sequence = 16});
  add_backward(workload, {});
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.backward) {
      if (op.function != Function::matmul || op.name.find("out_proj") == std::string::npos)
        continue;
      for (const Operand& operand : op.operands) {
        CHECK(workload.tensors[static_cast<std::size_t>(operand.tensor)].dtype == DType::bf16);
      }
    }
  }
}

// Heads of keys with their values on one device, from projections to the row-parallel one. The
// weight of the norm, of 16, is common to all heads: its gradient is a sum over the devices.
TEST_CASE("Tensor parallelism of the delta rule reduces what attention's does") {
  const Json qwen = small_qwen();
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

namespace {

Json small_experts(const char* type) {
  return {{"model_type", type},       {"hidden_size", 64},          {"num_hidden_layers", 3},
          {"num_attention_heads", 8}, {"num_key_value_heads", 8},   {"intermediate_size", 128},
          {"vocab_size", 512},        {"moe_intermediate_size", 32}};
}

struct Held {
  std::int64_t buffers = 0;
  Bytes bytes{0};
};

// Of buffers that stay all step and have `part` in their name, by category.
std::map<BufferCategory, Held> held_buffers(const Plan& plan, const std::string& part) {
  std::map<BufferCategory, Held> held;
  for (const Buffer& buffer : plan.programs.at(0).buffers) {
    if (plan.names[static_cast<std::size_t>(buffer.name)].find(part) == std::string::npos) continue;
    if (buffer.free_count > 0) continue;
    ++held[buffer.category].buffers;
    held[buffer.category].bytes += buffer.bytes;
  }
  return held;
}

CompiledStep step_under(const Json& config, const char* strategy) {
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(config)}, {.batch = 8, .sequence = 16});
  add_backward(workload, {});
  add_optimizer(workload, {});
  return compile_with(workload, {{"data", 8}}, strategy);
}

}  // namespace

// A bias in each of 2 layers of 3, a parameter between steps; no gradient, no moments.
TEST_CASE("A parameter that is not trained has no gradient and no optimizer state") {
  Json ernie = small_experts("ernie4_5_moe");
  ernie["moe_num_experts"] = 16;
  for (const char* strategy : {"dp", "fsdp"}) {
    INFO(strategy);
    const CompiledStep step = step_under(ernie, strategy);
    const auto held = held_buffers(step.plan, "e_score_correction_bias");
    REQUIRE(held.size() == 1);
    CHECK(held.begin()->first == BufferCategory::parameters);
    CHECK(held.begin()->second.buffers == 2);
  }
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(ernie)}, {.batch = 8, .sequence = 16});
  add_backward(workload, {});
  add_optimizer(workload, {});
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.primal == no_tensor) continue;
    const Tensor& primal = workload.tensors[static_cast<std::size_t>(tensor.primal)];
    CHECK(primal.name.find("moe_statics.e_score") == std::string::npos);
  }
}

// DeepSeek-V3's routing bias is a buffer: whole on every device, 16 experts of 2 bytes in each of 2
// layers, whatever is sharded; no parameter.
TEST_CASE("A routing bias that is a buffer is on every device") {
  Json deepseek = small_experts("deepseek_v3");
  deepseek.merge_patch({{"n_routed_experts", 16},
                        {"first_k_dense_replace", 1},
                        {"q_lora_rank", 16},
                        {"kv_lora_rank", 8},
                        {"qk_nope_head_dim", 8},
                        {"qk_rope_head_dim", 4},
                        {"v_head_dim", 8}});
  for (const char* strategy : {"dp", "fsdp"}) {
    INFO(strategy);
    const CompiledStep step = step_under(deepseek, strategy);
    const auto held = held_buffers(step.plan, "e_score_correction_bias");
    REQUIRE(held.size() == 1);
    CHECK(held.begin()->first == BufferCategory::parameters);
    CHECK(held.begin()->second.buffers == 2);
    CHECK(held.begin()->second.bytes == Bytes(2 * 16 * 2));
    for (const ParameterSharding& p : step.parameters) {
      CHECK(p.name.find("e_score") == std::string::npos);
    }
  }
}

// mamba_ssm's mamba_inner_fn makes convolution, step sizes and gate again, each before what reads
// it: the gate before out_proj's weight gradient, the others before the scan's.
TEST_CASE("What Mamba makes again it makes where it is read") {
  const Json mamba{{"model_type", "mamba"}, {"hidden_size", 64}, {"num_hidden_layers", 1},
                   {"vocab_size", 512},     {"state_size", 16},  {"time_step_rank", 4}};
  Workload workload =
      build_workload({"tiny", "tiny", OwnedJson(mamba)}, {.batch = 2, .sequence = 16});
  add_backward(workload, {});
  std::vector<std::string> ops;
  for (const Op& op : workload.blocks.at(1).backward) {
    const std::string name = op.name.substr(op.name.rfind('.') + 1);
    if (op.recompute || op.function == Function::selective_scan_backward) ops.push_back(name);
    if (name == "out_proj") ops.push_back(name);
  }
  CHECK(ops ==
        std::vector<std::string>{"out_proj", "gated", "out_proj", "conv1d", "dt_proj", "scan"});
}
