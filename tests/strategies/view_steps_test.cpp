// Steps under views: the same split said in the names of any framework is the same step.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model_step.hpp"

namespace shardsim::test {
namespace {

Step step_under(const std::string& model, const std::string& view) {
  Step step{.batch = 8};
  if (reads_tokens(load_model_config(model, "", {}))) step.sequence = 256;
  step.view = view;
  return step;
}

const Mesh mesh({{"data", 4}, {"model", 2}});

Lines collectives_of(const std::string& model, const std::string& view,
                     const std::string& strategy) {
  return collectives(compile_step(model, mesh, strategy, step_under(model, view)).plan);
}

// ZeRO-3 over data of what reads the stream, Megatron's split over model, tables and norms whole.
const std::string own_names = R"({"name": "match_partition_rules", "min_size": 1, "rules": [
  ["(q|k|v|gate|up)_proj", ["model", "data"]], ["(o|down)_proj", ["data", "model"]],
  [".*", [null]]]})";

}  // namespace

// EasyDeL's kernels are transposed, flax' and MaxText's have heads apart, levanter's rows first.
TEST_CASE("One split in the names of several frameworks is one step") {
  const Lines expected = collectives_of("llama-3.1-8b", "", own_names);
  REQUIRE(!expected.empty());
  CHECK(collectives_of("llama-3.1-8b", "easydel", R"({"name": "match_partition_rules",
    "min_size": 1, "rules": [["(q|k|v|gate|up)_proj/kernel", ["data", "model"]],
    ["(o|down)_proj/kernel", ["model", "data"]], [".*", [null]]]})") == expected);
  CHECK(collectives_of("llama-3.1-8b", "maxtext", R"({"name": "maxtext", "rules": [
    ["q_heads", "model"], ["kv_heads", "model"], ["heads", "model"], ["mlp", "model"],
    ["embed", "data"]]})") == expected);
  CHECK(collectives_of("llama-3.1-8b", "praxis", R"({"name": "praxis", "weights": [
    ["(query|key|value|post)/w$", ["data", "model", null]],
    ["ffn_layer1(_gate)?/linear/w$", ["data", "model"]],
    ["ffn_layer2/linear/w$", ["model", "data"]]],
    "repeat_prefix": [["/repeat/sub/x_layers_0/", [-1]]], "batch_axes": ["data"],
    "reduce_loss": false})") == expected);
}

// Names of dimensions say nothing of norms apart from the stream: these are split over data, too.
TEST_CASE("Systems that go by names of dimensions agree under flax' and levanter's views") {
  const std::string rules = R"("rules": [["heads", "model"], ["mlp", "model"], ["embed", "data"]])";
  const Lines linen =
      collectives_of("llama-3.1-8b", "flax", R"({"name": "logical_axes", )" + rules + "}");
  REQUIRE(!linen.empty());
  CHECK(collectives_of("llama-3.1-8b", "flax-scanned",
                       R"({"name": "logical_axes", )" + rules + "}") == linen);
  CHECK(collectives_of("llama-3.1-8b", "flax", R"({"name": "flax_nnx", "rules": [
    ["heads", "model"], ["mlp", "model"], ["embed", "data"], ["vocab", null], ["kv", null]]})") ==
        linen);
  CHECK(collectives_of("llama-3.1-8b", "levanter", R"({"name": "haliax", "mapping": {
    "embed": "data", "mlp": "model", "heads": "model", "kv_heads": "model"}})") == linen);
  CHECK(collectives_of("llama-3.1-8b", "flax", R"({"name": "big_vision",
    "rules": [[".*", "logical_partitioning"]], "logical_axis_rules": [
    ["heads", "model"], ["mlp", "model"], ["embed", "data"]]})") == linen);
}

TEST_CASE("Llama, Mixtral, DeepSeek, Nemotron-H, GPT and ViT run under every system's rules") {
  const std::string easydel = R"({"name": "match_partition_rules", "rules": [
    ["(kernel|embedding)$", ["data", null]], [".*", [null]]]})";
  const std::string logical = R"({"name": "logical_axes", "rules": [
    ["vocab", "model"], ["heads", "model"], ["mlp", "model"], ["embed", "data"]]})";
  const std::string nnx = R"({"name": "flax_nnx", "rules": [["vocab", null], ["heads", "model"],
    ["kv", null], ["mlp", "model"], ["expert", null], ["embed", "data"]]})";
  const std::string t5x = R"({"name": "t5x", "param_dims": 2})";
  const std::string haliax = R"({"name": "haliax", "mapping": {"embed": "data", "mlp": "model"}})";
  const std::string maxtext = R"({"name": "maxtext", "rules": [
    ["mlp", "model"], ["mlp_moe", "model"], ["embed", "data"], ["embed_moe", "data"],
    ["embed_vocab", "data"]]})";
  struct Run {
    std::string view;
    std::string strategy;
  };
  const std::vector<Run> runs = {
      {"easydel", easydel},  {"flax", logical},    {"flax-scanned", logical}, {"flax", nnx},
      {"flax-scanned", t5x}, {"levanter", haliax}, {"maxtext", maxtext}};
  for (const std::string model : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v3",
                                  "nemotron-3-nano-30b-a3b", "gpt2", "vit-b16"}) {
    for (const auto& [view, strategy] : runs) {
      const bool maxtext_has = model != "vit-b16" && !model.starts_with("nemotron");
      if (view == "maxtext" && !maxtext_has) continue;
      INFO(model << " as " << view << " under " << strategy);
      const CompiledStep step = compile_step(model, mesh, strategy, step_under(model, view));
      std::int64_t held = 0;
      for (const ParameterSharding& row : step.parameters) {
        held += row.instances * row.bytes_per_device.count();
      }
      const std::int64_t all = 2 * step.plan.subject.parameters;  // in bf16
      CHECK(8 * held >= all);
      CHECK(2 * held < all);
    }
  }
}

// paxml's outputs but the state are replicated (partitioning.py at 0248f5e95,
// PjitPartitioner._partition_manual_shard): tokens, as numbers of 8 bytes. Those that come in lie
// over model, and there is no loss to add up.
TEST_CASE("praxis' decoding gathers tokens, and adds up no loss") {
  Step step{.batch = 8};
  step.kind = StepKind::decode;
  step.context = 256;
  const std::string praxis = R"({"name": "praxis", "weights": [], "batch_axes": ["data"],)"
                             R"( "inputs_split_mapping": {"map_2d": [["data"], null]}})";
  CHECK(collectives(compile_step("llama-3.1-8b", mesh, praxis, step).plan) ==
        Lines{"forward all-gather model 16 int64", "forward all-gather data 64 int64"});
}

}  // namespace shardsim::test
