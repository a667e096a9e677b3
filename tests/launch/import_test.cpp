// What single keys come to. Expectations are what the frameworks do with them: megatron/training
// /arguments.py, torchtitan's job_config.py, DeepSpeed's config.py, MaxText's base.yml.
#include <catch2/catch.hpp>

#include <string>

#include "base/json.hpp"
#include "launch/launch.hpp"

namespace shardsim::import_test {
namespace {

const std::string llama =
    "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --group-query-attention "
    "--num-query-groups 4 --seq-length 512 --max-position-embeddings 512 --swiglu "
    "--position-embedding-type rope --normalization RMSNorm --disable-bias-linear "
    "--untie-embeddings-and-output-weights --vocab-size 32000 --micro-batch-size 2 --bf16 ";

Json megatron(const std::string& arguments, std::int64_t devices = 8) {
  return *import_launch("megatron", llama + arguments, "a.args", {.devices = devices}).experiment;
}

Json deepspeed(const std::string& json) {
  LaunchOptions options{.devices = 8, .sequence = 512};
  *options.model = "llama-3.1-8b";
  return *import_launch("deepspeed", json, "ds.json", options).experiment;
}

}  // namespace

TEST_CASE("Megatron's defaults are its own, not the experiment's") {
  const Json made = megatron("");
  CHECK(made["mesh"] == Json{{"dp", 8}});
  CHECK(made["workload"]["batch"] == 16);  // micro-batch-size on each rank
  CHECK(made["strategy"]["distributed_optimizer"] == false);
  CHECK(made["strategy"]["overlap"]["gradients"] == false);
  CHECK(made["workload"]["dropout"] == 0.1);
  CHECK(made["workload"]["precision"]["gradients"] == "fp32");
  const Json& model = made["workload"]["model"];
  CHECK(model["model_type"] == "llama");
  CHECK(model["intermediate_size"] == 2688);  // 4096 * 2 / 3 in multiples of 64
  CHECK(model["num_key_value_heads"] == 4);
}

TEST_CASE("Megatron's families") {
  const auto type = [](const std::string& more) {
    return megatron(more)["workload"]["model"]["model_type"].get<std::string>();
  };
  CHECK(type("--qk-layernorm") == "qwen3");
  CHECK(type("--add-qkv-bias") == "qwen2");
  CHECK(type("--window-size (127,0)") == "mistral");
  CHECK(type("--num-experts 8") == "mixtral");
  CHECK(type("--num-experts 8 --qk-layernorm --moe-ffn-hidden-size 512") == "qwen3_moe");
  CHECK(megatron("--window-size (127,0)")["workload"]["model"]["sliding_window"] == 128);
  const Json latent = megatron(
      "--multi-latent-attention --kv-lora-rank 64 --num-experts 8 --moe-ffn-hidden-size 128 "
      "--moe-shared-expert-intermediate-size 256 --moe-layer-freq [0]*1+[1]*3")["workload"]
                                                                               ["model"];
  CHECK(latent["model_type"] == "deepseek_v2");
  CHECK(latent["n_shared_experts"] == 2);
  CHECK(latent["first_k_dense_replace"] == 1);
}

TEST_CASE("Megatron's layers that no class has, and patterns of layers") {
  const auto model = [](const std::string& more) { return megatron(more)["workload"]["model"]; };
  const std::string learned = "--position-embedding-type learned_absolute ";
  const Json gated = model(learned);
  CHECK(gated["model_type"] == "megatron_gpt");
  CHECK(gated["gated"] == true);
  CHECK(gated["normalization"] == "rms");
  CHECK(model(learned + "--num-experts 8")["num_experts"] == 8);
  const std::string sinks =
      "--window-size (127,0) --softmax-type learnable --quick-geglu --window-attn-skip-freq 2 "
      "--num-experts 8";  // as GPT-OSS, whose products all have biases
  CHECK_THROWS_WITH(model(sinks), Catch::Contains("gpt_oss is nearest, but for bias false"));
  // Of 8 layers a quarter attends: 6 others in 3 runs of 2. Of these 6 two are MLPs, one after
  // each two that stay.
  const Json mixed = model(
      "--position-embedding-type none --squared-relu --num-layers 8 "
      "--hybrid-attention-ratio 0.25 --hybrid-mlp-ratio 0.25");
  CHECK(mixed["model_type"] == "nemotron_h");
  CHECK(mixed["hybrid_override_pattern"] == "MM*-M*M-");
  CHECK(mixed["mamba_num_heads"] == 32);  // twice the width, in heads of 64
  CHECK_THROWS_WITH(model("--position-embedding-type none --hybrid-layer-pattern 'M*CM'"),
                    "a.args: line 1: --hybrid-layer-pattern: expected a letter for each layer: M, "
                    "*, - or E");
}

TEST_CASE("A null tokenizer counts an end of document") {
  CHECK(megatron("--tokenizer-type NullTokenizer")["workload"]["model"]["vocab_size"] == 32001);
}

TEST_CASE("Megatron's stages, recomputation and types") {
  const Json staged = megatron(
      "--pipeline-model-parallel-size 2 --global-batch-size 32 "
      "--num-layers-per-virtual-pipeline-stage 1");
  CHECK(staged["strategy"]["pipeline"]["schedule"] == "interleaved-1f1b");
  CHECK(staged["strategy"]["pipeline"]["virtual_stages"] == 2);
  CHECK(staged["workload"]["microbatches"] == 4);
  CHECK(megatron("--recompute-granularity selective")["workload"]["rematerialization"] ==
        Json{{"modules", {"core_attn"}}});
  const Json narrow = megatron("--fp8-format hybrid --fp8-recipe mxfp8")["workload"]["precision"];
  CHECK(narrow["compute"] == "mxfp8");
}

TEST_CASE("What cannot be: one error with its place") {
  const auto fails = [](const std::string& more, const std::string& message) {
    CHECK_THROWS_WITH(megatron(more), message);
  };
  fails("--num-expert 8",
        "a.args: line 1: --num-expert: unknown key; --leave-out num-expert imports the rest, did "
        "you mean \"num-experts\"?");
  fails("--tensor-model-parallel-size 3",
        "a.args: line 1: --tensor-model-parallel-size: 8 devices are no multiple of the tensor, "
        "pipeline and context parallel sizes, 3; --devices says another number");
  fails("--global-batch-size 24",
        "a.args: line 1: --global-batch-size: a batch of 24 is no multiple of the 16 sequences "
        "that 8 data-parallel ranks of 2 compute at once");
  fails("--num-experts 8 --expert-model-parallel-size 3",
        "a.args: line 1: --expert-model-parallel-size: 3 devices do not divide 8 experts");
  fails("--num-layers four", "a.args: line 1: --num-layers: expected an integer, not \"four\"");
  fails("--optimizer-cpu-offload",
        "a.args: line 1: --optimizer-cpu-offload: needs --use-precision-aware-optimizer");
  fails("--optimizer muon",
        "a.args: line 1: --optimizer: \"muon\" is not among what shardsim knows of it: adam, "
        "adamw, sgd");
}

TEST_CASE("A key that is left out, and one that is given behind the file") {
  LaunchOptions options{.devices = 8};
  options.leave_out = {"use-torch-fsdp2"};
  options.overrides = {"tensor_model_parallel_size=2", "--clip-grad=0"};
  const Imported imported = import_launch(
      "megatron", "python pretrain_gpt.py " + llama + "--use-torch-fsdp2", "a.args", options);
  CHECK((*imported.experiment)["mesh"] == Json{{"dp", 4}, {"tp", 2}});
  CHECK((*imported.experiment)["strategy"]["clip_gradients"] == false);
  CHECK(imported.notes.size() == 1);
  const Json listed = imported_to_json(imported);
  CHECK(listed["counts"]["left_out"] == 1);
  CHECK(listed["counts"]["refused"] == 0);
}

TEST_CASE("torchtitan's TOML") {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\n"
      "seq_len = 1024\n[parallelism]\ntensor_parallel_degree = 2\npipeline_parallel_degree = 2\n"
      "[activation_checkpoint]\nmode = \"selective\"\n[compile]\nenable = true\n";
  const Json made = *import_launch("torchtitan", text, "a.toml", {.devices = 8}).experiment;
  CHECK(made["mesh"] == Json{{"pp", 2}, {"dp_shard", 2}, {"tp", 2}});
  CHECK(made["workload"]["model"] == "llama-3.1-8b");
  CHECK(made["workload"]["batch"] == 8);
  CHECK(made["workload"]["microbatches"] == 4);  // of one sequence
  CHECK(made["workload"]["rematerialization"] == Json{{"every", 2}});
  // 32 layers, the embedding and the head: 17 to each of two stages.
  CHECK(made["strategy"]["pipeline"]["layers"] == Json{16, 16});
  CHECK(made["strategy"]["kernels"] == "compiled");
  CHECK_THROWS_WITH(
      import_launch("torchtitan", "[training]\nseq_length = 1\n", "a.toml", {.devices = 8}),
      "a.toml: line 2: training.seq_length: unknown key; --leave-out training.seq_length imports "
      "the rest, did you mean \"training.seq_len\"?");
  CHECK_THROWS_WITH(import_launch("torchtitan", "[training\nseq_len = 1\n", "a.toml", {}),
                    Catch::StartsWith("a.toml: line 1: this is no TOML"));
}

TEST_CASE("deepspeed: an optimizer on the host, by its device or the older key") {
  const auto made = [](const std::string& zero) {
    return deepspeed(R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, )" + zero + "}}");
  };
  const Json by_device = made(R"("offload_optimizer": {"device": "cpu", "pin_memory": true})");
  CHECK(by_device["strategy"]["offload"] == Json{{"optimizer", "cpu"}});
  CHECK(made(R"("cpu_offload": true)")["strategy"] == by_device["strategy"]);
  CHECK_FALSE(made(R"("offload_optimizer": {"device": "none"})")["strategy"].contains("offload"));
  CHECK_THROWS_WITH(made(R"("offload_optimizer": {"device": "cpu", "ratio": 0.3})"),
                    Catch::Contains("a part of the optimizer on the host is not simulated"));
}

