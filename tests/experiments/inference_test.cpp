// Steps of inference: caches against their arithmetic, decoding against laws of its parts.
#include <catch2/catch.hpp>

#include <set>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::inference_test {
namespace {

Prediction predicted(const std::string& workload, const std::string& rest = "") {
  const std::string text =
      R"({"workload": {"model": "gpt2", )" + workload + "}" +
      (rest.empty() ? R"(, "mesh": {"tp": 1}, "strategy": "megatron")" : rest) +
      R"(, "machine": "dgx-h100"})";
  return predict(read_experiments(parse_json(text, "a.json"), "a.json").front(), {});
}

std::int64_t held(const Prediction& prediction, BufferCategory category) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : prediction.step.plan.programs[0].buffers) {
    if (buffer.category == category) bytes += buffer.bytes.count();
  }
  return bytes;
}

std::string error_of(const std::string& workload) {
  try {
    (void)predicted(workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// The vocabulary of 50,257 as Megatron pads it, to a multiple of 128.
constexpr std::int64_t layers = 12, width = 768, vocabulary = 50304, batch = 4;

}  // namespace

TEST_CASE("A cache has keys and values of all tokens, those of the step among them") {
  const auto cached = [](std::int64_t tokens, std::int64_t element) {
    return batch * tokens * 2 * width * layers * element;
  };
  const Prediction decode = predicted(R"("step": "decode", "batch": 4, "context": 511)");
  CHECK(held(decode, BufferCategory::cache) == cached(512, 2));
  const Prediction prefill = predicted(R"("step": "prefill", "batch": 4, "sequence": 512)");
  CHECK(held(prefill, BufferCategory::cache) == cached(512, 2));
  const Prediction generate =
      predicted(R"("step": "generate", "batch": 4, "sequence": 512, "generate": 100)");
  CHECK(held(generate, BufferCategory::cache) == cached(612, 2));
  const Prediction narrow = predicted(
      R"("step": "decode", "batch": 4, "context": 511, "precision": {"kv_cache": "fp8"})");
  CHECK(held(narrow, BufferCategory::cache) == cached(512, 1));
}

// A token is through all stages before the next one begins; a stage of two has half of the layers.
TEST_CASE("Stages cost generation as much as they spare a microbatch") {
  const std::string generate = R"("step": "generate", "batch": 1, "sequence": 512, "generate": 50)";
  const auto whole = static_cast<double>(predicted(generate).result.step_time.count());
  const Prediction staged = predicted(generate, R"(, "mesh": {"pp": 2}, "strategy": "megatron")");
  const auto both = static_cast<double>(staged.result.step_time.count());
  CHECK(both > whole);
  CHECK(both < 1.25 * whole);  // and 49 messages each way, long beside steps of GPT-2
}

TEST_CASE("Microbatches of inference are as many as stages, or divide what a device has") {
  const auto microbatches = [](int batch, const std::string& more) {
    const Prediction prediction =
        predicted(R"("step": "prefill", "sequence": 64, "batch": )" + std::to_string(batch) + more,
                  R"(, "mesh": {"pp": 3, "dp": 2}, "strategy": "megatron")");
    std::set<std::int32_t> seen;
    for (const Task& task : prediction.step.plan.programs[0].tasks) seen.insert(task.microbatch);
    return seen.size();
  };
  CHECK(microbatches(12, "") == 3);
  CHECK(microbatches(16, "") == 2);  // 8 of a device
  CHECK(microbatches(14, "") == 1);  // 7 of a device
  CHECK(microbatches(12, R"(, "microbatches": 6)") == 6);
}

TEST_CASE("Heads of a cache are split as those of attention") {
  const std::string decode = R"("step": "decode", "batch": 4, "context": 511)";
  const Prediction split = predicted(decode, R"(, "mesh": {"tp": 4}, "strategy": "megatron")");
  CHECK(4 * held(split, BufferCategory::cache) == held(predicted(decode), BufferCategory::cache));
  const Prediction dealt = predicted(decode, R"(, "mesh": {"dp": 4}, "strategy": "megatron")");
  CHECK(4 * held(dealt, BufferCategory::cache) == held(predicted(decode), BufferCategory::cache));
}

// Of grouped heads those of keys and values; of a window its tokens.
TEST_CASE("A window's cache is its window") {
  const auto cache = [](const std::string& window, std::int64_t context) {
    const std::string text =
        R"({"workload": {"model": {"base": "llama-3.1-8b", "model_type": "mistral",
             "architectures": ["MistralForCausalLM"], "sliding_window": )" +
        window + R"(}, "step": "decode", "batch": 1, "context": )" + std::to_string(context) +
        R"(}, "mesh": {"tp": 1}, "strategy": "megatron", "machine": "dgx-h100"})";
    return held(predict(read_experiments(parse_json(text, "a.json"), "a.json").front(), {}),
                BufferCategory::cache);
  };
  // Of 32 layers keys and values of 8 heads of 128, in 2 bytes.
  constexpr std::int64_t token = 32 * 2 * 8 * 128 * 2;
  constexpr std::int64_t window = 1024, beyond_it = 8191, within_it = 511;
  CHECK(cache("null", beyond_it) == (beyond_it + 1) * token);
  CHECK(cache(std::to_string(window), beyond_it) == window * token);
  CHECK(cache(std::to_string(window), within_it) == (within_it + 1) * token);
}

// Layers that are drawn, kept as they are counted: of DiffLlama two layers of keys and values of 4
// heads of 32; of MiniMax a layer of 2 heads of keys and one of lightning attention, 8 states of
// 32 x 32. All in 2 bytes.
TEST_CASE("What drawn layers keep is a cache of tokens, or a state") {
  const auto cache = [](const std::string& model, const std::string& step) {
    const std::string text = R"({"workload": {"model": {"hidden_size": 256, "vocab_size": 1000,
        "intermediate_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2, )" +
                             model + "}, " + step +
                             R"(, "batch": 4}, "mesh": {"tp": 2}, "strategy": "megatron",
                             "machine": "dgx-h100"})";
    return 2 * held(predict(read_experiments(parse_json(text, "a.json"), "a.json").front(), {}),
                    BufferCategory::cache);
  };
  constexpr std::int64_t tokens = 128, heads_of_keys = 4, head_dim = 32, examples = 4;
  const std::string prompt = R"("step": "prefill", "sequence": 128)";
  const std::string next = R"("step": "decode", "context": 127)";
  for (const std::string& step : {prompt, next}) {
    CHECK(cache(R"("architectures": ["DiffLlamaForCausalLM"], "num_key_value_heads": 4)", step) ==
          examples * 2 * tokens * 2 * heads_of_keys * head_dim * 2);
    CHECK(cache(R"("architectures": ["MiniMaxForCausalLM"], "num_key_value_heads": 2,
                   "block_size": 16)",
                step) == examples * (tokens * 2 * 2 * head_dim + 8 * head_dim * head_dim) * 2);
  }
}

