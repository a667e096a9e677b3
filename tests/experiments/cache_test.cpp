// Caches by kind of layer: bytes per device, what a decoding step reads of them and computes.
// Expected numbers are derived from the models' sizes, which stand beside.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::cache_test {
namespace {

const std::string one_device = R"("mesh": {"tp": 1}, "strategy": "megatron")";

Plan planned(const std::string& model, const std::string& step,
             const std::string& rest = one_device) {
  const std::string text = R"({"workload": {"model": )" + model + ", " + step + "}, " + rest + "}";
  return compile_experiment(read_experiments(parse_json(text, "a.json"), "a.json").front()).plan;
}

std::int64_t cached(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (buffer.category == BufferCategory::cache) bytes += buffer.bytes.count();
  }
  return bytes;
}

// The first kernel of an op; the plan's kernels are in the order in which they first run.
const Kernel& kernel(const Plan& plan, const std::string& op) {
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(),
                                  [&](const Kernel& one) { return one.op == op; });
  REQUIRE(found != plan.kernels.end());
  return *found;
}

bool runs(const Plan& plan, const std::string& name) {
  return std::any_of(
      plan.programs[0].tasks.begin(), plan.programs[0].tasks.end(), [&](const Task& task) {
        return plan.names[static_cast<std::size_t>(task.name)].find(name) != std::string::npos;
      });
}

std::string decode(std::int64_t batch, std::int64_t context, const std::string& more = "") {
  return R"("step": "decode", "batch": )" + std::to_string(batch) + R"(, "context": )" +
         std::to_string(context) + more;
}

std::string over(const std::string& mesh, const std::string& more = "") {
  return R"("mesh": {)" + mesh + R"(}, "strategy": {"name": "megatron")" + more + "}";
}

constexpr std::int64_t two = 2;  // bytes of bf16

// DeepSeek-V3: 61 layers, latents of 512 and 64 turned numbers of keys, 128 heads of 128.
constexpr std::int64_t latent = 512, turned = 64, heads = 128, nope = 128, value = 128;
const std::string deepseek = R"("deepseek-v3")";

// 4 layers of Mamba: 512 channels, 16 numbers of state each, a convolution of 4 tokens.
const std::string mamba = R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba",
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "state_size": 16,
    "conv_kernel": 4, "expand": 2, "time_step_rank": 16, "vocab_size": 1024,
    "residual_in_fp32": true})";
constexpr std::int64_t mamba_state = two * 4 * 512 * (4 + 16);

// 2 recurrent blocks of 256 channels, of which 3 tokens of bf16 are kept and a state of fp32 (as
// transformers' RecurrentGemma does, and `model` counts), and one layer that sees 64 tokens by one
// head of 64.
const std::string griffin = R"({"architectures": ["RecurrentGemmaForCausalLM"],
    "model_type": "recurrent_gemma", "hidden_size": 256, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 1, "lru_width": 256,
    "intermediate_size": 768, "vocab_size": 1000, "attention_window_size": 64, "conv1d_width": 4,
    "block_types": ["recurrent", "recurrent", "attention"]})";
constexpr std::int64_t griffin_state = 2 * 256 * (3 * two + 4);
constexpr std::int64_t griffin_window = 2 * 64 * 64 * two;

// Every fourth of 8 layers attends with 2 heads of keys of 64; the others have 4 heads of keys of
// 32, with 2 heads of values of 32 each, and a convolution of 4 tokens over q, k and v.
const std::string qwen_next = R"({"architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next", "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "vocab_size": 1024, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 32, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
    "linear_value_head_dim": 32, "mlp_only_layers": [], "decoder_sparse_step": 1,
    "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2,
    "partial_rotary_factor": 0.25, "shared_expert_intermediate_size": 64})";
constexpr std::int64_t rule_channels = 512, rule_state = 8192;  // 2 x 4 x 32 + 8 x 32; 8 x 32 x 32
constexpr std::int64_t qwen_state = 6 * (rule_channels * 4 + rule_state) * two;
constexpr std::int64_t qwen_token = two * 2 * 2 * 2 * 64;

// 2 layers on either side, 4 heads of 16.
const std::string t5 = R"({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
    "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_decoder_layers": 2,
    "num_heads": 4, "vocab_size": 512})";
constexpr std::int64_t t5_token = two * 2 * 2 * 4 * 16;

}  // namespace

