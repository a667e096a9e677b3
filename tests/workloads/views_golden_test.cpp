// The leaves of views, against the trees of the frameworks themselves (tests/golden/param_trees):
// names, shapes and, of MaxText's, names of dimensions.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/json.hpp"
#include "tests/base/golden_files.hpp"
#include "workloads/models/build.hpp"
#include "workloads/step/step.hpp"
#include "workloads/views/tree_leaves.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

namespace fs = std::filesystem;

struct RecordedModel {
  std::string_view record;  // what the file's name begins with
  std::string_view view;
  std::string_view model;  // that ships, or of tests/golden/models
};

// The models' own names, beside those that they are known by here.
constexpr RecordedModel recorded_models[] = {
    {"maxtext_deepseek2-16b_", "maxtext", "deepseek-v2-lite"},
    {"maxtext_deepseek3-671b_", "maxtext", "deepseek-v3"},
    {"maxtext_gpt-oss-20b_", "maxtext", "gpt-oss-20b"},
    {"maxtext_gpt-oss-120b_", "maxtext", "gpt-oss-120b"},
    {"maxtext_llama2-7b_", "maxtext", "llama-2-7b"},
    {"maxtext_llama3-8b_", "maxtext", "llama-3.1-8b"},
    {"maxtext_llama3.1-8b_", "maxtext", "llama-3.1-8b"},
    {"maxtext_llama3-70b_", "maxtext", "llama-3.1-70b"},
    {"maxtext_llama3.1-70b_", "maxtext", "llama-3.1-70b"},
    {"maxtext_llama3.1-405b_", "maxtext", "llama-3.1-405b"},
    {"maxtext_mistral-7b_", "maxtext", "mistral-7b-v0.1"},
    {"maxtext_mixtral-8x7b_", "maxtext", "mixtral-8x7b"},
    {"maxtext_mixtral-8x22b_", "maxtext", "mixtral-8x22b"},
    {"maxtext_qwen3-0.6b_", "maxtext", "qwen3-0.6b"},
    {"maxtext_qwen3-8b_", "maxtext", "qwen3-8b"},
    {"maxtext_qwen3-30b-a3b_", "maxtext", "qwen3-30b-a3b"},
    {"maxtext_qwen3-235b-a22b_", "maxtext", "qwen3-235b-a22b"},
    {"maxtext_gemma-2b_", "maxtext", "gemma-2b"},
    {"maxtext_gemma-7b_", "maxtext", "gemma-7b"},
    {"maxtext_gemma2-2b_", "maxtext", "gemma-2-2b"},
    {"maxtext_gemma2-9b_", "maxtext", "gemma-2-9b"},
    {"maxtext_gemma2-27b_", "maxtext", "gemma-2-27b"},
    {"easydel_llama2_7b_", "easydel", "llama-2-7b"},
    {"easydel_llama3_8b_", "easydel", "llama-3.1-8b"},
    {"easydel_llama3_70b_", "easydel", "llama-3.1-70b"},
    {"easydel_llama31_405b_", "easydel", "llama-3.1-405b"},
    {"easydel_mixtral_8x7b_", "easydel", "mixtral-8x7b"}};

ModelConfig config_of(std::string_view model) {
  const fs::path golden =
      fs::path(SHARDSIM_SOURCE_DIR) / "tests/golden/models" / (std::string(model) + ".json");
  if (!fs::exists(golden)) return load_model_config(std::string(model), "", {});
  Json config = load_json(golden.string())["config"];
  config.erase("quantization_config");  // how files hold the weights
  return {std::string(model), golden.string(), OwnedJson(std::move(config))};
}

// A model of our own sizes, which the record's leaves say: of paxml's GPT-3 and of big_vision's ViT
// with scanned layers.
std::optional<ModelConfig> config_by_shapes(const Json& leaves) {
  const auto shape = [&](const std::string& name) { return leaves[name]["shape"]; };
  const std::string block = "params/lm/transformer/repeat/sub/x_layers_0/";
  const std::string qkv = block + "self_attention/combined_qkv/";
  if (leaves.contains(qkv + "b")) {
    const Json w = shape(qkv + "w");
    return ModelConfig{
        "gpt3", "gpt3",
        OwnedJson(Json{{"model_type", "gpt2"},
                       {"n_layer", w[0]},
                       {"n_embd", w[2]},
                       {"n_head", w[3]},
                       {"n_inner", shape(block + "ff_layer/ffn_layer1/linear/w")[2]},
                       {"vocab_size", shape("params/lm/softmax/logits_ffn/linear/w")[1]},
                       {"n_positions", shape("params/lm/position_emb/emb_var")[0]}})};
  }
  const std::string encoder = "params/Transformer/encoderblock/";
  if (!leaves.contains(encoder + "LayerNorm_0/scale")) return std::nullopt;
  const Json patch = shape("params/embedding/kernel");
  const Json query = shape(encoder + "MultiHeadDotProductAttention_0/query/kernel");
  const auto tokens = shape("params/pos_embedding")[1].get<std::int64_t>();
  std::int64_t side = 1;
  while (side * side < tokens) ++side;
  const std::int64_t pixels = side * patch[0].get<std::int64_t>();
  return ModelConfig{"vit", "vit",
                     OwnedJson(Json{{"model_type", "big_vision_vit"},
                                    {"width", patch[3]},
                                    {"depth", query[0]},
                                    {"mlp_dim", shape(encoder + "MlpBlock_0/Dense_0/kernel")[2]},
                                    {"num_heads", query[2]},
                                    {"patch_size", {patch[0], patch[1]}},
                                    {"image_size", {pixels, pixels}},
                                    {"num_classes", shape("params/head/kernel")[1]},
                                    {"pool_type", "gap"}})};
}

