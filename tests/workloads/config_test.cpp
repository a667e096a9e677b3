// Reading model descriptions, and every mistake in one.
#include <catch2/catch.hpp>
#include <set>
#include <tuple>

#include "graph_helpers.hpp"

#include "base/json.hpp"
#include "tests/workloads/scratch_folder.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/harmless_keys.hpp"
#include "workloads/step/step.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

Json shipped(const std::string& name) { return *load_model_config(name, "", {}).json; }

// The message of the error that building `json` ends in; "" when there is none.
std::string error_of(const Json& json, std::optional<std::int64_t> sequence = 128) {
  try {
    static_cast<void>(build_workload({"m", "m.json", OwnedJson(json)}, {1, sequence, DType::bf16}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json with(Json json, const char* key, const Json& value) {
  json[key] = value;
  return json;
}

}  // namespace

TEST_CASE("An architecture that is not known is an error that names the nearest") {
  CHECK(
      error_of(with(shipped("gpt2"), "architectures", {"LlamaForCasualLM"})) ==
      "m.json: /architectures/0: unknown architecture \"LlamaForCasualLM\"; the nearest known "
      "are LlamaForCausalLM, Llama4ForCausalLM, MllamaForCausalLM (shardsim model list shows all). "
      "A step of any model can be read as a StableHLO program: shardsim import stablehlo");
  CHECK(error_of(Json::object()) ==
        "m.json: says neither \"architectures\" nor \"model_type\": not a model's description");
  CHECK(error_of(Json::array()) == "m.json: expected an object, found an array");
}

TEST_CASE("A network over images derives its places from them") {
  const Json resnet{{"architectures", {"ResNetForImageClassification"}}};
  CHECK(error_of(resnet, std::nullopt).empty());
  CHECK(error_of(resnet) ==
        "m.json: a sequence length was given: this model derives it from the image");
}

TEST_CASE("A classifier has from one to a thousand hidden layers") {
  const auto with_hidden = [](std::size_t layers) {
    return Json{{"model_type", "mlp_classifier"},
                {"inputs", 1},
                {"hidden", std::vector<int>(layers, 1)},
                {"classes", 1}};
  };
  CHECK(error_of(with_hidden(0), std::nullopt) ==
        "m.json: /hidden: at least one hidden layer is needed");
  CHECK(error_of(with_hidden(1001), std::nullopt) ==
        "m.json: /hidden: 1001 hidden layers are more than 1000");
}

TEST_CASE("Sizes are needed and must be sizes") {
  Json missing = shipped("llama-3.1-8b");
  missing.erase("intermediate_size");
  CHECK(error_of(missing) == "m.json: missing key \"intermediate_size\"");
  const auto hidden = [](const Json& size) {
    return error_of(with(shipped("llama-3.1-8b"), "hidden_size", size));
  };
  const std::string range = " is out of range, must be from 1 to 16777216";
  CHECK(hidden(0) == "m.json: /hidden_size: 0" + range);
  CHECK(hidden(-1) == "m.json: /hidden_size: -1" + range);
  CHECK(hidden(9223372036854775808ULL) == "m.json: /hidden_size: 9223372036854775808" + range);
  CHECK(hidden("4096") == "m.json: /hidden_size: expected an integer, found a string");
}

TEST_CASE("A key that is nearly one that matters is a typo, others are passed over") {
  Json typo = shipped("qwen3-1.7b");
  typo.erase("head_dim");
  CHECK(error_of(with(typo, "head_dims", 128)) ==
        "m.json: unknown key \"head_dims\", did you mean \"head_dim\"?");
  Json real = shipped("llama-3.1-8b");
  real.update(parse_json(R"({"bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009],
    "initializer_range": 0.02, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "torch_dtype": "bfloat16",
    "attention_dropout": 0.0, "transformers_version": "4.43.0", "use_cache": true})",
                         "real"));
  CHECK(error_of(real).empty());
  CHECK(error_of(with(shipped("gpt2"), "n_ctx", 1024)).empty());
}

