// Descriptions of models: kinds and order of layers, figures derived by hand, patterns of names.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "base/json.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/patterns.hpp"
#include "workloads/models/walk.hpp"

using namespace shardsim;
using namespace shardsim::models;

namespace {

ModelSpec read(const char* text) {
  const Json json = parse_json(text, "config.json");
  return read_model(JsonReader(json, {"config.json", ""}), "model");
}

const char* const small_llama = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64,
  "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "intermediate_size": 128, "vocab_size": 100})";

}  // namespace

TEST_CASE("Layers that are alike are one kind") {
  const ModelSpec spec = read(small_llama);
  CHECK(spec.stacks[0].kinds.size() == 1);
  CHECK(spec.stacks[0].order == std::vector<int>{0, 0, 0});
  CHECK(spec == read(small_llama));
}

TEST_CASE("Gemma 3 has five windows to each full layer, tables of its own for both") {
  const ModelSpec spec = read(R"({"architectures": ["Gemma3ForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 100, "sliding_window": 512})");
  CHECK(spec.stacks[0].order == std::vector<int>{0, 0, 0, 0, 0, 1, 0});
  CHECK(std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body).window == 512);
  CHECK(std::get<Attention>(spec.stacks[0].kinds[1].branches[0].body).window == 0);
}

TEST_CASE("A description prints its kinds and where they are") {
  CHECK(to_text(read(small_llama)) ==
        "model.layers, width 64\n"
        "  0-2: full\n"
        "    RMS norm, attention, 4 heads of 16, 2 of keys, rotary 16\n"
        "    RMS norm, gated MLP of 128, silu\n");
}

TEST_CASE("Llama's figures are those of the formulas") {
  const ModelCounts n = count(read(small_llama), {.batch = 2, .sequence = 16}, {});
  // Per layer: q and o 64 * 64, k and v 32 * 64, three matrices 64 * 128, two norms.
  const std::int64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64;
  CHECK(n.total_parameters == 3 * layer + 2 * 100 * 64 + 64);
  CHECK(n.active_parameters == n.total_parameters);
  // 2 x tokens x matrices, the head's among them; attention 4 b s^2 heads head_dim.
  const std::int64_t tokens = 2 * 16;
  CHECK(n.forward.at("mm") == 2 * tokens * (3 * (layer - 2 * 64) + 100 * 64));
  CHECK(n.forward.at("_scaled_dot_product_flash_attention") == 3 * 4 * 2 * 16 * 16 * 64);
  CHECK(n.backward.at("mm") == 2 * n.forward.at("mm"));
  CHECK(n.cache_bytes_per_token == 3 * 2 * 32 * 2);  // 2 key heads of 16, keys and values, bf16
}

TEST_CASE("Saved activations of a Llama layer, tensor by tensor") {
  const ModelCounts n = count(read(small_llama), {.batch = 2, .sequence = 16}, {});
  // What the golden records' README says of one layer: T tokens, h, key width k, f, heads a.
  const std::int64_t tokens = 32, h = 64, k = 32, f = 128, heads = 4;
  const std::int64_t norms = 2 * (4 * tokens * h + 4 * tokens + 2 * tokens * h);
  const std::int64_t attention = 3 * 2 * tokens * h + 2 * 2 * tokens * k + 4 * tokens * heads + 24;
  const std::int64_t mlp = 2 * tokens * h + 4 * 2 * tokens * f;  // input; gate, silu, up, product
  CHECK(n.layers[1].saved_bytes == norms + attention + mlp);
  // cos and sin, once: [1, s, head_dim] each.
  CHECK(n.layers[0].saved_bytes == n.layers[1].saved_bytes + 2 * 16 * 16 * 2);
}

TEST_CASE("A token visits its share of the routed parameters") {
  const ModelCounts n = count(read(R"({"architectures": ["MixtralForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 100,
    "num_local_experts": 4, "num_experts_per_tok": 1})"),
                              {.batch = 1, .sequence = 8}, {});
  const std::int64_t routed = 2 * 4 * 3 * 64 * 128;
  CHECK(n.active_parameters == n.total_parameters - routed + routed / 4);
  CHECK(n.forward.at("_grouped_mm") == 2 * 2 * 8 * 3 * 64 * 128);  // 8 rows, two layers
}

TEST_CASE("Names that differ in numbers are patterns") {
  const std::vector<std::string> names = {"a.0.w",   "a.1.w",   "a.3.w",   "head",
                                          "b.0.e.1", "b.0.e.0", "b.1.e.0", "b.1.e.1"};
  const auto patterns = fold_patterns(names, std::vector<std::string>(names.size()));
  REQUIRE(patterns.size() == 3);
  CHECK(patterns[0].text() == "a.{0-1,3}.w");
  CHECK(patterns[1].text() == "head");
  CHECK(patterns[2].text() == "b.{0-1}.e.{0-1}");
  CHECK(patterns[2].sets == std::vector<std::string>{"0-1", "0-1"});
}