// A token's products: 12 h^2 in each layer and the head; attention 4 h for each token that it sees.
TEST_CASE("A decoding step computes one token of each sequence") {
  const Prediction decode = predicted(R"("step": "decode", "batch": 4, "context": 511)");
  const std::int64_t products = 2 * (12 * layers * width * width + vocabulary * width);
  const std::int64_t attention = 4 * width * 512 * layers;
  CHECK(decode.step.plan.subject.model_flops.count() == Approx(batch * (products + attention)));
  CHECK(decode.step.plan.subject.tokens_per_step == batch);
}

TEST_CASE("Generating is a prefill, then decoding step by step") {
  const Prediction all =
      predicted(R"("step": "generate", "batch": 4, "sequence": 128, "generate": 34)");
  const Prediction prefill = predicted(R"("step": "prefill", "batch": 4, "sequence": 128)");
  // 33 steps behind 128 to 160 tokens, 144 on average.
  const Prediction decode = predicted(R"("step": "decode", "batch": 4, "context": 144)");
  CHECK(all.result.step_time.count() ==
        Approx(prefill.result.step_time.count() + 33 * decode.result.step_time.count()));
  const Prediction one =
      predicted(R"("step": "generate", "batch": 4, "sequence": 128, "generate": 1)");
  CHECK(one.result.step_time == prefill.result.step_time);
}

TEST_CASE("Quantized weights are stored and read as they are") {
  const Prediction wide = predicted(R"("step": "decode", "batch": 1, "context": 64)");
  const Prediction narrow = predicted(
      R"("step": "decode", "batch": 1, "context": 64, "precision": {"parameters": "int8"})");
  // Of the layers' products a byte less each; the table, which is the head as well, stays.
  CHECK(held(wide, BufferCategory::parameters) - held(narrow, BufferCategory::parameters) ==
        12 * layers * width * width);
  CHECK(narrow.result.step_time < wide.result.step_time);
  // Of 4 bits two lie in a byte.
  const Prediction narrowest = predicted(
      R"("step": "decode", "batch": 1, "context": 64, "precision": {"parameters": "int4"})");
  CHECK(2 * (held(narrow, BufferCategory::parameters) -
             held(narrowest, BufferCategory::parameters)) ==
        12 * layers * width * width);
}

TEST_CASE("What steps of inference cannot be") {
  using Catch::Matchers::Contains;
  CHECK_THAT(error_of(R"("step": "decode", "batch": 1)"),
             Contains("/workload: \"step\": \"decode\" needs \"context\""));
  CHECK_THAT(error_of(R"("step": "train", "batch": 1, "sequence": 8, "context": 8)"),
             Contains("/workload/context: is of \"step\": \"decode\", this is \"train\""));
  const std::string positions = "1024";  // GPT-2's
  CHECK_THAT(error_of(R"("step": "decode", "batch": 1, "context": )" + positions),
             Contains("the model has " + positions + " positions, fewer than the sequence's"));
  CHECK_THAT(error_of(R"("step": "train", "batch": 1, "sequence": 8,
                         "precision": {"kv_cache": "fp8"})"),
             Contains("/precision/kv_cache: is of steps of inference"));
}

// DeepSeek-V3's first three layers are dense (first_k_dense_replace of its config.json).
TEST_CASE("Experts are dealt out of mixtures, of which one layer may be dense") {
  const std::string first_layer = R"({"workload": {"model": "deepseek-v3", "step": "layer",
    "layer": 0, "batch": 8, "sequence": 512}, "mesh": {"dp": 8}, "machine": "dgx-h100",
    "strategy": {"name": "megatron", "experts": {"parallel": 8}}})";
  CHECK_NOTHROW(predict(read_experiments(parse_json(first_layer, "a.json"), "a.json").front(), {}));
  CHECK_THROWS_WITH(
      predicted(
          R"("step": "train", "batch": 8, "sequence": 64)",
          R"(, "mesh": {"dp": 8}, "strategy": {"name": "megatron", "experts": {"parallel": 8}})"),
      Catch::Contains("a.json: /strategy/experts/parallel: gpt2 has no experts"));
}

}  // namespace shardsim::inference_test
