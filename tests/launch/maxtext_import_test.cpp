// MaxText's rules of logical axes and its Gemma 4. Expectations: base.yml and custom_mesh_and_rule
// of maxtext 0.2.5, models/gemma4*.py, and Gemma 4's keys as transformers 5.23 has them.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/launch.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/models/build.hpp"
#include "workloads/step/step.hpp"

namespace shardsim::maxtext_import_test {
namespace {

Json made(const std::string& text, const std::vector<std::string>& overrides = {}) {
  LaunchOptions options{.devices = 64};
  options.overrides = {"per_device_batch_size=1"};
  options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
  return *import_launch("maxtext", text, "a.yml", options).experiment;
}

Json strategy(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return made("model_name: deepseek2-16b\n" + text, overrides)["strategy"];
}

}  // namespace

TEST_CASE("Rules that come to base.yml's are the strategy xla") {
  // In the words of an older version, whole or of single names.
  CHECK(strategy("logical_axis_rules: [['embed', ['fsdp', 'sequence', 'expert']], "
                 "['mlp', ['tensor', 'autoregressive']], ['norm', 'fsdp']]\n")["name"] == "xla");
  CHECK(strategy("custom_mesh_and_rule: pure-fsdp\n")["name"] == "xla");
  CHECK(strategy("custom_mesh_and_rule: cp-as-ep\n", {"ici_expert_parallelism=8"})["name"] ==
        "xla");  // without an axis for context it is the usual one
}

TEST_CASE("Other rules are the strategy maxtext with them") {
  const Json own = strategy("custom_mesh_and_rule: ep-as-dp\n", {"ici_expert_parallelism=8"});
  CHECK(own["name"] == "maxtext");
  CHECK(own["rules"][0] == Json{"embed_vocab", {"fsdp", "fsdp_transpose"}});  // none of activations
  const Json given = strategy("logical_axis_rules: [['embed', 'data'], ['mlp', ['fsdp']]]\n",
                              {"ici_data_parallelism=8"});
  CHECK(given["rules"] == Json::parse(R"([["embed", "data"], ["mlp", ["fsdp"]]])"));
  CHECK_THROWS_WITH(
      strategy("custom_mesh_and_rule: ep-as-cp\n", {"ici_expert_parallelism=8"}),
      "a.yml: line 2: custom_mesh_and_rule: the batch over fsdp, not over expert, fsdp, is not "
      "simulated");
  CHECK_THROWS_WITH(
      strategy("custom_mesh_and_rule: pure-fsdb\n"),
      Catch::StartsWith("a.yml: line 2: custom_mesh_and_rule: rules \"pure-fsdb\" are "
                        "not known here, cp-as-ep, "));
  CHECK_THROWS_WITH(strategy("custom_mesh_and_rule: fsdp-as-dp-for-attn\n",
                             {"ici_context_parallelism=2", "ici_expert_parallelism=8"}),
                    Catch::Contains("rules of one's own with stages or a sequence that is split"));
  CHECK_THROWS_WITH(strategy("logical_axis_rules: [['embed']]\n"),
                    "a.yml: line 2: logical_axis_rules/0: expected a logical axis and mesh axes: "
                    "[embed, [fsdp, expert]]");
}

// layers/pipeline.py of maxtext 0.2.5: one loop whose inputs and results are in state_io, dealt out
// over the stages. 80 layers over 4 slices of 10 at a time go round twice.
TEST_CASE("Stages are one program, over slices too") {
  LaunchOptions options{.devices = 64, .machine = "tpu-v5p"};
  options.overrides = {"per_device_batch_size=2", "num_slices=4", "dcn_pipeline_parallelism=4",
                       "num_layers_per_pipeline_stage=10", "num_pipeline_microbatches=8"};
  const Json experiment =
      *import_launch("maxtext", "model_name: llama2-70b\n", "a.yml", options).experiment;
  CHECK(experiment["strategy"]["pipeline"] ==
        Json{{"schedule", "shifting"}, {"stream_io", true}, {"repeats", 2}});
  CHECK(experiment["slices"] == Json{{"stage", 4}});
  CHECK(experiment["machine"] == "tpu-v5p");
  CHECK(experiment["workload"]["microbatches"] == 8);
}

TEST_CASE("Gemma 4 by its name and by its sizes") {
  const Json routed = made("model_name: gemma4-26b\n")["workload"]["model"];
  CHECK(routed["model_type"] == "gemma4_text");
  CHECK(routed["enable_moe_block"] == true);
  CHECK(routed["attention_k_eq_v"] == true);
  CHECK(routed["num_global_key_value_heads"] == 2);
  CHECK(routed["hidden_size_per_layer_input"] == 0);
  const Json dense = made("model_name: gemma4-31b\n")["workload"]["model"];
  CHECK_FALSE(dense.contains("num_experts"));
  const Json small = made("model_name: gemma4-e2b\n")["workload"]["model"];
  CHECK(small["num_kv_shared_layers"] == 20);
  CHECK(small["use_double_wide_mlp"] == true);
  CHECK(small["layer_types"][4] == "full_attention");  // every fifth
  CHECK(made("model_name: gemma4-e4b\n")["workload"]["model"]["layer_types"][4] ==
        "sliding_attention");
  CHECK_THROWS_WITH(made("decoder_block: llama2\nglobal_head_dim: 512\n"),
                    "a.yml: line 2: global_head_dim: name the model's config.json with --model");
}

// Elements of what maxtext 0.2.5 builds of each (nnx.eval_shape of its models); Gemma 4's are less
// than that by one of each layer, which is a buffer of transformers.
TEST_CASE("Models by MaxText's names have as many parameters as MaxText's own") {
  const std::pair<const char*, std::int64_t> expected[] = {
      {"deepseek2-16b", 15'706'484'224},   {"deepseek2-236b", 235'741'434'880},
      {"deepseek3-671b", 671'026'404'352}, {"deepseek3.2-671b", 671'877'929'216},
      {"gemma-2b", 2'506'434'560},         {"gemma2-2b", 2'614'636'800},
      {"gemma3-4b", 3'880'099'328},        {"gemma3-27b", 27'009'002'240},
      {"gemma4-26b", 25'233'141'790 - 30}, {"gemma4-31b", 30'697'345'340 - 60},
      {"gpt-oss-20b", 20'914'757'184},     {"kimi-k2-1t", 1'026'408'209'408},
      {"llama4-17b-16e", 107'769'861'120}, {"llama4-17b-128e", 400'711'848'960},
      {"mistral-7b", 7'241'732'096},       {"mixtral-8x7b", 46'702'792'704},
      {"olmo3-7b", 7'298'011'136},         {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-7b", 7'615'616'512},       {"qwen3-0.6b", 596'049'920},
      {"qwen3-30b-a3b", 30'532'122'624},   {"qwen3-next-80b-a3b", 79'674'391'296},
      {"qwen3.5-35b-a3b", 34'660'610'688}};
  for (const auto& [name, parameters] : expected) {
    INFO(name);
    const Json experiment = made(fmt::format("model_name: {}\n", name));
    const ModelConfig config =
        load_model_config(JsonReader(experiment["workload"]["model"], {"a.yml", "/model"}), "");
    CHECK(parameter_count(build_step(config, {.kind = StepKind::forward, .sequence = 64})) ==
          parameters);
  }
}

}  // namespace shardsim::maxtext_import_test
