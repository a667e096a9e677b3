// What is written in a framework's own words and read again is the same experiment: the same plan,
// task by task, and the same fields. Experiments are drawn from what each framework can say.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/launch.hpp"
#include "plan/plan_io.hpp"

namespace shardsim::round_trip_test {
namespace {

// One of several fragments, each laid over the experiment.
using Choices = std::vector<std::string>;

Json drawn(const std::string& base, const std::vector<Choices>& dimensions) {
  Json experiment = Json::parse(base);
  for (const Choices& choices : dimensions) {
    experiment.merge_patch(Json::parse(*rc::gen::elementOf(choices)));
  }
  return experiment;
}

Experiment read(const Json& experiment) {
  return read_experiments(experiment, "drawn.json").front();
}

// But for the model's name, which a file of its sizes does not have.
std::string plan_of(const Experiment& experiment) {
  Json plan = plan_to_json(compile_experiment(experiment).plan);
  plan["subject"].erase("model");
  return plan.dump();
}

// write_launch compares the fields itself. An experiment that says nothing of kernels gets the
// framework's.
void require_same(Json document, const std::string& framework) {
  Experiment experiment = read(document);
  const WrittenLaunch written = write_launch(experiment, framework, 8);
  const Imported imported = import_launch(framework, written.text, "written", written.options);
  if (!document["strategy"].contains("kernels")) {
    document["strategy"]["kernels"] = (*imported.experiment)["strategy"].value("kernels", Json());
    experiment = read(document);
  }
  const Experiment again_read = read(*imported.experiment);
  // Under other names of axes the fields alone are compared.
  const auto mesh_of = [](const Experiment& one) { return one.resolved->at("mesh").dump(); };
  const bool same_plan =
      mesh_of(again_read) != mesh_of(experiment) || plan_of(again_read) == plan_of(experiment);
  RC_ASSERT(same_plan);
  // Written once more it is the same text, but for its heading.
  const auto body = [](std::string text) {
    while (text.starts_with('#')) text.erase(0, text.find('\n') + 1);
    return text;
  };
  RC_ASSERT(body(write_launch(again_read, framework, 8).text) == body(written.text));
}

const Choices small_models = {
    R"({"workload": {"model": {"base": "llama-3.1-8b", "num_hidden_layers": 8}}})",
    R"({"workload": {"model": {"base": "llama-3.2-1b", "num_hidden_layers": 8}}})",
    R"({"workload": {"model": {"base": "mixtral-8x7b", "num_hidden_layers": 8}}})",
    R"({"workload": {"model": {"base": "qwen3-1.7b", "num_hidden_layers": 8}}})"};

}  // namespace

TEST_CASE("Megatron's arguments say all of an experiment", "[laws]") {
  Choices models = small_models;
  models.insert(models.end(),
                {R"({"workload": {"model": {"base": "gpt2", "n_layer": 8}, "sequence": 1024}})",
                 R"({"workload": {"model": {"base": "mistral-7b-v0.1", "num_hidden_layers": 8}}})",
                 R"({"workload": {"model": {"base": "deepseek-v3", "num_hidden_layers": 8}}})",
                 R"({"workload": {"model": {"model_type": "nemotron", "hidden_size": 2048,
           "intermediate_size": 8192, "num_hidden_layers": 8, "num_attention_heads": 16,
           "num_key_value_heads": 4, "vocab_size": 32000, "hidden_act": "relu2",
           "max_position_embeddings": 4096, "tie_word_embeddings": false}}})",
                 R"({"workload": {"model": {"model_type": "qwen2", "hidden_size": 1024,
           "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16,
           "num_key_value_heads": 4, "vocab_size": 32000, "hidden_act": "silu",
           "max_position_embeddings": 4096, "tie_word_embeddings": true}}})",
                 R"({"workload": {"model": {"model_type": "nemotron_h", "hidden_size": 1024,
           "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16,
           "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000,
           "mlp_hidden_act": "relu2", "max_position_embeddings": 4096,
           "tie_word_embeddings": false, "hybrid_override_pattern": "MM*-M*M-",
           "mamba_num_heads": 32, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8}}})",
                 R"({"workload": {"model": {"model_type": "megatron_gpt", "hidden_size": 1024,
           "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16,
           "num_key_value_heads": 4, "vocab_size": 32000, "hidden_act": "silu", "gated": true,
           "normalization": "layer", "position_embedding": "learned", "use_bias": true,
           "max_position_embeddings": 4096, "tie_word_embeddings": true}}})"});
  const std::vector<Choices> dimensions = {
      models,
      {R"({"mesh": {"dp": 4}})", R"({"mesh": {"dp": 2, "tp": 2}})",
       R"({"mesh": {"pp": 2, "dp": 2}})", R"({"mesh": {"pp": 4, "dp": 2, "tp": 2}})",
       R"({"mesh": {"data": 2, "model": 4}})", R"({"mesh": {"dp": 2, "pp": 2, "tp": 2}})",
       R"({"mesh": {"dp": 1, "tp": 1}})"},
      {"{}", R"({"strategy": {"distributed_optimizer": false}})",
       R"({"strategy": {"overlap": {"gradients": false, "parameters": false}}})",
       R"({"strategy": {"overlap": {"gradients": true, "parameters": true, "tp": true}}})",
       R"({"strategy": {"bucket_elements": 10000000}})",
       R"({"strategy": {"offload": {"optimizer": "cpu"}}})",
       R"({"strategy": {"offload": {"optimizer": {"fraction": 0.5, "overlap": true}}}})",
       R"({"strategy": {"overlap": {"gradients": true, "parameters": false}}})"},
      {"{}", R"({"workload": {"precision": {"gradients": "bf16"}}})",
       R"({"workload": {"precision": {"compute": "fp16", "parameters": "fp16",
           "gradients": "fp16"}}})",
       R"({"workload": {"precision": {"compute": "fp32", "parameters": "fp32",
           "gradients": "fp32"}}})",
       R"({"workload": {"precision": {"compute": "fp8", "scaling": "delayed", "gather": "fp8"}}})",
       R"({"workload": {"precision": {"compute": "mxfp8", "bf16_layers": {"first": 1, "last": 2}}}})"},
      {"{}", R"({"workload": {"rematerialization": "full"}})",
       R"({"workload": {"rematerialization": "selective"}})",
       R"({"workload": {"rematerialization": {"modules": ["core_attn", "mlp"]}}})"},
      {R"({"strategy": {"kernels": "transformer-engine"}})",
       R"({"strategy": {"kernels": "eager"}})",
       R"({"strategy": {"kernels": {"base": "transformer-engine", "attention": "flash-2"}}})",
       R"({"strategy": {"kernels": {"base": "transformer-engine", "graphs": "layer"}}})",
       R"({"strategy": {"kernels": {"base": "transformer-engine", "graphs": ["attn", "mlp"]}}})",
       R"({"strategy": {"kernels": {"base": "eager", "graphs": "full-iteration"}}})"},
      {"{}", R"({"strategy": {"clip_gradients": false}})", R"({"workload": {"batch": 32}})",
       R"({"workload": {"optimizer": "sgd"}})"}};
  const bool holds = rc::check([&] {
    const Json experiment = drawn(R"({"workload": {"step": "train", "batch": 16, "microbatch": 1,
                                      "sequence": 512}, "mesh": {},
                                      "strategy": {"name": "megatron"}})",
                                  dimensions);
    const std::string base = experiment["workload"]["model"].value("base", "");
    const Json& workload = experiment["workload"];
    // Mixtures have no "mlp".
    RC_PRE(base != "mixtral-8x7b" || !workload.contains("rematerialization"));
    require_same(experiment, "megatron");
  });
  CHECK(holds);
}