TEST_CASE("deepspeed: parameters on the host, of ZeRO 3") {
  const auto made = [](const std::string& zero) {
    return deepspeed(R"({"train_batch_size": 8, "zero_optimization": {)" + zero + "}}");
  };
  const Json wanted = {{"parameters", "cpu"}};
  const Json by_device = made(R"("stage": 3, "offload_param": {"device": "cpu"})");
  CHECK(by_device["strategy"]["offload"] == wanted);
  CHECK(made(R"("stage": 3, "cpu_offload_param": true)")["strategy"] == by_device["strategy"]);
  CHECK_FALSE(made(R"("stage": 2, "offload_param": {"device": "cpu"})")["strategy"].contains(
      "offload"));  // valid only with stage 3
}

TEST_CASE("DeepSpeed's JSON") {
  const Json made = deepspeed(R"({"train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
      "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
                            "stage3_param_persistence_threshold": "auto"}})");
  CHECK(made["workload"]["batch"] == 64);
  CHECK(made["workload"]["microbatches"] == 4);
  CHECK(made["strategy"]["zero_stage"] == 3);
  CHECK(made["strategy"]["bucket_elements"] == 4096 * 4096);  // transformers fills in hidden^2
  CHECK(made["strategy"]["persistence_threshold_elements"] == 40960);
  CHECK_THROWS_WITH(
      deepspeed(R"({"train_batch_size": "auto"})"),
      "ds.json: says neither train_batch_size nor train_micro_batch_size_per_gpu: add "
      "train_micro_batch_size_per_gpu=4 behind the file");
  // As transformers fills it in: a batch of what is computed at once, and the type that is not on.
  const std::string automatic =
      R"("train_batch_size": "auto", "gradient_accumulation_steps": "auto",
      "fp16": {"enabled": "auto"}, "bf16": {"enabled": )";
  CHECK(deepspeed("{\"train_micro_batch_size_per_gpu\": 2, " + automatic +
                  "true}}")["workload"]["batch"] == 16);
  CHECK_THROWS_WITH(
      deepspeed("{\"train_micro_batch_size_per_gpu\": 2, " + automatic + "\"auto\"}}"),
      "ds.json: /fp16/enabled: \"auto\" is filled in by the program that reads the file: add "
      "bf16.enabled=true or fp16.enabled=true behind it");
  CHECK_THROWS_WITH(deepspeed(R"({"train_batch_size": 10})"),
                    "ds.json: /train_batch_size: a batch of 10 is no multiple of 1 microbatches on "
                    "8 data-parallel ranks");
}

