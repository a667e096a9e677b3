// MaxText's rules of logical axes and its Gemma 4. Expectations: base.yml and custom_mesh_and_rule
// of maxtext 0.2.5, models/gemma4*.py, and Gemma 4's keys as transformers 5.23 has them.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/launch.hpp"

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

}  // namespace shardsim::maxtext_import_test