TEST_CASE("Megatron's arguments for experts, stages and sequences", "[laws]") {
  const std::vector<Choices> dimensions = {
      {R"({"workload": {"model": {"base": "mixtral-8x7b", "num_hidden_layers": 8}}})",
       R"({"workload": {"model": {"base": "qwen3-30b-a3b", "num_hidden_layers": 8,
           "num_experts": 16}}})"},
      {R"({"mesh": {"pp": 2, "dp": 8}, "strategy": {"experts": {"parallel": 4}}})",
       R"({"mesh": {"dp": 4, "tp": 2}, "strategy": {"experts": {"parallel": 4},
           "sequence_parallel": true}})",
       R"({"mesh": {"dp": 4, "tp": 2}, "strategy": {"experts": {"parallel": 8, "tensor_parallel": 1},
           "sequence_parallel": true}})",
       R"({"mesh": {"dp": 2, "cp": 2}, "strategy": {"context": {"method": "ring"}}})",
       R"({"mesh": {"dp": 2, "cp": 2}, "strategy": {"context": {"method": "all-to-all"}}})"},
      {"{}", R"({"strategy": {"experts": {"grouped": false}}})",
       R"({"strategy": {"experts": {"capacity_factor": 1.5}}})"},
      {"{}", R"({"strategy": {"kernels": "transformer-engine"}})"}};
  const bool holds = rc::check([&] {
    require_same(drawn(R"({"workload": {"step": "train", "batch": 16, "microbatch": 1,
                           "sequence": 512}, "mesh": {}, "strategy": {"name": "megatron"}})",
                       dimensions),
                 "megatron");
  });
  CHECK(holds);
  const bool staged = rc::check([&] {
    require_same(drawn(R"({"workload": {"model": "llama-3.1-8b", "step": "train", "batch": 16,
                           "microbatch": 1, "sequence": 512}, "mesh": {"pp": 4, "dp": 2},
                           "strategy": {"name": "megatron"}})",
                       {{R"({"strategy": {"pipeline": {"virtual_stages": 2,
                             "schedule": "interleaved-1f1b"}}})",
                         R"({"strategy": {"pipeline": {"ends": {"first": 7, "last": 7}}}})",
                         R"({"strategy": {"pipeline": {"layers": "Et*8|t*8|t*8|t*8L"}}})"},
                        {"{}", R"({"strategy": {"kernels": "transformer-engine"}})"}}),
                 "megatron");
  });
  CHECK(staged);
}

