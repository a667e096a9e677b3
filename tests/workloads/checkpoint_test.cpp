// Checkpoints beside the models that they are of: names as files on the hub have them. What a file
// of each family holds is models_golden_test's.
#include "workloads/models/checkpoint.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/hub_names.hpp"

using namespace shardsim;

namespace {

const char* const small_mixtral = R"({"architectures": ["MixtralForCausalLM"], "hidden_size": 8,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
  "intermediate_size": 6, "vocab_size": 10, "num_local_experts": 2, "num_experts_per_tok": 1})";

ModelConfig mixtral() {
  return {"mixtral", "config.json", OwnedJson(parse_json(small_mixtral, "config.json"))};
}

// The tree of a checkpoint of it; "" has the names of modules.
ParameterTree files_of(const ModelConfig& config, const std::string& family) {
  const JsonReader json(*config.json, {config.path, ""});
  const models::ModelSpec spec = read_known_model(json, config.name);
  ParameterTree tree;
  for (const models::HubTensor& tensor :
       models::hub_tensors(family, models::count(spec, {}, json.place()))) {
    ParameterLeaf leaf;
    leaf.name = tensor.name;
    leaf.shape = tensor.shape;
    leaf.place = {"model.safetensors", "/" + tensor.name};
    tree.leaves.push_back(std::move(leaf));
  }
  sort_leaves(tree.leaves);
  return tree;
}

std::string error_of_checkpoint(const ParameterTree& tree) {
  try {
    require_checkpoint_of(tree, mixtral());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

ParameterLeaf& leaf_of(ParameterTree& tree, const std::string& name) {
  for (ParameterLeaf& leaf : tree.leaves) {
    if (leaf.name == name) return leaf;
  }
  FAIL("no tensor " << name);
  return tree.leaves.front();
}

}  // namespace

TEST_CASE("Files hold experts one by one, and are of their model") {
  ParameterTree tree = files_of(mixtral(), "mixtral");
  const std::string experts = "model.layers.0.block_sparse_moe.experts.";
  CHECK(leaf_of(tree, experts + "1.w1.weight").shape == std::vector<std::int64_t>{6, 8});
  CHECK(leaf_of(tree, experts + "1.w2.weight").shape == std::vector<std::int64_t>{8, 6});
  CHECK(error_of_checkpoint(tree).empty());
  // As transformers holds them while it trains.
  ParameterTree modules = files_of(mixtral(), "");
  CHECK(leaf_of(modules, "model.layers.0.mlp.experts.gate_up_proj").shape ==
        std::vector<std::int64_t>{2, 12, 8});
  CHECK(error_of_checkpoint(modules).empty());
}

TEST_CASE("What does not fit a model is an error at its tensor") {
  ParameterTree tree = files_of(mixtral(), "mixtral");
  const std::string name = "model.layers.0.block_sparse_moe.experts.1.w1.weight";
  leaf_of(tree, name).shape = {7, 8};
  CHECK(error_of_checkpoint(tree) ==
        "model.safetensors: /" + name + ": has shape [7, 8], in mixtral [6, 8]");
  leaf_of(tree, name).name = "model.layers.0.extra";
  CHECK(error_of_checkpoint(tree) ==
        "model.safetensors: has no \"" + name + "\", which mixtral has (2 tensors differ)");
  ParameterTree more = files_of(mixtral(), "mixtral");
  more.leaves.push_back(more.leaves.back());
  more.leaves.back().name = "model.layers.1.norm";
  more.leaves.back().place = {"model.safetensors", "/model.layers.1.norm"};
  CHECK(error_of_checkpoint(more) ==
        "model.safetensors: /model.layers.1.norm: is no tensor of mixtral");
}