TEST_CASE("A key is used, known to change nothing, or an error") {
  const std::string unknown =
      ": unknown key: it is neither used nor known to change nothing; leave it out if it does not "
      "matter";
  CHECK(error_of(with(shipped("llama-3.1-8b"), "residual_multiplier", 0.2)) ==
        "m.json: /residual_multiplier" + unknown);
  // Of another architecture: GPT2Config has no such key.
  CHECK(error_of(with(shipped("gpt2"), "mlp_bias", true)) == "m.json: /mlp_bias" + unknown);
  for (const HarmlessKey& key : harmless_keys()) {
    if (key.key == "max_position_embeddings") continue;  // another name for GPT-2's n_positions
    CHECK(error_of(with(shipped("gpt2"), std::string(key.key).c_str(), nullptr)).empty());
    CHECK_FALSE(key.reason.empty());
  }
}

TEST_CASE("What a model is made of is said of files whose every key is known") {
  const auto error = [](const char* text) -> std::string {
    const Json json = parse_json(text, "m.json");
    try {
      static_cast<void>(read_known_model(JsonReader(json, {"m.json", ""}), "m"));
    } catch (const InputError& failure) {
      return failure.what();
    }
    return "";
  };
  const std::string unknown =
      ": unknown key: it is neither used nor known to change nothing; leave it out if it does not "
      "matter";
  const char* const vit = R"({"architectures": ["ViTForImageClassification"], "hidden_size": 64,
    "num_attention_heads": 4, "encoder_stride": 16, "_name_or_path": "x", "pruned_heads": {}})";
  CHECK(error(vit).empty());
  CHECK(error(R"({"architectures": ["ViTForImageClassification"], "register_tokens": 4})") ==
        "m.json: /register_tokens" + unknown);
  CHECK(error(R"({"architectures": ["ViTForImageClassification"], "hiden_size": 64})") ==
        "m.json: unknown key \"hiden_size\", did you mean \"hidden_size\"?");
  // Objects that a reader looks into are read as strictly.
  CHECK(error(R"({"architectures": ["CLIPModel"], "text_config": {}, "vision_config":
    {"registers": 4}})") == "m.json: /vision_config/registers" + unknown);
  CHECK(error(R"({"architectures": ["BertModel"], "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100,
    "add_cross_attention": true})") == "m.json: /add_cross_attention: true is not supported");
  // How weights are stored does not matter to it, unlike to a step.
  CHECK(error(R"({"architectures": ["ViTForImageClassification"], "quantization_config":
    {"bits": 4}})")
            .empty());
}

TEST_CASE("Numbers that Python writes and JSON does not have are passed over in a config.json") {
  const ScratchFolder folder;
  const std::string path = folder.write("m.json", R"({"model_type": "mamba2", "name": "Infinity \"",
    "time_step_limit": [0.0, Infinity, -Infinity]})");
  const ModelConfig config = load_model_config(path, "", {});
  CHECK((*config.json)["time_step_limit"] == parse_json("[0.0, null, null]", "x"));
  CHECK((*config.json)["name"] == "Infinity \"");
}

// docs/models.md shows people the table of harmless_keys.cpp.
TEST_CASE("The list of keys that change nothing is in the documents") {
  std::ifstream file(SHARDSIM_SOURCE_DIR "/docs/models.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const HarmlessKey& key : harmless_keys()) {
    INFO(key.key);
    CHECK(text.find("`" + std::string(key.key) + "`") != std::string::npos);
    CHECK(text.find(std::string(key.reason)) != std::string::npos);
  }
}

TEST_CASE("GPT-2's sizes go by two names") {
  Json json = shipped("gpt2");
  for (const auto& [ours, alias, first] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"n_embd", "hidden_size", "hidden_size"},
           {"n_layer", "num_hidden_layers", "num_hidden_layers"},
           {"n_head", "num_attention_heads", "num_attention_heads"},
           {"n_positions", "max_position_embeddings", "n_positions"}}) {
    const std::string second = first == ours ? alias : ours;
    CHECK(error_of(with(json, alias.c_str(), 4)) ==
          "m.json: /" + second + ": is another name for \"" + first + "\", which is there");
    json[alias] = json[ours];
    json.erase(ours);
  }
  CHECK(parameter_count(build_workload({"m", "m.json", OwnedJson(json)}, {1, 16, DType::bf16})) ==
        124'439'808);
}