TEST_CASE("Megatron's arguments for its FSDP and for stages of a pattern", "[laws]") {
  const bool shards = rc::check([&] {
    require_same(
        drawn(R"({"workload": {"model": {"base": "llama-3.1-8b", "num_hidden_layers": 4},
                  "step": "train", "batch": 16, "microbatch": 1, "sequence": 512}, "mesh": {},
                  "strategy": {"name": "megatron", "fsdp": true}})",
              {{R"({"mesh": {"dp": 8}})", R"({"mesh": {"dp_replicate": 2, "dp_shard": 4}})",
                R"({"mesh": {"dp_replicate": 4, "dp_shard": 2, "tp": 2}})",
                R"({"mesh": {"dp": 4, "cp": 2}, "strategy": {"context": {"method": "ring"}}})"},
               {"{}", R"({"workload": {"rematerialization": "full"}})"}}),
        "megatron");
  });
  CHECK(shards);
  const bool staged = rc::check([&] {
    require_same(drawn(R"({"workload": {"model": {"model_type": "nemotron_h", "hidden_size": 1024,
                  "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16,
                  "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000,
                  "mlp_hidden_act": "relu2", "max_position_embeddings": 4096,
                  "tie_word_embeddings": false, "hybrid_override_pattern": "MM*-M*M-",
                  "mamba_num_heads": 32, "mamba_head_dim": 64, "ssm_state_size": 128,
                  "n_groups": 8}, "step": "train", "batch": 16, "microbatch": 1, "sequence": 512},
                  "mesh": {"pp": 2, "dp": 2}, "strategy": {"name": "megatron"}})",
                       {{R"({"strategy": {"pipeline": {"layers": [3, 5]}}})",
                         R"({"strategy": {"pipeline": {"layers": [1, 3, 2, 2], "virtual_stages": 2,
                    "schedule": "interleaved-1f1b"}}})"},
                        {"{}", R"({"workload": {"batch": 32}})"}}),
                 "megatron");
  });
  CHECK(staged);
}

