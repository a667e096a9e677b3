// Keys of MaxText's YAML files: src/MaxText/configs/base.yml of AI-Hypercomputer/maxtext (commit
// 003b4169), with older names of the same, read 2026-11-26. Defaults are base.yml's.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace maxtext {

using K = KeyKind;

const std::vector<std::pair<std::string_view, std::string_view>> types = {
    {"float32", R"("fp32")"}, {"bfloat16", R"("bf16")"}, {"float16", R"("fp16")"}};

const std::vector<Key> used_keys = {
    // The model.
    {"model_name", "arg.model", K::text, R"("default")"},
    {"decoder_block", "arg.block", K::text, R"("llama2")"},
    {"global_parameter_scale", "arg.scale", K::integer, "1"},
    {"base_emb_dim", "arg.hidden", K::integer, "2048"},
    {"base_num_query_heads", "arg.heads", K::integer, "16"},
    {"base_num_kv_heads", "arg.kv_heads", K::integer, "16"},
    {"base_mlp_dim", "arg.width", K::integer, "7168"},
    {"base_moe_mlp_dim", "arg.expert_width", K::integer, "7168"},
    {"base_num_decoder_layers", "arg.layers", K::integer, "16"},
    {"head_dim", "arg.head_dim", K::integer, "128"},
    {"mlp_activations", "arg.activations", K::any, R"(["silu", "linear"])"},
    {"vocab_size", "model.vocab", K::integer, "32000"},
    {"logits_via_embedding", "model.tied", K::flag, "false"},
    {"num_experts", "arg.experts", K::integer, "1"},
    {"num_experts_per_tok", "arg.top_k", K::integer, "1"},
    {"shared_experts", "arg.shared_experts", K::integer, "1"},
    {"first_num_dense_layers", "arg.dense_layers", K::integer, "0"},
    {"capacity_factor", "arg.capacity", K::number, "-1.0"},
    {"routed_score_func", "arg.scores", K::text, R"("")"},
    {"q_lora_rank", "arg.q_rank", K::integer, "0"},
    {"kv_lora_rank", "arg.kv_rank", K::integer, "512"},
    {"qk_nope_head_dim", "arg.nope_dim", K::integer, "128"},
    {"qk_rope_head_dim", "arg.rope_dim", K::integer, "64"},
    {"v_head_dim", "arg.value_dim", K::integer, "128"},
    {"attention_type", "arg.attention_type", K::text, R"("global")"},
    {"sliding_window_size", "arg.window", K::integer, "0"},
    {"use_post_attn_norm", "arg.post_norms", K::flag, "false"},
    {"use_post_ffw_norm", "arg.post_norms", K::flag, "", {}, /*other_spelling=*/true},
    {"attention_sink", "arg.sink", K::flag, "false"},
    {"mlp_bias", "arg.mlp_bias", K::flag, "false"},
    {"trainable_position_size", "arg.positions", K::integer, "-1"},
    {"use_qk_norm", "model.qk_norm", K::flag, "false"},
    {"attention_bias", "model.qkv_bias", K::flag, "false"},
    {"mtp_num_layers", "workload.mtp_layers", K::integer, "0"},
    // What is computed at once.
    {"per_device_batch_size", "arg.per_device", K::number, "12.0"},
    {"max_target_length", "workload.sequence", K::integer, "2048"},
    {"gradient_accumulation_steps", "arg.accumulates", K::integer, "1"},
    {"dropout_rate", "arg.dropout", K::number, "0.0"},
    {"enable_dropout", "arg.has_dropout", K::flag, "true"},
    {"opt_type",
     "workload.optimizer",
     K::text,
     R"("adamw")",
     {{"adamw", R"("adamw")"}, {"adam_pax", R"("adamw")"}, {"sgd", R"("sgd")"}}},
    {"gradient_clipping_threshold", "arg.clip", K::number, "1.0"},
    // Types.
    {"dtype", "arg.type", K::text, R"("bf16")", types},
    {"weight_dtype", "arg.weights", K::text, R"("fp32")", types},
    {"grad_dtype", "arg.gradients", K::text, R"("fp32")", types},
    {"mu_dtype", "arg.moments", K::text, R"("")"},
    {"quantization",
     "arg.quantization",
     K::text,
     R"("")",
     {{"", R"("")"},
      {"int8", R"("int8")"},
      {"fp8", R"("fp8")"},
      {"nanoo_fp8", R"("fp8")"},
      {"fp8_full", R"("fp8")"},
      {"fp8_gpu", R"("fp8")"}}},
    // Who holds what.
    {"ici_diloco_parallelism", "ici.diloco", K::integer, "1"},
    {"dcn_diloco_parallelism", "dcn.diloco", K::integer, "1"},
    {"ici_data_parallelism", "ici.data", K::integer, "1"},
    {"dcn_data_parallelism", "dcn.data", K::integer, "-1"},
    {"ici_pipeline_parallelism", "ici.pipeline", K::integer, "1"},
    {"dcn_pipeline_parallelism", "dcn.pipeline", K::integer, "1"},
    {"ici_fsdp_parallelism", "ici.fsdp", K::integer, "-1"},
    {"dcn_fsdp_parallelism", "dcn.fsdp", K::integer, "1"},
    {"ici_fsdp_transpose_parallelism", "ici.fsdp_transpose", K::integer, "1"},
    {"dcn_fsdp_transpose_parallelism", "dcn.fsdp_transpose", K::integer, "1"},
    {"ici_sequence_parallelism", "ici.sequence", K::integer, "1"},
    {"dcn_sequence_parallelism", "dcn.sequence", K::integer, "1"},
    {"ici_context_parallelism", "ici.context", K::integer, "1"},
    {"dcn_context_parallelism", "dcn.context", K::integer, "1"},
    {"ici_context_autoregressive_parallelism", "ici.context_autoregressive", K::integer, "1"},
    {"dcn_context_autoregressive_parallelism", "dcn.context_autoregressive", K::integer, "1"},
    {"ici_tensor_parallelism", "ici.tensor", K::integer, "1"},
    {"dcn_tensor_parallelism", "dcn.tensor", K::integer, "1"},
    {"ici_tensor_transpose_parallelism", "ici.tensor_transpose", K::integer, "1"},
    {"dcn_tensor_transpose_parallelism", "dcn.tensor_transpose", K::integer, "1"},
    {"ici_tensor_sequence_parallelism", "ici.tensor_sequence", K::integer, "1"},
    {"dcn_tensor_sequence_parallelism", "dcn.tensor_sequence", K::integer, "1"},
    {"ici_expert_parallelism", "ici.expert", K::integer, "1"},
    {"dcn_expert_parallelism", "dcn.expert", K::integer, "1"},
    {"ici_autoregressive_parallelism", "ici.autoregressive", K::integer, "1"},
    {"dcn_autoregressive_parallelism", "dcn.autoregressive", K::integer, "1"},
    {"num_slices", "arg.slices", K::integer, "-1"},
    {"compile_topology_num_slices", "arg.slices", K::integer, "", {}, /*other_spelling=*/true},
    {"num_pipeline_microbatches", "arg.microbatches", K::integer, "-1"},
    {"num_layers_per_pipeline_stage", "arg.layers_of_stage", K::integer, "1"},
    {"num_pipeline_repeats", "arg.repeats", K::integer, "-1"},
    {"context_parallel_strategy",
     "arg.context",
     K::text,
     R"("all-gather")",
     {{"all_gather", R"("all-gather")"}, {"ring", R"("ring")"}}},
    {"context_parallel_load_balance", "arg.balanced", K::flag, "true"},
    // What is kept, and kernels.
    {"remat_policy", "arg.policy", K::text, R"("full")"},
    {"decoder_layer_input", "remat.decoder_layer_input", K::text, R"("device")"},
    {"context", "remat.context", K::text, R"("remat")"},
    {"mlpwi", "remat.mlpwi", K::text, R"("remat")"},
    {"mlpwi_0", "remat.mlpwi_0", K::text, R"("remat")"},
    {"mlpwi_1", "remat.mlpwi_1", K::text, R"("remat")"},
    {"mlpwo", "remat.mlpwo", K::text, R"("remat")"},
    {"query_proj", "remat.query_proj", K::text, R"("remat")"},
    {"key_proj", "remat.key_proj", K::text, R"("remat")"},
    {"value_proj", "remat.value_proj", K::text, R"("remat")"},
    {"qkv_proj", "remat.qkv_proj", K::text, R"("remat")"},
    {"out_proj", "remat.out_proj", K::text, R"("remat")"},
    {"mla_q", "remat.mla_q", K::text, R"("remat")"},
    {"mla_kv", "remat.mla_kv", K::text, R"("remat")"},
    {"attention",
     "arg.attention",
     K::text,
     R"("autoselected")",
     {{"autoselected", R"("autoselected")"},
      {"flash", R"("splash")"},
      {"cudnn_flash_te", R"("cudnn")"},
      {"dot_product", R"("unfused")"}}}};

}  // namespace maxtext
}  // namespace

KeyTable maxtext_keys() {
  return {&maxtext::used_keys, &maxtext_harmless_keys(), &maxtext_refused_keys()};
}

}  // namespace shardsim