// What transformers 5.23.0 counts for the same files (sum of parameters() over the module tree).
TEST_CASE("Keys that change the parameters do") {
  const auto count = [](const char* model, const Json& changes) {
    Json json = shipped(model);
    json.update(changes);
    return parameter_count(build_workload({"m", "m.json", OwnedJson(json)}, {1, 16, DType::bf16}));
  };
  // lm_head.weight [50257, 768] of its own.
  CHECK(count("gpt2", {{"tie_word_embeddings", false}}) == 124'439'808 + 50257 * 768);
  // c_fc [768, n] with n biases, c_proj [n, 768]; n_inner of 3072 is the default.
  CHECK(count("gpt2", {{"n_inner", 1024}}) == 124'439'808 - 12 * (3072 - 1024) * (768 + 1 + 768));
  // q 4096, k and v 1024 each, o 4096; gate and up 14336 each, down 4096.
  CHECK(count("llama-3.1-8b", {{"attention_bias", true}}) ==
        8'030'261'248 + 32 * (4096 + 2 * 1024 + 4096));
  CHECK(count("llama-3.1-8b", {{"mlp_bias", true}}) == 8'030'261'248 + 32 * (2 * 14336 + 4096));
  CHECK(count("llama-3.1-8b", {{"tie_word_embeddings", true}}) == 8'030'261'248 - 128256LL * 4096);
  // q and o of 32 x 64 rows, k and v of 8 x 64.
  CHECK(count("llama-3.1-8b", {{"head_dim", 64}}) ==
        8'030'261'248 - 32LL * 4096 * 64 * (2 * 32 + 2 * 8));
}

TEST_CASE("Biases are added by the layers that have them, and get gradients") {
  Json json = shipped("llama-3.1-8b");
  json.update({{"attention_bias", true}, {"mlp_bias", true}});
  Workload w = build_workload({"m", "m.json", OwnedJson(json)}, {1, 16, DType::bf16});
  add_backward(w, {});
  const Block& layer = block_of(w, "model.layers.{}");
  CHECK(with_function(layer.forward, "linear").size() == 7);
  std::set<std::string> gradients;
  for (const Tensor& tensor : w.tensors) {
    if (tensor.role == TensorRole::parameter_gradient) gradients.insert(tensor.name);
  }
  CHECK(gradients.contains("model.layers.{}.self_attn.k_proj.bias.grad"));
  CHECK(gradients.contains("model.layers.{}.mlp.down_proj.bias.grad"));
}

// Qwen3Config's own defaults: head_dim 128 and 32 heads of keys, whatever the other sizes; a window
// only where it is used and some layer is above max_window_layers.
TEST_CASE("Qwen3's defaults are those of its class") {
  Json json = shipped("qwen3-1.7b");
  json.erase("head_dim");
  json["num_attention_heads"] = 32;
  json.erase("num_key_value_heads");
  const Workload w = build_workload({"m", "m.json", OwnedJson(json)}, {1, 16, DType::bf16});
  CHECK(w.labels[static_cast<std::size_t>(w.label("head_dim"))].size == 128);
  CHECK(w.labels[static_cast<std::size_t>(w.label("kv_heads"))].size == 32);
  CHECK(error_of(with(shipped("qwen3-1.7b"), "mlp_bias", true)).find("unknown key") !=
        std::string::npos);
}

// From max_window_layers on, of 28; of 128 tokens a window of 32 leaves r (1 - r/2) with r = 1/4.
TEST_CASE("Windowed layers are a kind of their own") {
  Json windowed =
      with(with(shipped("qwen3-1.7b"), "use_sliding_window", true), "sliding_window", 32);
  windowed["max_window_layers"] = 27;
  const Workload w = build_workload({"m", "m.json", OwnedJson(windowed)}, {1, 128, DType::bf16});
  REQUIRE(w.blocks.size() == 4);
  CHECK(w.blocks[1].instances() == 27);
  CHECK(with_function(w.blocks[1].forward, "attention")[0]->work_fraction == 0.5);
  CHECK(w.blocks[2].numbers == std::vector<std::int32_t>{27});
  CHECK(with_function(w.blocks[2].forward, "attention")[0]->work_fraction == 7.0 / 32);
  windowed["max_window_layers"] = 28;
  CHECK(build_workload({"m", "m.json", OwnedJson(windowed)}, {1, 128, DType::bf16}).blocks.size() ==
        3);
}

TEST_CASE("What would change the graph and is not built is refused") {
  const auto llama = [](const char* key, const Json& value) {
    return error_of(with(shipped("llama-3.1-8b"), key, value));
  };
  CHECK(llama("hidden_act", "mish").empty());
  // What is widened to be trained is a note; what stays narrow is another step.
  CHECK(llama("quantization_config", {{"quant_method", "fp8"}}).empty());
  CHECK(llama("quantization_config", {{"quant_method", "bitsandbytes"}}) ==
        "m.json: /quantization_config: is not supported: it is how the checkpoint stores its "
        "weights; without the key the step is in the types of \"workload.precision\"");
  CHECK(llama("gradient_checkpointing", true) ==
        "m.json: /gradient_checkpointing: true is not supported here: the workload says it, "
        "\"rematerialization\": \"full\"");
  CHECK(llama("_attn_implementation", "eager").empty());
  CHECK(llama("_attn_implementation", "paged") ==
        "m.json: /_attn_implementation: \"paged\" is not supported; supported are eager, sdpa, "
        "flash_attention_2, flash_attention_3");
  CHECK(llama("output_attentions", true) == "m.json: /output_attentions: true is not supported");
  CHECK(llama("pruned_heads", {{"0", {1}}}) == "m.json: /pruned_heads: is not supported");
  CHECK(llama("pruned_heads", Json::object()).empty());
  CHECK(llama("rope_parameters", {{"partial_rotary_factor", 0.5}}) ==
        "m.json: /rope_parameters/partial_rotary_factor: only 1 is supported");
  const std::string unknown =
      ": unknown key: it is neither used nor known to change nothing; leave it out if it does not "
      "matter";
  CHECK(llama("sliding_window", 4096) == "m.json: /sliding_window" + unknown);
  CHECK(llama("num_local_experts", 8) == "m.json: /num_local_experts" + unknown);
  CHECK(llama("num_local_experts", 0).empty());
  CHECK(llama("layer_types", {"sliding_attention"}) == "m.json: /layer_types" + unknown);
  CHECK(llama("layer_types", {"full_attention"}).empty());
  CHECK(llama("num_key_value_heads", 7) ==
        "m.json: /num_attention_heads: 32 does not divide by num_key_value_heads 7");
  CHECK(llama("head_dim", 127) == "m.json: head_dim 127 is odd: rotary embedding turns pairs");
  CHECK(error_of(with(shipped("gpt2"), "activation_function", "relu")).empty());
  CHECK(llama("rope_parameters", {{"full_attention", {{"partial_rotary_factor", 0.5}}}}) ==
        "m.json: /rope_parameters/full_attention/partial_rotary_factor: only 1 is supported");
  CHECK(error_of(with(shipped("gpt2"), "n_head", 7)) ==
        "m.json: /n_embd: 768 does not divide by num_attention_heads 7");
  Json renamed = with(shipped("gpt2"), "num_attention_heads", 7);
  renamed.erase("n_head");
  CHECK(error_of(renamed) == "m.json: /n_embd: 768 does not divide by num_attention_heads 7");
  Json defaulted = shipped("qwen3-1.7b");
  defaulted.erase("num_key_value_heads");
  CHECK(
      error_of(defaulted) ==
      "m.json: /num_attention_heads: 16 does not divide by num_key_value_heads 32, which the file "
      "does not say");
  // Qwen3's files name a window that they do not use.
  CHECK(error_of(with(shipped("qwen3-1.7b"), "sliding_window", 4096)).empty());
}

TEST_CASE(
    "Without head_dim it is hidden_size / heads, without kv heads there are as many as heads") {
  Json json = shipped("llama-3.1-8b");
  json.erase("num_key_value_heads");
  const Workload w = build_workload({"m", "m.json", OwnedJson(json)}, {1, 16, DType::bf16});
  CHECK(w.labels[static_cast<std::size_t>(w.label("kv_heads"))].size == 32);
  CHECK(w.labels[static_cast<std::size_t>(w.label("group"))].size == 1);
  CHECK(w.labels[static_cast<std::size_t>(w.label("head_dim"))].size == 128);
}

TEST_CASE("Decoders need a sequence, GPT-2 no longer than its positions; images have none") {
  CHECK(error_of(shipped("gpt2"), std::nullopt) ==
        "m.json: a sequence length is needed: this model reads tokens");
  CHECK(
      error_of(shipped("gpt2"), 1025) ==
      "m.json: /n_positions: the model has 1024 positions, fewer than the sequence's 1025 tokens");
  CHECK(error_of(shipped("vit-b16"), 196) ==
        "m.json: a sequence length was given: this model derives it from the image");
  CHECK(forward_graph("llama-3.1-8b", 3, 128).tokens == 3 * 128);
  CHECK(forward_graph("vit-b16", 3, std::nullopt).tokens == 0);
}

TEST_CASE("A ViT's patches tile its image, and it pools by the mean") {
  const Json vit = shipped("vit-b16");
  CHECK(error_of(with(vit, "image_size", {224, 225}), std::nullopt) ==
        "m.json: image width 225 is not a multiple of patch width 16");
  CHECK(error_of(with(vit, "patch_size", {16}), std::nullopt) ==
        "m.json: /patch_size: expected two sizes, found 1");
  CHECK(error_of(with(vit, "pool_type", "map"), std::nullopt) ==
        "m.json: /pool_type: \"map\" is not supported; supported is gap");
  CHECK(error_of(with(vit, "dropout", 0.1), std::nullopt)
            .starts_with("m.json: unknown key \"dropout\""));
}

// Ops of one layer and one embedding that drop something.
int ops_that_drop(const Json& config, const Step& step) {
  const Workload w = build_step({"m", "m.json", OwnedJson(config)}, step);
  int drop = 0;
  for (const Block& block : w.blocks) {
    for (const Op& op : block.forward) drop += op.function == Function::dropout || op.drops;
  }
  return drop;
}

TEST_CASE("Training drops at the rates of the config, of its class or of the step") {
  Step step{.batch = 1, .sequence = 16};
  CHECK(ops_that_drop(shipped("gpt2"), step) == 0);
  CHECK(ops_that_drop(with(shipped("gpt2"), "resid_pdrop", 0.1), step) == 2);  // both branches
  // GPT2Config has 0.1 where a file says nothing: embeddings, probabilities, both branches.
  Json silent = shipped("gpt2");
  for (const char* key : {"attn_pdrop", "resid_pdrop", "embd_pdrop"}) silent.erase(key);
  CHECK(ops_that_drop(silent, step) == 4);
  step.dropout = 0;
  CHECK(ops_that_drop(silent, step) == 0);
  step.dropout = 0.1;
  CHECK(ops_that_drop(shipped("llama-3.1-8b"), step) == 4);
  step.kind = StepKind::forward;
  CHECK(ops_that_drop(silent, step) == 0);
}

// Work grows with layers: more than any network has is a mistake, and told before it is listed.
TEST_CASE("Too many layers are an error") {
  const char* out_of_range = ": 1000000 is out of range, must be from 1 to 10000";
  CHECK(error_of(with(shipped("llama-3.1-8b"), "num_hidden_layers", 1'000'000)) ==
        "m.json: /num_hidden_layers" + std::string(out_of_range));
  CHECK(error_of(with(shipped("gpt2"), "n_layer", 1'000'000)) ==
        "m.json: /n_layer" + std::string(out_of_range));
  CHECK(error_of(with(shipped("vit-b16"), "depth", 1'000'000), std::nullopt) ==
        "m.json: /depth" + std::string(out_of_range));
  CHECK(error_of(with(shipped("gpt2"), "n_layer", 10'000)).empty());
}

TEST_CASE("A step too large to count is an error") {
  const std::int64_t huge = 2147483647;
  std::string message;
  try {
    static_cast<void>(forward_graph("llama-3.1-405b", huge, huge));
  } catch (const InputError& error) {
    message = error.what();
  }
  CHECK(message.starts_with("llama-3.1-405b.json: the step's tensors take "));
}