TEST_CASE("torchtitan's TOML says all of an experiment", "[laws]") {
  const std::vector<Choices> dimensions = {
      // The second with the sizes of Qwen3 8B, whose head is not its embedding.
      {R"({"workload": {"model": "llama-3.1-8b"}})", R"({"workload": {"model": "gpt-oss-120b"}})",
       R"({"workload": {"model": {"base": "qwen3-1.7b", "hidden_size": 4096, "intermediate_size": 12288,
           "num_hidden_layers": 36, "num_attention_heads": 32, "tie_word_embeddings": false}}})"},
      {R"({"mesh": {"dp_shard": 8}})", R"({"mesh": {"dp_shard": 4, "tp": 2}})",
       R"({"mesh": {"dp_replicate": 2, "dp_shard": 4}})", R"({"mesh": {"fsdp": 2, "tensor": 4}})",
       R"({"mesh": {"dp_shard": 4, "cp": 2}})",
       R"({"mesh": {"dp_shard": 4, "cp": 2}, "strategy": {"context": {"balanced": false}}})",
       R"({"mesh": {"pp": 2, "dp_shard": 4}})",
       R"({"mesh": {"pp": 2, "dp_shard": 2, "tp": 2},
           "strategy": {"pipeline": {"schedule": "interleaved-1f1b"}}})",
       R"({"mesh": {"pp": 4, "dp_shard": 2}, "strategy": {"pipeline": {"schedule": "gpipe"}}})"},
      {"{}", R"({"workload": {"rematerialization": "full"}})",
       R"({"workload": {"rematerialization": {"every": 2}}})",
       R"({"workload": {"rematerialization": {"policy": "every_other_product"}}})"},
      {"{}", R"({"workload": {"precision": {"compute": "fp8", "scaling": "rowwise"}}})",
       R"({"workload": {"precision": {"parameters": "bf16", "gradients": "bf16", "moments": "bf16",
           "reduce": "fp32"}}})"},
      {"{}", R"({"strategy": {"reshard_after_forward": true}})",
       R"({"strategy": {"reshard_after_forward": false}})", R"({"workload": {"batch": 64}})",
       R"({"strategy": {"async_tp": true}})", R"({"strategy": {"spmd_backend": "spmd_types"}})",
       R"({"strategy": {"offload": {"parameters": "cpu"}}})"},
      {R"({"strategy": {"kernels": "eager"}})", R"({"strategy": {"kernels": "compiled"}})", "{}"}};
  const bool holds = rc::check([&] {
    const Json experiment = drawn(R"({"workload": {"step": "train", "batch": 32, "microbatch": 1,
        "sequence": 1024}, "mesh": {}, "strategy": {"name": "torchtitan"}})",
                                  dimensions);
    // torchtitan ties no weights over stages.
    RC_PRE(!(experiment["mesh"].contains("pp") && experiment["workload"]["model"] == "qwen3-1.7b"));
    require_same(experiment, "torchtitan");
  });
  CHECK(holds);
}

TEST_CASE("DeepSpeed's JSON and what stands beside it say all of an experiment", "[laws]") {
  const std::vector<Choices> dimensions = {
      small_models,
      {R"({"mesh": {"dp": 4}})", R"({"mesh": {"dp": 2, "tp": 2}})", R"({"mesh": {"data": 4}})"},
      {R"({"strategy": {"zero_stage": 0}})", R"({"strategy": {"zero_stage": 1}})",
       R"({"strategy": {"zero_stage": 2}})",
       R"({"strategy": {"zero_stage": 2, "bucket_elements": 50000000,
           "round_robin_gradients": true}})",
       R"({"strategy": {"zero_stage": 3}})",
       R"({"strategy": {"zero_stage": 3, "prefetch_bucket_elements": 0,
           "persistence_threshold_elements": 0, "hpz": 2, "qwz": true}})",
       R"({"strategy": {"zero_stage": 3, "offload": {"parameters": "cpu", "optimizer": "cpu"}}})",
       R"({"strategy": {"zero_stage": 3, "max_live_elements": 3000000000,
           "sub_group_elements": 100000000}})"},
      {"{}", R"({"workload": {"precision": {"compute": "fp16", "parameters": "fp16",
                 "gradients": "fp16"}}})"},
      {"{}", R"({"workload": {"rematerialization": "full"}})", R"({"workload": {"batch": 32}})"},
      {"{}", R"({"strategy": {"kernels": "eager"}})"}};
  const bool holds = rc::check([&] {
    Json experiment =
        drawn(R"({"workload": {"step": "train", "batch": 16, "microbatch": 2, "sequence": 512},
                  "mesh": {}, "strategy": {"name": "deepspeed"}})",
              dimensions);
    // Experts' parameters lie in no flat parts.
    RC_PRE(!(experiment["strategy"]["zero_stage"] == 3 &&
             experiment["workload"]["model"]["base"] == "mixtral-8x7b"));
    RC_PRE(!(experiment["strategy"]["zero_stage"] == 3 && experiment["mesh"].contains("tp")));
    require_same(experiment, "deepspeed");
  });
  CHECK(holds);
}

