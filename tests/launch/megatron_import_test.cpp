// What Megatron-LM's arguments come to beside the model. Expectations are what Megatron-Core 0.16.1
// makes of them: transformer_config.py, arguments.py, distributed/fsdp/mcore_fsdp_adapter.py.
#include <catch2/catch.hpp>

#include <string>

#include "base/json.hpp"
#include "launch/launch.hpp"

namespace shardsim::megatron_import_test {
namespace {

const std::string llama =
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --group-query-attention "
    "--num-query-groups 4 --seq-length 512 --max-position-embeddings 512 --swiglu "
    "--position-embedding-type rope --normalization RMSNorm --disable-bias-linear "
    "--untie-embeddings-and-output-weights --vocab-size 32000 --micro-batch-size 1 --bf16 "
    "--global-batch-size 16 ";

Imported imported(const std::string& arguments) {
  return import_launch("megatron", "python pretrain_gpt.py " + llama + arguments, "a.args",
                       {.devices = 8});
}

Json made(const std::string& arguments) { return *imported(arguments).experiment; }

Json pipeline(const std::string& arguments) {
  return made("--pipeline-model-parallel-size 4 " + arguments)["strategy"]["pipeline"];
}

}  // namespace

TEST_CASE("Stages with ends of their own, by the words of arguments and of configuration classes") {
  const Json ends = {{"first", 1}, {"last", 3}};
  CHECK(pipeline("--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers "
                 "3")["ends"] == ends);
  CHECK(pipeline("--num-layers-in-first-pipeline-stage 1 --num-layers-in-last-pipeline-stage "
                 "3")["ends"] == ends);
  CHECK(pipeline("--virtual-pipeline-model-parallel-size 2")["virtual_stages"] == 2);
  // 8 layers, the embedding and the loss, over 2 ranks and stages of 5 or less.
  const Json counted = made(
      "--pipeline-model-parallel-size 2 --account-for-embedding-in-pipeline-split "
      "--account-for-loss-in-pipeline-split --num-layers-per-virtual-pipeline-stage 1");
  CHECK(counted["strategy"]["pipeline"]["virtual_stages"] == 5);
  CHECK_THROWS_WITH(
      pipeline("--decoder-first-pipeline-num-layers 1 --num-layers-per-virtual-pipeline-stage 1"),
      "a.args: line 1: --num-layers-per-virtual-pipeline-stage: with ends of their own say how "
      "many stages a rank has: --num-virtual-stages-per-pipeline-rank");
}

// transformer_config.py, moe_router_dtype: without it routers compute in the parameters' type,
// whatever the model's own class does.
TEST_CASE("Routers compute in the type that arguments say") {
  const std::string softmax = "--num-experts 8 --moe-grouped-gemm --expert-model-parallel-size 2 ";
  const std::string sigmoid = softmax + "--moe-router-score-function sigmoid ";
  const auto type = [](const std::string& arguments) {
    return made(arguments)["strategy"]["experts"].value("router_dtype", "");
  };
  CHECK(type(softmax).empty());
  CHECK(type(softmax + "--moe-router-dtype fp32") == "fp32");
  CHECK(type(sigmoid) == "bf16");
  CHECK(type(sigmoid + "--moe-router-dtype fp32").empty());
}

TEST_CASE("The bars of a pattern of layers end stages") {
  const std::string hybrid = "--position-embedding-type none --squared-relu ";
  const Json staged = made(hybrid +
                           "--pipeline-model-parallel-size 2 --hybrid-layer-pattern "
                           "'M-|M*-|M-|M'");
  CHECK(staged["workload"]["model"]["hybrid_override_pattern"] == "M-M*-M-M");
  CHECK(staged["strategy"]["pipeline"]["layers"] == Json{2, 3, 2, 1});
  CHECK(staged["strategy"]["pipeline"]["virtual_stages"] == 2);
  CHECK_THROWS_WITH(
      made(hybrid + "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M-|M*-|M-M'"),
      "a.args: line 1: --hybrid-layer-pattern: 3 parts of the pattern do not divide by 2 ranks");
  CHECK_THROWS_WITH(made(hybrid + "--hybrid-layer-pattern 'M-M*/*E'"),
                    Catch::Contains("layers of multi-token prediction"));
}

TEST_CASE("Megatron's FSDP overlaps by itself; its instances are replicas") {
  const std::string fsdp =
      "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params ";
  CHECK_FALSE(made(fsdp)["strategy"].contains("overlap"));
  CHECK(made(fsdp + "--tensor-model-parallel-size 2 --sequence-parallel "
                    "--tp-comm-overlap")["strategy"]["overlap"] == Json{{"tp", true}});
  const Json hybrid = made(fsdp + "--num-distributed-optimizer-instances 2");
  CHECK(hybrid["mesh"] == Json{{"dp_replicate", 2}, {"dp_shard", 4}});
  CHECK_THROWS_WITH(made(fsdp + "--num-distributed-optimizer-instances 3"),
                    "a.args: line 1: --num-distributed-optimizer-instances: 3 instances do not "
                    "divide the 8 devices that hold different tokens");
  CHECK_THROWS_WITH(made(fsdp + "--outer-dp-sharding-strategy optim"),
                    Catch::Contains("shards of two levels are not simulated"));
  // Over data and context together ("dp_cp").
  const Json shards = read_experiments(made(fsdp + "--context-parallel-size 2"), "a")
                          .front()
                          .resolved->at("strategy");
  CHECK(shards["shard_context"] == true);
}

TEST_CASE("CUDA graphs") {
  const auto graphs = [](const std::string& arguments) {
    const Json kernels = made(arguments)["strategy"]["kernels"];
    return kernels.is_object() ? kernels.value("graphs", Json()) : Json();
  };
  CHECK(graphs("").is_null());
  CHECK(graphs("--cuda-graph-impl local --cuda-graph-scope full_iteration") == "full-iteration");
  CHECK(graphs("--enable-cuda-graph") == "layer");
  CHECK(graphs("--external-cuda-graph --cuda-graph-scope full") == "layer");
  CHECK(graphs("--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router") ==
        Json{"attn", "moe_router"});
  CHECK(graphs("--cuda-graph-impl transformer_engine --cuda-graph-scope attn,mlp") ==
        Json{"attn", "mlp"});
}

TEST_CASE("Arguments as a map of YAML, with variables of the environment") {
  const std::string text =
      "ENV_VARS:\n  PP: 1\nMODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 1024\n"
      "  --num-attention-heads: 16\n  --seq-length: 512\n  --max-position-embeddings: 512\n"
      "  --vocab-size: 32000\n  --micro-batch-size: 1\n  --bf16: true\n  --fp16: false\n"
      "  --tensor-model-parallel-size: ${TP}\n  --pipeline-model-parallel-size: ${PP:-4}\n"
      "  --recompute-granularity: selective\n  --recompute-modules: \"[core_attn mlp]\"\n";
  LaunchOptions options{.devices = 8};
  options.overrides = {"TP=2"};
  const Imported decoder = import_launch("megatron", text, "a.yaml", options);
  // BERT's files of this kind look no different.
  REQUIRE(decoder.notes.size() == 1);
  CHECK_THAT(decoder.notes.front(), Catch::Contains("no program is named"));
  const Json experiment = *decoder.experiment;
  CHECK(experiment["mesh"] == Json{{"dp", 4}, {"tp", 2}});
  CHECK(experiment["workload"]["precision"]["compute"] == "bf16");
  CHECK(experiment["workload"]["rematerialization"] == Json{{"modules", {"core_attn", "mlp"}}});
  CHECK_THROWS_WITH(import_launch("megatron", text, "a.yaml", {.devices = 8}),
                    "a.yaml: line 13: --tensor-model-parallel-size: is a variable of the "
                    "environment: add TP=VALUE behind the file");
  options.overrides = {"TPS=2"};
  CHECK_THROWS_WITH(import_launch("megatron", text, "a.yaml", options),
                    "command line: TPS: the file reads no $TPS");
  // Of a script as well, and what it assigns itself holds.
  const auto degree = [](const std::string& script) {
    LaunchOptions given{.devices = 8};
    given.overrides = {"TP=4"};
    const Imported one = import_launch(
        "megatron", script + "\npython p.py " + llama + "--tensor-model-parallel-size $TP", "a.sh",
        given);
    return (*one.experiment)["mesh"]["tp"].get<int>();
  };
  CHECK(degree("TP=${TP:-2}") == 4);
  CHECK(degree("TP=2") == 2);
}

TEST_CASE("Packed documents are said to be taken as one") {
  const Imported packed = imported("--sft");
  CHECK(packed.notes.size() == 1);
  CHECK_THROWS_WITH(imported("--sequence-packing-scheduler dp_balanced"),
                    Catch::Contains("is known to the data alone"));
}

}  // namespace shardsim::megatron_import_test