struct Viewed {
  ModelConfig config;
  std::string view;
};

std::optional<Viewed> viewed_of(const std::string& file, const Json& record) {
  for (const RecordedModel& known : recorded_models) {
    if (file.starts_with(known.record)) {
      return Viewed{config_of(known.model), std::string(known.view)};
    }
  }
  auto config = config_by_shapes(record["params"]);
  if (!config) return std::nullopt;
  const bool is_vit = config->name == "vit";
  return Viewed{std::move(*config), is_vit ? "flax-scanned" : "praxis"};
}

Json leaves_of(const Viewed& viewed, bool with_axes) {
  Step step{.kind = StepKind::forward, .view = viewed.view};
  if (reads_tokens(viewed.config)) step.sequence = 16;
  Json leaves = Json::object();
  for (const TreeLeaf& made : tree_leaves(build_step(viewed.config, step))) {
    Json& leaf = leaves[made.leaf.name];
    leaf["shape"] = made.leaf.shape;
    if (!with_axes) continue;
    leaf["axes"] = Json::array();
    for (const auto& axis : *made.leaf.logical_axes) {
      leaf["axes"].push_back(axis ? Json(*axis) : Json());
    }
  }
  return leaves;
}

}  // namespace

TEST_CASE("Views have the leaves of the frameworks' own trees", "[golden]") {
  for (const std::string& path : golden_files(golden_folder("param_trees"), ".json")) {
    const Json record = load_json(path);
    const std::string file = fs::path(path).filename().string();
    const auto viewed = viewed_of(file, record);
    if (!viewed) {
      std::cout << file << ": skipped, no such model is built here\n";
      continue;
    }
    const bool with_axes = record.contains("logical_axes");
    const Json made = leaves_of(*viewed, with_axes);
    std::size_t passed = 0;
    for (const auto& [name, leaf] : record["params"].items()) {
      Json expected = {{"shape", leaf["shape"]}};
      if (with_axes) expected["axes"] = record["logical_axes"][name];
      const bool agrees = made.contains(name) && made[name] == expected;
      passed += agrees ? 1 : 0;
      if (!agrees) {
        std::cout << "  " << name << ": expected " << expected << ", actual "
                  << (made.contains(name) ? made[name].dump() : "none") << "\n";
      }
    }
    std::cout << file << ": " << passed << " passed, " << record["params"].size() - passed
              << " failed\n";
    CHECK(passed == record["params"].size());
    CHECK(made.size() == record["params"].size());
  }
}

// Names, shapes and, where upstream names all dimensions of a leaf, their names. Gemma 4's scalars
// of each layer are buffers of transformers, not parameters.
TEST_CASE("Views have the leaves of models as the frameworks build them without data", "[golden]") {
  for (const std::string& path : golden_files(golden_folder("view_trees"), ".json")) {
    const Json file = load_json(path);
    for (const Json& model : file["models"]) {
      const std::string name = model["name"];
      const bool ships = model["config"].is_string();
      const Viewed viewed{ships ? load_model_config(model["config"].get<std::string>(), "", {})
                                : ModelConfig{name, path, OwnedJson(model["config"])},
                          file["view"]};
      const Json made = leaves_of(viewed, /*with_axes=*/true);
      std::size_t passed = 0, expected_leaves = 0;
      for (const auto& [leaf, expected] : model["leaves"].items()) {
        if (leaf.ends_with("/layer_scalar")) continue;
        ++expected_leaves;
        const bool agrees = made.contains(leaf) && made[leaf]["shape"] == expected["shape"] &&
                            (!expected.contains("axes") || made[leaf]["axes"] == expected["axes"]);
        passed += agrees ? 1 : 0;
        if (!agrees) {
          std::cout << "  " << name << " " << leaf << ": expected " << expected << ", actual "
                    << (made.contains(leaf) ? made[leaf].dump() : "none") << "\n";
        }
      }
      std::cout << fs::path(path).filename().string() << ", " << name << ": " << passed
                << " passed, " << expected_leaves - passed << " failed\n";
      CHECK(passed == expected_leaves);
      CHECK(made.size() == expected_leaves);
    }
  }
}
