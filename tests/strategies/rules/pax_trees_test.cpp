// Configurations of paxml, written as rules of row "praxis", give the specs that the models' layers
// give their weights. Trees, specs and sums: tests/golden/param_trees/pax_*.json, whose "source"
// names the configuration.
#include <catch2/catch.hpp>
#include <map>

#include "strategies/rules/praxis.hpp"
#include "strategies/rules/uneven_padding.hpp"

namespace shardsim {
namespace {

// What set_sharding_params_v1 of paxml makes of w_df = [data, mdl], w_dnh = [data, mdl, null] and
// w_vd = [mdl, data] (the softmax weight is stored [d, v]). Layer norms have no mapping.
const std::string weights = R"([
  ["combined_qkv/w$", [null, "data", "mdl", null]],
  ["combined_qkv/b$", [null, "mdl", null]],
  ["self_attention/post/w$", ["data", "mdl", null]],
  ["self_attention/post/b$", ["data"]],
  ["ffn_layer1/linear/w$", ["data", "mdl"]],
  ["ffn_layer2/linear/w$", ["mdl", "data"]],
  ["ffn_layer[12]/bias/b$", ["mdl"]],
  ["softmax/logits_ffn/linear/w$", ["data", "mdl"]],
  ["position_emb/emb_var$", ["data", "mdl"]]
])";
// StackedTransformerRepeated stacks the layers in front, a pipeline its stages before them.
const std::string repeated = R"([["/repeat/sub/x_layers_0/", [-1]]])";
const std::string pipelined = R"([["/pipeline/body/repeat/sub/x_layers_0/", ["stage", -1]]])";

struct PaxTree {
  Json document;
  Mesh mesh;
  ParameterTree tree;
  std::vector<PartitionSpec> specs;  // of the file, as the leaves of the tree

  explicit PaxTree(const std::string& name)
      : document(load_json(SHARDSIM_SOURCE_DIR "/tests/golden/param_trees/" + name + ".json")) {
    const JsonReader reader(document, {name, ""});
    std::vector<MeshAxis> axes;
    for (const JsonReader& axis : reader.at("mesh").elements()) {
      axes.push_back({axis.elements()[0].string(), axis.elements()[1].integer(1, 1 << 20)});
    }
    mesh = Mesh(axes);
    tree = {name, read_parameter_leaves(reader.at("params"))};
    for (const ParameterLeaf& leaf : tree.leaves) {
      specs.push_back(read_partition_spec(reader.at("params").at(leaf.name).at("spec")));
    }
  }

  [[nodiscard]] SpecAssignment assign(const std::string& prefix) const {
    const Json strategy = parse_json(
        R"({"name": "praxis", "weights": )" + weights + R"(, "repeat_prefix": )" + prefix + "}",
        "strategy");
    return assign_praxis(tree, mesh, {strategy, {"strategy", ""}});
  }
};

// The file's summary, counted from an assignment.
Json summary(const PaxTree& pax, const SpecAssignment& assignment) {
  std::int64_t on_device = 0;
  std::int64_t replicated = 0;
  std::int64_t sharded = 0;
  Json padded = Json::array();
  for (std::size_t i = 0; i < pax.tree.leaves.size(); ++i) {
    const ParameterLeaf& leaf = pax.tree.leaves[i];
    const PartitionSpec& spec = assignment.leaves[i].spec;
    const Sharding sharding = to_sharding(spec, leaf.shape.size(), pax.mesh, leaf.place);
    const bool is_split = Mesh::size_of(split_axes(sharding)) > 1;
    on_device += shard_elements(leaf.shape, sharding);
    replicated += is_split ? 0 : element_count(leaf);
    sharded += int{is_split};
    const auto paddings = uneven_paddings(spec, leaf.shape, pax.mesh, leaf.place);
    if (padded_shape(leaf.shape, paddings) != leaf.shape) padded.push_back(leaf.name);
  }
  return {{"params_per_device_max", on_device},
          {"replicated_params", replicated},
          {"sharded_leaves", sharded},
          {"indivisible_leaves", padded}};
}

void reproduces(const std::string& name, const std::string& prefix) {
  INFO(name);
  const PaxTree pax(name);
  const SpecAssignment assignment = pax.assign(prefix);
  REQUIRE(assignment.leaves.size() == pax.specs.size());
  for (std::size_t i = 0; i < pax.specs.size(); ++i) {
    INFO(pax.tree.leaves[i].name);
    CHECK(to_string(assignment.leaves[i].spec) == to_string(pax.specs[i]));
  }
  const Json counted = summary(pax, assignment);
  for (const auto& [key, value] : counted.items()) {
    INFO(key);
    CHECK(value == pax.document["summary"][key]);
  }
}

TEST_CASE("Pax configurations, leaf by leaf") {
  reproduces("pax_gpt3_175b_spmd_1536", repeated);
  reproduces("pax_gpt3_175b_pipeline_768", pipelined);
  reproduces("pax_gpt_5b_gpu_256", repeated);
  reproduces("pax_lmcloud_32b", repeated);
}

TEST_CASE("every rule of the GPT-3 configuration decides what it matches") {
  const SpecAssignment assignment = PaxTree("pax_gpt3_175b_spmd_1536").assign(repeated);
  // 8 weights and biases and 4 scales and biases of layer norms are stacked.
  const std::map<std::string, std::int64_t> several = {
      {"ffn_layer[12]/bias/b$ -> [\"mdl\"]", 2},
      {"/repeat/sub/x_layers_0/ -> repeat_prefix [-1]", 12}};
  CHECK(assignment.rules.size() == 10);
  for (const RuleUse& use : assignment.rules) {
    INFO(use.text);
    const auto found = several.find(use.text);
    CHECK(use.matches == (found == several.end() ? 1 : found->second));
    CHECK(use.decides == use.matches);
  }
}

// 51200 % 24 = 8: 16 more make 24 shards of 2134.
TEST_CASE("the vocabulary of 51200 over 24 is padded to 51216") {
  const PaxTree pax("pax_gpt3_175b_spmd_1536");
  const PartitionSpec spec = {{"data"}, {"mdl"}};
  const TensorShape shape = {12288, 51200};
  const TensorShape paddings = uneven_paddings(spec, shape, pax.mesh, {});
  CHECK(padded_shape(shape, paddings) == TensorShape{12288, 51216});
  CHECK(shard_size(51200, to_sharding(spec, 2, pax.mesh, {}).dims[1]) * 24 == 51216);
}

}  // namespace
}  // namespace shardsim