TEST_CASE("Latent attention keeps a latent and a turned part of the key of each token") {
  constexpr std::int64_t token = two * 61 * (latent + turned);  // 70,272 bytes
  CHECK(cached(planned(deepseek, decode(4, 511))) == token * 4 * 512);
  // It is whole on each device of the model axis, dealt out with the sequences over the data axis
  // and with the context over its own.
  CHECK(cached(planned(deepseek, decode(4, 511), over(R"("tp": 8)"))) == token * 4 * 512);
  CHECK(cached(planned(deepseek, decode(4, 511), over(R"("dp": 4)"))) == 512 * token);
  CHECK(cached(planned(deepseek, decode(4, 511), over(R"("cp": 2)"))) == token * 4 * 256);
  CHECK(cached(planned(deepseek, R"("step": "prefill", "batch": 4, "sequence": 512)")) ==
        token * 4 * 512);
  CHECK(cached(planned(deepseek, decode(4, 511, R"(, "precision": {"kv_cache": "fp8"})"))) ==
        token * 4 * 512 / two);
}

TEST_CASE("Decoding attends to latents as they lie") {
  constexpr std::int64_t batch = 4, tokens = 512;
  const Plan plan = planned(deepseek, decode(batch, tokens - 1));
  const Kernel& attention = kernel(plan, "attention");
  CHECK(attention.flops.count() ==
        Approx(2.0 * batch * heads * tokens * (latent + turned + latent)));
  // Latents are read once, as keys and as values; queries are read, results and the logsumexp of
  // each (fp32) written.
  CHECK(attention.bytes.count() == batch * tokens * (latent + turned) * two +
                                       batch * heads * (latent + turned + latent) * two +
                                       batch * heads * 4);
  // Of 8 devices each has an eighth of the heads, and reads all latents.
  const Plan split = planned(deepseek, decode(batch, tokens - 1), over(R"("tp": 8)"));
  CHECK(kernel(split, "attention").flops.count() == Approx(attention.flops.count() / 8));
  CHECK(kernel(split, "attention").bytes.count() ==
        batch * tokens * (latent + turned) * two +
            batch * heads / 8 * (latent + turned + latent) * two + batch * heads / 8 * 4);
  CHECK_FALSE(runs(plan, "k_rope.heads"));
}

// Into queries and out of results: each of kv_b_proj's halves is read once.
TEST_CASE("Halves of the matrix from latents are multiplied in where decoding needs them") {
  constexpr std::int64_t batch = 4;
  const Plan plan = planned(deepseek, decode(batch, 511));
  double flops = 0;
  std::int64_t bytes = 0;
  for (const Kernel& one : plan.kernels) {
    const bool is_of_heads = one.product && one.product->batch == heads && one.op == "matmul";
    if (!is_of_heads) continue;
    flops += one.flops.count();
    bytes += one.bytes.count();
  }
  CHECK(flops == Approx(2.0 * batch * heads * latent * (nope + value)));
  CHECK(bytes == heads * (nope + value) * latent * two +
                     batch * heads * (nope + latent + latent + value) * two);
}

TEST_CASE("Attention over sequences, experts over all devices") {
  const std::string served = R"(, "experts": {"parallel": 8})";
  const Plan plan = planned(deepseek, decode(64, 511), over(R"("dp": 8)", served));
  CHECK(cached(plan) == two * 8 * 512 * 61 * (latent + turned));
  // Of 256 experts each device has 32: gate and up, each width of expert x width of the model.
  constexpr std::int64_t here = 256 / 8, expert_width = 2048, width = 7168;
  std::int64_t experts = 0;
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (buffer.category != BufferCategory::parameters) continue;
    const std::string name = plan.buffer_name(buffer);
    if (name == "model.layers.60.mlp.experts.gate_up_proj") experts = buffer.bytes.count();
  }
  CHECK(experts == two * here * 2 * expert_width * width);
  const auto sent = [&](const Collective& one) { return one.kind == CollectiveKind::all_to_all; };
  CHECK(std::any_of(plan.collectives.begin(), plan.collectives.end(), sent));
}

// Mixtral: 8 experts of 14336 x 4096, of which a token visits 2. Of a routing that favours none t
// tokens visit 8 (1 - (3/4)^t).
TEST_CASE("Matrices of experts that no token visits are not read") {
  constexpr std::int64_t width = 4096, width_of_expert = 14336, expert = width_of_expert * width;
  const auto read = [](std::int64_t batch, const std::string& rest = one_device) {
    const Plan plan = planned(R"("mixtral-8x7b")", decode(batch, 100), rest);
    const Kernel& up = kernel(plan, "grouped_matmul");
    return static_cast<double>(up.bytes.count()) / static_cast<double>(2 * expert * two);
  };
  // A token comes in and goes to two experts: one row read for each, gate and up written.
  const double rows_of_a_token = 2.0 * (width + 2 * width_of_expert) / (2 * expert);
  CHECK(read(1) == Approx(2 + rows_of_a_token));
  CHECK(read(4) == Approx(8 * (1 - std::pow(3.0 / 4, 4)) + 4 * rows_of_a_token));
  CHECK(read(4, over(R"("dp": 4)")) == Approx(2 + rows_of_a_token));
  CHECK(read(1000) == Approx(8 + 1000 * rows_of_a_token));
}

