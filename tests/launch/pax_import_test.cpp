// Pax's experiments. Expectations: google/paxml 1.4.0, tasks/lm/params (sizes that comments and
// names of the classes state, TransformerLm.set_sharding_params_v1), google/praxis 1.4.0,
// layers/{transformers,attentions,embedding_softmax}.py for what each layer holds.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/launch.hpp"
#include "launch/pax_classes.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/models/build.hpp"
#include "workloads/step/step.hpp"

namespace shardsim::pax_import_test {
namespace {

Json made(const std::string& name, const std::vector<std::string>& overrides = {}) {
  LaunchOptions options;
  if (name.find("TransformerAdam") != std::string::npos || name == "BertAdamL4H128") {
    options.devices = 8;
  }
  options.overrides = overrides;
  return *import_launch("pax", "main.py --exp=" + name + "\n", "a.sh", options).experiment;
}

std::int64_t parameters_of(const Json& experiment) {
  const ModelConfig config =
      load_model_config(JsonReader(experiment["workload"]["model"], {"a.sh", "/model"}), "");
  return parameter_count(build_step(config, {.kind = StepKind::forward, .sequence = 64}));
}

// Matrices, MLPs' biases, two norms, factors of queries' dimensions; table, its bias, last norm.
std::int64_t spmd_parameters(std::int64_t layers, std::int64_t hidden, std::int64_t vocab,
                             std::int64_t head_dim) {
  return layers * (12 * hidden * hidden + 5 * hidden + 4 * hidden + head_dim) + vocab * hidden +
         vocab + 2 * hidden;
}

}  // namespace

TEST_CASE("All experiments of paxml 1.4.0 become steps", "[golden]") {
  const std::vector<std::string> names = pax_experiment_names();
  CHECK(names.size() == 88);
  for (const std::string& name : names) {
    INFO(name);
    const Experiment experiment = read_experiments(made(name), name).front();
    CHECK(!compile_experiment(experiment).plan.programs.empty());
  }
}

TEST_CASE("Pax's experiments have as many parameters as their layers") {
  const auto count = [](const std::string& name) { return parameters_of(made(name)); };
  CHECK(count("LmCloudSpmd2B") == spmd_parameters(18, 3072, 32000, 128));
  CHECK(count("LmCloudSpmd32B") == 32'477'364'224 + 40 * 128 + 32'000);  // + factors, bias
  CHECK(count("LmCloudSpmd1024B") == spmd_parameters(142, 24576, 32000, 128));
  CHECK(count("C4Spmd16BAdam32Replicas") == spmd_parameters(36, 6144, 32000, 128));
  CHECK(count("C4Spmd22BAdam1xv4_384") == spmd_parameters(24, 9216, 32768, 384));
  CHECK(count("LmCloudSpmdPipeline9B") == spmd_parameters(48, 4096, 32000, 128));
  CHECK(count("LmCloudTransformerAdam") == spmd_parameters(32, 1024, 32000, 64));
  // Biases everywhere but at the logits, no factors, learned positions.
  CHECK(count("C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas") == 174'792'007'680);
  CHECK(count("C4SpmdPipelineGpt3AdamMLPerfHPBS2k512Replicas") == 174'792'007'680);
  // Billions that names and comments state.
  const std::pair<const char*, double> stated[] = {{"LmCloudSpmd2B", 2},
                                                   {"LmCloudSpmd32B", 32},
                                                   {"LmCloudSpmd64B", 64},
                                                   {"LmCloudSpmd128B", 128},
                                                   {"LmCloudSpmd256B", 256},
                                                   {"LmCloudSpmd512B", 512},
                                                   {"LmCloudSpmd1024B", 1024},
                                                   {"C4Spmd1BAdam4Replicas", 1},
                                                   {"C4Spmd2BAdam4Replicas", 2},
                                                   {"C4Spmd16BAdam32Replicas", 16},
                                                   {"C4Spmd32BAdam64Replicas", 32},
                                                   {"C4Spmd22BAdam2xv4_128", 22},
                                                   {"LmCloudSpmdPipeline9B", 9},
                                                   {"LmCloudSpmdPipeline175B", 175},
                                                   {"NVIDIA1_3B", 1.3},
                                                   {"NVIDIA5B", 5},
                                                   {"NVIDIA8_3B", 8.3},
                                                   {"NVIDIA10B", 10},
                                                   {"NVIDIA175B", 175},
                                                   {"Llama2_7B", 7},
                                                   {"Llama2_13B", 13},
                                                   {"Llama2_70B", 70},
                                                   {"MoELarge", 26.8},
                                                   {"BertSpmdL33H12kBiggerBatch", 100},
                                                   {"BertSpmdL66H12kBiggerBatch8x8x16", 200}};
  for (const auto& [name, billions] : stated) {
    INFO(name);
    const double counted = static_cast<double>(count(name)) / 1e9;
    CHECK(counted == Approx(billions).epsilon(billions < 10 ? 0.15 : 0.06));
  }
}

TEST_CASE("An experiment of Pax with its mesh, batch and sharding") {
  const Json spmd = made("tasks.lm.params.lm_cloud.LmCloudSpmd32B");
  CHECK(spmd["mesh"] == Json{{"replica", 1}, {"data", 16}, {"mdl", 4}});
  CHECK(spmd["workload"]["batch"] == 512);  // "4 * 4 * 4 * 8 = 512"
  CHECK(spmd["workload"]["sequence"] == 1024);
  CHECK(spmd["workload"]["rematerialization"] == Json{{"save", {"context", "out_proj"}}});
  CHECK(spmd["workload"]["optimizer"] == "adamw");
  CHECK(spmd["strategy"]["weights"][0] ==
        Json::array({"combined_qkv/w$", Json::array({nullptr, "data", "mdl", nullptr})}));
  const Json staged = made("LmCloudSpmdPipelineMultislice2BCircular");
  CHECK(staged["mesh"] == Json{{"stage", 2}, {"replica", 4}, {"data", 1}, {"mdl", 1}});
  CHECK(staged["slices"] == Json{{"stage", 2}});
  CHECK(staged["workload"]["batch"] == 128);
  CHECK(staged["workload"]["microbatches"] == 16);
  CHECK(staged["strategy"]["pipeline"] ==
        Json{{"schedule", "shifting"}, {"repeats", 3}, {"stream_io", true}});
  const Json own = made("NVIDIA175B", {"PERCORE_BATCH_SIZE=0.125"});
  CHECK(own["workload"]["batch"] == 12);
  CHECK(own["workload"]["optimizer"] == "sharded_adafactor");
  CHECK(made("LmCloudSpmdAdam")["workload"]["rematerialization"] == "none");  // not repeated
}

TEST_CASE("Classes of Python are read; what is not said by constants is refused") {
  const auto read = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    LaunchOptions options;
    options.overrides = overrides;
    return *import_launch("pax", text, "own.py", options).experiment;
  };
  const std::string two =
      "@experiment_registry.register\nclass A(lm_cloud.LmCloudSpmd2B):\n  MODEL_DIMS = 2 * 1024\n"
      "  HIDDEN_DIMS = MODEL_DIMS * 4\n\n@experiment_registry.register\nclass B(A):\n"
      "  ICI_MESH_SHAPE = [1, 8, 1]\n";
  CHECK(read(two, {"exp=B"})["mesh"]["data"] == 8);
  CHECK(read(two, {"exp=B"})["workload"]["model"]["intermediate_size"] == 8192);
  CHECK_THROWS_WITH(read(two), "own.py: has 2 experiments: add exp=A, exp=B");
  CHECK_THROWS_WITH(read(two, {"exp=LmCloudSpmd2"}),
                    Catch::Contains("did you mean \"LmCloudSpmd2B\""));
  CHECK_THROWS_WITH(read("@register\nclass A(LmCloudSpmd2B):\n  NUM_HEADS = heads(4)\n"),
                    Catch::StartsWith("own.py: line 3: NUM_HEADS: \"heads\": expected numbers"));
  CHECK_THROWS_WITH(read("@register\nclass A(LmCloudSpmd2B):\n  NUM_HEADS = 5\n"),
                    Catch::Contains("5 heads of 128 do not make MODEL_DIMS, 3072"));
  CHECK_THROWS_WITH(
      read("@register\nclass A(LmCloudSpmd2B):\n  def task(self):\n    task_p = super().task()\n"
           "    task_p.model.lm_tpl.stacked_transformer_tpl.num_heads = 10\n    return task_p\n"),
      Catch::StartsWith("own.py: line 5: what task() of A does here is not read"));
  CHECK_THROWS_WITH(read("@register\nclass A(LmCloudSpmd2B):\n  NUM_LAYER5 = 5\n"),
                    Catch::Contains("did you mean \"NUM_LAYERS\""));
}

}  // namespace shardsim::pax_import_test