TEST_CASE("MaxText's YAML says all of an experiment", "[laws]") {
  Choices models = small_models;
  models.insert(models.end(),
                {R"({"workload": {"model": "llama-2-7b"}})",
                 R"({"workload": {"model": {"base": "llama-4-maverick", "num_hidden_layers": 4,
           "num_local_experts": 8, "use_qk_norm": true, "no_rope_layer_interval": 4,
           "attn_temperature_tuning": true}}})",
                 R"({"workload": {"model": {"base": "deepseek-v3", "num_hidden_layers": 6,
           "model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"],
           "n_routed_experts": 8, "index_n_heads": 4, "index_head_dim": 64,
           "index_topk": 256}}})",
                 R"({"workload": {"model": {"model_type": "qwen3_next", "hidden_size": 1024,
           "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
           "head_dim": 128, "intermediate_size": 512, "vocab_size": 32000,
           "tie_word_embeddings": false, "full_attention_interval": 4,
           "partial_rotary_factor": 0.25, "linear_num_key_heads": 8, "linear_key_head_dim": 64,
           "linear_num_value_heads": 16, "linear_value_head_dim": 64,
           "linear_conv_kernel_dim": 4, "num_experts": 8, "moe_intermediate_size": 512,
           "shared_expert_intermediate_size": 512, "num_experts_per_tok": 2}}})",
                 R"({"workload": {"model": {"model_type": "gemma3_text", "hidden_size": 1024,
           "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
           "head_dim": 128, "intermediate_size": 4096, "vocab_size": 32000,
           "tie_word_embeddings": true, "sliding_window": 256}}})",
                 R"({"workload": {"model": {"model_type": "gemma4_text", "hidden_size": 1024,
           "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
           "head_dim": 128, "global_head_dim": 256, "num_global_key_value_heads": 2,
           "attention_k_eq_v": true, "enable_moe_block": true, "num_experts": 8,
           "top_k_experts": 2, "moe_intermediate_size": 256, "intermediate_size": 4096,
           "vocab_size": 32000, "sliding_window": 256, "hidden_size_per_layer_input": 0,
           "final_logit_softcapping": 30.0}}})",
                 R"({"workload": {"model": {"model_type": "gemma4_text", "hidden_size": 1024,
           "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 1,
           "head_dim": 128, "global_head_dim": 256, "intermediate_size": 2048,
           "vocab_size": 32000, "sliding_window": 256, "hidden_size_per_layer_input": 64,
           "vocab_size_per_layer_input": 32000, "num_kv_shared_layers": 0,
           "final_logit_softcapping": 30.0}}})",
                 R"({"workload": {"model": {"base": "gpt2", "n_layer": 4, "resid_pdrop": 0.0,
           "embd_pdrop": 0.0, "attn_pdrop": 0.0}}})"});
  const std::vector<Choices> dimensions = {
      models,
      {R"({"mesh": {"fsdp": 8}})", R"({"mesh": {"fsdp": 4, "tensor": 2}})",
       R"({"mesh": {"data": 2, "fsdp": 4}})", R"({"mesh": {"data": 8}})",
       R"({"mesh": {"data": 2, "fsdp": 2, "tensor": 2}, "slices": {"data": 2}})",
       R"({"mesh": {"fsdp": 4, "context": 2}, "strategy": {"sequence_axes": ["context"]}})"},
      {"{}", R"({"workload": {"rematerialization": "full"}})",
       R"({"workload": {"rematerialization": {"policy": "minimal"}}})",
       R"({"workload": {"rematerialization": {"policy": "save_qkv_proj"}}})",
       R"({"workload": {"rematerialization": {"save": ["query_proj", "out_proj"]}}})"},
      {"{}", R"({"workload": {"precision": {"compute": "int8"}}})",
       R"({"workload": {"precision": {"gradients": "fp32"}}})",
       R"({"workload": {"precision": {"parameters": "bf16", "moments": "bf16"}}})"},
      {"{}", R"({"workload": {"batch": 64, "microbatches": 4}})",
       R"({"strategy": {"clip_gradients": true}})", R"({"workload": {"optimizer": "sgd"}})"},
      {"{}", R"({"strategy": {"kernels": "xla"}})",
       R"({"strategy": {"kernels": {"base": "xla", "attention": "splash"}}})"}};
  const bool holds = rc::check([&] {
    require_same(drawn(R"({"workload": {"step": "train", "batch": 32, "sequence": 1024},
                           "mesh": {}, "strategy": {"name": "xla"}})",
                       dimensions),
                 "maxtext");
  });
  CHECK(holds);
}

}  // namespace shardsim::round_trip_test