TEST_CASE("recurrent blocks keep a state that does not grow") {
  const std::int64_t each = griffin_state + griffin_window;
  CHECK(cached(planned(griffin, decode(2, 100))) == 2 * each);
  CHECK(cached(planned(griffin, decode(2, 1000))) == 2 * each);
  CHECK(cached(planned(griffin, R"("step": "prefill", "batch": 2, "sequence": 128)")) == 2 * each);
  CHECK(cached(planned(griffin, decode(2, 100), over(R"("tp": 4)"))) ==
        2 * (griffin_state / 4 + griffin_window));
}

TEST_CASE("Mixers keep a state of fixed size") {
  CHECK(cached(planned(mamba, decode(3, 10))) == 3 * mamba_state);
  CHECK(cached(planned(mamba, decode(3, 100000))) == 3 * mamba_state);
  CHECK(cached(planned(mamba, R"("step": "prefill", "batch": 3, "sequence": 64)")) ==
        3 * mamba_state);
  CHECK(cached(planned(mamba, decode(3, 10), over(R"("tp": 4)"))) == 3 * mamba_state / 4);
  CHECK(cached(planned(qwen_next, decode(2, 99))) == 2 * (qwen_state + 100 * qwen_token));
  CHECK(cached(planned(qwen_next, decode(2, 99), over(R"("tp": 2)"))) ==
        (qwen_state + 100 * qwen_token));
}

TEST_CASE("A decoding step reads a mixer's state and writes it") {
  constexpr std::int64_t batch = 3, channels = 512, state = 16;
  const Plan plan = planned(mamba, decode(batch, 1000));
  const Kernel& update = kernel(plan, "state_update");
  CHECK(update.kernel_class == KernelClass::memory);
  CHECK(update.flops.count() == 9 * batch * channels * state);
  // The state twice; x, step and result; b and c; A, D and the step's bias.
  const std::int64_t each = 2 * channels * state + 3 * channels + 2 * state;
  const std::int64_t all = channels * state + 2 * channels;
  CHECK(update.bytes.count() == (batch * each + all) * two);
  const Kernel& convolution = kernel(plan, "convolution");
  CHECK(convolution.bytes.count() ==
        (batch * (2 * channels * 4 + 2 * channels) + channels * 4 + channels) * two);
  // A prefill writes it and reads none.
  constexpr std::int64_t tokens = 64;
  const Plan prefill =
      planned(mamba, R"("step": "prefill", "batch": 3, "sequence": )" + std::to_string(tokens));
  CHECK(kernel(prefill, "selective_scan").bytes.count() ==
        (batch * (channels * state + tokens * (3 * channels + 2 * state)) + all) * two);
}

TEST_CASE("The step of a linear mixer is a product with its state and a product added to it") {
  const Plan plan = planned(qwen_next, decode(2, 99));
  CHECK(kernel(plan, "state_update").flops.count() == rule_state * 7 * 2);
}

