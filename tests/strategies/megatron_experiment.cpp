#include "megatron_experiment.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model_step.hpp"
#include "strategies/frameworks/framework.hpp"

namespace shardsim::megatron_test {
namespace {

Json layers_of(const Json& record) {
  const Json& layers = record["strategy"]["settings"]["layers"];
  return layers.is_null() ? record["model"]["num_layers"] : layers;
}

// The model's dimensions as a config.json of a family that has its layers.
Json decoder_config(const Json& record, const char* family, const char* architecture) {
  const Json& model = record["model"];
  const Json& settings = record["strategy"]["settings"];
  Json config = {{"model_type", family},
                 {"architectures", {architecture}},
                 {"hidden_size", model["hidden_size"]},
                 {"intermediate_size", model["ffn_hidden_size"]},
                 {"num_attention_heads", model["num_attention_heads"]},
                 {"num_key_value_heads", model["num_query_groups"]},
                 {"num_hidden_layers", layers_of(record)},
                 {"vocab_size", model["vocab_size"]},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", record["batch"]["sequence"]},
                 {"rms_norm_eps", 1e-5},
                 {"tie_word_embeddings",
                  settings["tied"].is_null() ? model["untie"] == false : settings["tied"] == true}};
  if (model.contains("kv_channels")) config["head_dim"] = model["kv_channels"];
  if (settings.value("mtp", 0) > 0) config["num_nextn_predict_layers"] = settings["mtp"];
  return config;
}

// As the routers' configuration has it, of which Megatron takes the coefficient 0 for none.
Json auxiliary_loss(const Json& model) {
  if (model.value("moe_aux_loss_coeff", 0.0) == 0) return false;
  const std::string type = model.value("moe_router_load_balancing_type", "aux_loss");
  if (type == "seq_aux_loss") return "sequences";
  return type == "global_aux_loss" ? Json("global") : Json(type == "aux_loss");
}

// Latent attention, routers with biases (V3) or without (V2), experts that all tokens visit.
Json latent_config(const Json& record) {
  const Json& model = record["model"];
  const bool biased = model.value("moe_router_enable_expert_bias", false);
  Json config = biased ? decoder_config(record, "deepseek_v3", "DeepseekV3ForCausalLM")
                       : decoder_config(record, "deepseek_v2", "DeepseekV2ForCausalLM");
  for (const auto& [theirs, ours] : {std::pair{"q_lora_rank", "q_lora_rank"},
                                     {"kv_lora_rank", "kv_lora_rank"},
                                     {"qk_head_dim", "qk_nope_head_dim"},
                                     {"qk_pos_emb_head_dim", "qk_rope_head_dim"},
                                     {"v_head_dim", "v_head_dim"},
                                     {"num_moe_experts", "n_routed_experts"},
                                     {"moe_router_topk", "num_experts_per_tok"},
                                     {"moe_ffn_hidden_size", "moe_intermediate_size"}}) {
    config[ours] = model[theirs];
  }
  const Json& routed = model["moe_layer_freq"];
  config["first_k_dense_replace"] = std::count(routed.begin(), routed.end(), Json(0));
  config["n_shared_experts"] = model["moe_shared_expert_intermediate_size"].get<std::int64_t>() /
                               model["moe_ffn_hidden_size"].get<std::int64_t>();
  config["n_group"] = model.value("moe_router_num_groups", 1);
  config["topk_group"] = model.value("moe_router_group_topk", 1);
  return config;
}

Json config_of(const Json& record) {
  const Json& model = record["model"];
  const bool normed = model.value("qk_layernorm", false);
  if (model.contains("multi_latent_attention")) return latent_config(record);
  if (model.contains("num_moe_experts")) {
    Json config = normed ? decoder_config(record, "qwen3_moe", "Qwen3MoeForCausalLM")
                         : decoder_config(record, "mixtral", "MixtralForCausalLM");
    config[normed ? "num_experts" : "num_local_experts"] = model["num_moe_experts"];
    config["num_experts_per_tok"] = model["moe_router_topk"];
    config[normed ? "moe_intermediate_size" : "intermediate_size"] = model["moe_ffn_hidden_size"];
    return config;
  }
  if (model["normalization"] == "RMSNorm") {
    return normed ? decoder_config(record, "qwen3", "Qwen3ForCausalLM")
                  : decoder_config(record, "llama", "LlamaForCausalLM");
  }
  const Json& positions = record["batch"]["sequence"];
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"n_embd", model["hidden_size"]},
          {"n_inner", model["ffn_hidden_size"]},
          {"n_head", model["num_attention_heads"]},
          {"n_layer", layers_of(record)},
          {"vocab_size", model["vocab_size"]},
          {"n_positions", model.value("max_position_embeddings", positions)},
          {"activation_function", "gelu_new"},
          {"tie_word_embeddings", true}};
}