TEST_CASE("MaxText's YAML") {
  LaunchOptions options{.devices = 32};
  options.overrides = {"ici_tensor_parallelism=4", "num_slices=2"};
  const Json made = *import_launch("maxtext",
                                   "model_name: llama2-7b\nper_device_batch_size: 0.5\n"
                                   "max_target_length: 2_048\nremat_policy: minimal\n",
                                   "a.yml", options)
                         .experiment;
  CHECK(made["mesh"] == Json{{"data", 2}, {"fsdp", 4}, {"tensor", 4}});
  CHECK(made["slices"] == Json{{"data", 2}});
  CHECK(made["workload"]["batch"] == 16);
  CHECK(made["workload"]["sequence"] == 2048);
  CHECK(made["workload"]["rematerialization"] == Json{{"policy", "minimal"}});
  CHECK_THROWS_WITH(
      import_launch("maxtext", "model_name: llama2-8b\n", "a.yml", options),
      Catch::StartsWith(
          "a.yml: line 1: model_name: model \"llama2-8b\" is not "
          "known here; name its config.json with --model, did you mean \"llama2-7b\"?"));
  // What is not simulated of a model asks for nothing where another is named.
  const std::string images = "model_name: default\nuse_multimodal: true\n";
  CHECK_THROWS_WITH(import_launch("maxtext", images, "a.yml", options),
                    "a.yml: line 2: use_multimodal: name the model's config.json with --model; "
                    "--leave-out use_multimodal imports the rest");
  LaunchOptions named = options;
  *named.model = "qwen3-1.7b";
  const Imported imported = import_launch("maxtext", images, "a.yml", named);
  CHECK((*imported.experiment)["workload"]["model"] == "qwen3-1.7b");
  // Sizes beside a name stand only where the file says so.
  const std::string sizes = "model_name: llama2-13b\nbase_num_decoder_layers: 4\n";
  const auto layers = [&](const std::string& text) {
    const Imported one = import_launch("maxtext", text, "a.yml", options);
    return (*one.experiment)["workload"]["model"]["num_hidden_layers"].get<int>();
  };
  CHECK(layers(sizes) == 40);
  CHECK(layers(sizes + "override_model_config: true\n") == 4);
  CHECK_THROWS_WITH(import_launch("maxtext", "a: [1, 2\nb: 3\n", "a.yml", {}),
                    Catch::StartsWith("a.yml: line "));
}

}  // namespace shardsim::import_test