TEST_CASE("A decoder keeps what an encoder left once") {
  const auto kept = [](std::int64_t decoded, std::int64_t encoded) {
    return 3 * (decoded + encoded) * t5_token;
  };
  const Plan plan = planned(t5, decode(3, 9, R"(, "sequence": 200)"));
  CHECK(cached(plan) == kept(10, 200));
  // The prompt of a decoder is one token where nothing else is said.
  CHECK(cached(planned(t5, R"("step": "prefill", "batch": 3, "sequence": 200)")) == kept(1, 200));
  CHECK(cached(planned(t5, R"("step": "prefill", "batch": 3, "sequence": 200,
                              "target_sequence": 5)")) == kept(5, 200));
  CHECK(cached(planned(t5, R"("step": "generate", "batch": 3, "sequence": 200,
                              "generate": 20)")) == kept(21, 200));
  CHECK(cached(planned(t5, decode(4, 9, R"(, "sequence": 200)"), over(R"("tp": 2)"))) ==
        t5_token * 4 * 210 / 2);
}

// Keys and values of the encoder's states are not made again; its parameters stay where they are.
TEST_CASE("An encoder does not run in decoding steps") {
  const Plan plan = planned(t5, decode(3, 9, R"(, "sequence": 200)"));
  CHECK_FALSE(runs(plan, "encoder.block"));
  CHECK_FALSE(runs(plan, "EncDecAttention.k"));
  CHECK(runs(plan, "EncDecAttention.q"));
  CHECK(plan.subject.tokens_per_step == 3);
  const auto held = [](const Plan& of) {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : of.programs[0].buffers) {
      if (buffer.category == BufferCategory::parameters) bytes += buffer.bytes.count();
    }
    return bytes;
  };
  const std::string prefill = R"("step": "prefill", "batch": 4, "sequence": 200)";
  const std::string step = decode(4, 9, R"(, "sequence": 200)");
  CHECK(held(plan) == held(planned(t5, prefill)));
  CHECK(held(planned(t5, step, over(R"("tp": 2)"))) ==
        held(planned(t5, prefill, over(R"("tp": 2)"))));
}

TEST_CASE("A cache in pages is whole pages") {
  // GPT-2: 12 layers, keys and values of 768.
  constexpr std::int64_t token = two * 12 * 2 * 768;
  const auto paged = [](std::int64_t context, std::int64_t block) {
    return cached(
        planned(R"("gpt2")", decode(4, context, R"(, "block_size": )" + std::to_string(block))));
  };
  CHECK(paged(511, 16) == token * 4 * 512);
  CHECK(paged(512, 16) == token * 4 * 528);  // 15 places of the last page are empty
  CHECK(paged(512, 1) == token * 4 * 513);
  // A state has no pages.
  CHECK(cached(planned(mamba, decode(3, 10, R"(, "block_size": 16)"))) == 3 * mamba_state);
  // What attention reads does not grow.
  const auto read = [](const std::string& more) {
    return kernel(planned(R"("gpt2")", decode(4, 512, more)), "attention").bytes;
  };
  CHECK(read(R"(, "block_size": 256)") == read(""));
}

// A window may begin within a page: one more than its tokens fill.
TEST_CASE("A window's pages") {
  const auto of = [](std::int64_t context) {
    return cached(planned(R"({"base": "llama-3.1-8b", "model_type": "mistral",
        "architectures": ["MistralForCausalLM"], "sliding_window": 1024})",
                          decode(1, context, R"(, "block_size": 16)")));
  };
  constexpr std::int64_t token = two * 32 * 2 * 8 * 128;
  CHECK(of(8191) == (1024 + 16) * token);
  CHECK(of(511) == 512 * token);
}

// Partial results are put together by their logsumexp: all devices get those of all (fp32, a number
// for each head), scale their own result and add up.
TEST_CASE("Devices that have parts of a context put their results together") {
  constexpr std::int64_t batch = 4, layers = 12, width = 768, gpt_heads = 12;
  const Plan plan = planned(R"("gpt2")", decode(batch, 511), over(R"("cp": 2)"));
  CHECK(cached(plan) == batch * 256 * layers * 2 * width * two);
  const Plan whole = planned(R"("gpt2")", decode(batch, 511));
  CHECK(kernel(plan, "attention").flops.count() ==
        Approx(kernel(whole, "attention").flops.count() / 2));
  REQUIRE(plan.collectives.size() == 2);
  CHECK(plan.collectives[0].kind == CollectiveKind::all_gather);
  CHECK(plan.collectives[0].payload.count() == 2 * batch * gpt_heads * 4);
  CHECK(plan.collectives[1].kind == CollectiveKind::all_reduce);
  CHECK(plan.collectives[1].payload.count() == batch * width * two);
  // A prefill leaves each device its own tokens, nothing is sent for that.
  const auto gathered = [](const Plan& of) {
    std::int64_t count = 0;
    for (const Collective& one : of.collectives)
      count += static_cast<std::int64_t>(one.parts.size());
    return count;
  };
  const std::string prompt = R"("batch": 4, "sequence": 512)";
  const Plan prefill = planned(R"("gpt2")", R"("step": "prefill", )" + prompt, over(R"("cp": 2)"));
  CHECK(cached(prefill) == batch * 256 * layers * 2 * width * two);
  CHECK(gathered(prefill) >= 1);
  CHECK_FALSE(std::any_of(
      prefill.collectives.begin(), prefill.collectives.end(),
      [](const Collective& one) { return one.reason.find("append") != std::string::npos; }));
}

}  // namespace shardsim::cache_test