TEST_CASE("Numbers that are no product of sets are several patterns") {
  const auto patterns = fold_patterns({"b.0.0", "b.0.1", "b.1.0"}, {"", "", ""});
  REQUIRE(patterns.size() == 2);
  CHECK(patterns[0].text() == "b.{0}.{0-1}");
  CHECK(patterns[1].text() == "b.{1}.{0}");
}

TEST_CASE("Layers alone have the names and shapes that they have under a head") {
  const auto named = [](const ModelSpec& spec) {
    std::map<std::string, Shape> shapes;
    for (const Parameter& p : count(spec, {.batch = 1, .sequence = 8}, {}).parameters) {
      shapes[p.name] = p.shape;
    }
    return shapes;
  };
  std::string text = small_llama;
  std::map<std::string, Shape> expected;
  for (const auto& [name, shape] : named(read(text.c_str()))) {
    if (name.starts_with("model.")) expected[name.substr(6)] = shape;
  }
  const std::string_view causal = "LlamaForCausalLM";
  text.replace(text.find(causal), causal.size(), "LlamaModel");
  CHECK(named(read(text.c_str())) == expected);

  text.replace(text.find("LlamaModel"), 10, "LlamaForSequenceClassification");
  const std::map<std::string, Shape> scored = named(read(text.c_str()));
  CHECK(scored.at("score.weight") == Shape{2, 64});  // two classes where the file names none
  CHECK(scored.size() == expected.size() + 1);
}

TEST_CASE("Text passes by the layers that attend to images alone") {
  const auto counts = [](const char* layers) {
    const std::string text = std::string(R"({"architectures": ["MllamaForCausalLM"],
      "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
      "intermediate_size": 96, "vocab_size": 100, )") +
                             layers + "}";
    return count(read(text.c_str()), {.batch = 1, .sequence = 8}, {});
  };
  const ModelCounts two = counts(R"("num_hidden_layers": 2, "cross_attention_layers": [7])");
  const ModelCounts three = counts(R"("num_hidden_layers": 3, "cross_attention_layers": [1])");
  CHECK(three.forward_flops == two.forward_flops);
  CHECK(three.saved_bytes == two.saved_bytes);
  // q and o, k and v of half as many heads, the MLP, two norms of the stream and two of heads of
  // 16, two gates.
  CHECK(three.total_parameters - two.total_parameters ==
        2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96 + 2 * 64 + 2 * 16 + 2);
}

// What transformers 5.23.0 builds of each class with the key in either configuration
// (tests/oracle/model_cases.json has some of these).
TEST_CASE("Whose configuration ties embedding and head is the class's") {
  const auto tied = [](const std::string& architecture, const std::string& text,
                       const std::string& rest, const std::string& model_says,
                       const std::string& text_says) {
    const auto key = [](const std::string& value) {
      return value.empty() ? value : ", \"tie_word_embeddings\": " + value;
    };
    const std::string file =
        R"({"architectures": [")" + architecture + R"("], "text_config": {"model_type": ")" + text +
        R"(", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
           "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100)" +
        key(text_says) + "}, " + rest + key(model_says) + "}";
    return !read(file.c_str()).head.tied_to.empty();
  };
  const std::string images =
      R"("vision_config": {"model_type": "clip_vision_model", "num_hidden_layers": 1})";
  const std::string sounds =
      R"("audio_config": {"model_type": "qwen2_audio_encoder", "encoder_layers": 1})";
  CHECK(tied("LlavaForConditionalGeneration", "llama", images, "false", "true"));
  CHECK(tied("LlavaForConditionalGeneration", "llama", images, "true", "false"));
  CHECK_FALSE(tied("LlavaForConditionalGeneration", "llama", images, "", ""));
  CHECK_FALSE(tied("LlavaNextForConditionalGeneration", "llama", images, "", "true"));
  CHECK(tied("LlavaNextForConditionalGeneration", "llama", images, "true", "false"));
  CHECK_FALSE(tied("Qwen2AudioForConditionalGeneration", "qwen2", sounds, "true", "true"));
}

TEST_CASE("What classes of encoders do not do is said with the key") {
  const auto error = [](const char* name, const char* key, const Json& value) -> std::string {
    Json json = parse_json(R"({"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
      "intermediate_size": 64, "vocab_size": 100})",
                           "m.json");
    json["architectures"] = {name};
    json[key] = value;
    try {
      static_cast<void>(read_known_model(JsonReader(json, {"m.json", ""}), "m"));
    } catch (const InputError& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK(error("IBertForMaskedLM", "quant_mode", true) ==
        "m.json: /quant_mode: only false is supported");
  CHECK(error("XmodForMaskedLM", "default_language", "de_DE") ==
        "m.json: /default_language: is none of the languages");
  CHECK(
      error("NystromformerForMaskedLM", "num_landmarks", 16) ==
      "m.json: /num_landmarks: only segment_means_seq_len is supported: the class multiplies fp32 "
      "by bf16 otherwise");
  CHECK(error("BertForMultipleChoice", "num_labels", 4).empty());
}