Json strategy_of(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  Json strategy = {
      {"name", "megatron"},
      {"sequence_parallel", settings["sp"]},
      {"distributed_optimizer", settings["dist_opt"]},
      {"loss_per_token", settings["per_token"]},
      {"overlap",
       {{"gradients", settings["overlap_grad"]}, {"parameters", settings["overlap_param"]}}}};
  if (settings["instances"] != 1) {
    strategy["optimizer_shards"] = {{"instances", settings["instances"]}};
  }
  if (settings["ce_fusion"] == true) {
    strategy["kernels"] = {{"base", "transformer-engine"}, {"loss", "fused"}};
  }
  if (!settings["bucket_size"].is_null()) strategy["bucket_elements"] = settings["bucket_size"];
  if (settings["busbw"] == true) {
    // pad_buckets_for_high_nccl_busbw: a multiple of 2^16 (param_and_grad_buffer.py).
    strategy["gradient_buffer"] = {{"bucket_multiple", 1 << 16}};
  }
  if (settings["clip"] == 0.0) strategy["clip_gradients"] = false;
  strategy["latents"] = "split";  // the records' models are of the local specification
  if (record["model"].contains("num_moe_experts")) {
    // The records' experts are modules of their own (SequentialMLP).
    strategy["experts"] = {{"parallel", settings["ep"]},
                           {"grouped", false},
                           {"router_dtype", record["model"].value("moe_router_dtype", "bf16")}};
    if (settings["dispatcher"] == "allgather") strategy["experts"]["dispatch"] = "all-gather";
    if (!settings["etp"].is_null()) strategy["experts"]["tensor_parallel"] = settings["etp"];
    if (settings.contains("capacity") && !settings["capacity"].is_null()) {
      strategy["experts"]["capacity_factor"] = settings["capacity"];
    }
    if (settings["shared_overlap"] == true) strategy["experts"]["shared_beside"] = true;
    strategy["experts"]["auxiliary_loss"] = auxiliary_loss(record["model"]);
    strategy["experts"]["moves_biases"] =
        record["model"].value("moe_router_enable_expert_bias", false);
  }
  if (settings["pp"] == 1) return strategy;
  Json pipeline = {{"schedule", settings["vpp"].is_null() ? "1f1b" : "interleaved-1f1b"}};
  if (!settings["vpp"].is_null()) pipeline["virtual_stages"] = settings["vpp"];
  for (const auto& [theirs, ours] : {std::pair{"first", "first"}, {"last", "last"}}) {
    if (!settings[theirs].is_null()) pipeline["ends"][ours] = settings[theirs];
  }
  if (!settings["layout"].is_null()) pipeline["layers"] = settings["layout"];
  if (!settings["group"].is_null()) pipeline["microbatch_group"] = settings["group"];
  if (settings["emb_split"] == true) pipeline["embedding_counts"] = true;
  if (settings["loss_split"] == true) pipeline["loss_counts"] = true;
  strategy["pipeline"] = pipeline;
  return strategy;
}

Step step_of(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  Step step;
  step.sequence = settings["seq"].get<std::int64_t>();
  step.dropout = 0;  // no record keeps masks
  step.microbatches = settings["microbatches"];
  step.mtp_layers = settings.value("mtp", 0);
  std::int64_t data = 1;
  for (const Json& axis : record["mesh"]) {
    if (axis[0] == "dp") data = axis[1];
  }
  step.batch = data * settings["mbs"].get<std::int64_t>() * step.microbatches;
  step.optimizer.gradients = settings["grad_fp32"] == true ? DType::f32 : DType::bf16;
  Rematerialization& remade = step.rematerialization;
  if (settings["recompute"] == "full") {
    remade.policy = Rematerialization::Policy::full;
    remade.layers = Rematerialization::Layers::uniform;
    remade.count = 1;
  } else if (settings["recompute"].is_array()) {
    remade.policy = Rematerialization::Policy::modules;
    for (const Json& module : settings["recompute"]) {
      remade.save.push_back(module);
    }
  }
  return step;
}

}  // namespace

CompiledStep compile_record(const Json& record) {
  std::vector<MeshAxis> axes;
  for (const Json& axis : record["mesh"]) axes.push_back({axis[0], axis[1]});
  const Mesh mesh(axes);
  const Json config = config_of(record);
  const Json json = strategy_of(record);
  const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), mesh);
  Step step = step_of(record);
  if (strategy.experts) step.exchange = strategy.experts->exchange;
  step.latents_first = strategy.latents_first;
  step.split_predictors = strategy.latents_first && !strategy.model_axis.empty();
  step.split_latents = strategy.split_latents && !strategy.model_axis.empty();
  Workload workload =
      build_step(load_model_config(JsonReader(config, {"record", "/model"}), ""), step, {},
                 strategy.pipeline ? SharedParameters::copies : SharedParameters::one);
  pad_vocabulary(workload, strategy.vocabulary_multiple);
  return compile(workload, step, mesh, strategy);
}

}  // namespace shardsim::megatron_test
