#include "workloads/models/harmless_keys.hpp"

namespace shardsim {
namespace {
namespace harmless {

// Checked against transformers 5.23.0 (configuration_utils.py and the models' own files) and the
// files on the hub.
constexpr std::string_view origin = "says where the file comes from";
constexpr std::string_view file_dtype =
    "the type of the weights' file; a step's are the workload's own (precision)";
constexpr std::string_view start = "how weights are initialized";
constexpr std::string_view constant = "a constant that is computed with";
constexpr std::string_view tables = "the numbers in the rotary tables, whose size stays";
constexpr std::string_view token = "a token's number";
constexpr std::string_view generation = "of generation";
constexpr std::string_view other_head = "of heads that a language model does not have";
constexpr std::string_view returned = "the form in which results are returned";
constexpr std::string_view routing =
    "which experts a token visits, not how many; routing is taken as balanced";
constexpr std::string_view balance =
    "of a loss for balance that is not computed (output_router_logits)";
constexpr std::string_view kernels = "of kernels; attention and scans are one each";
constexpr std::string_view export_only = "of other runtimes and exports";

const std::vector<HarmlessKey> table = {
    {"_name_or_path", origin},
    {"name_or_path", origin},
    {"_commit_hash", origin},
    {"transformers_version", origin},
    {"is_llama_config", origin},
    {"unsloth_version", origin},
    {"unsloth_fixed", origin},
    {"auto_map", "code of their own, which transformers loads only where it is asked to"},
    {"torch_dtype", file_dtype},
    {"dtype", file_dtype},
    {"initializer_range", start},
    {"initializer_factor", start},
    {"rms_norm_eps", constant},
    {"layer_norm_epsilon", constant},
    {"layer_norm_eps", constant},
    {"scale_attn_weights", "a factor that attention applies or not"},
    {"scale_attn_by_inverse_layer_idx", "a factor that attention applies or not"},
    {"rope_theta", tables},
    {"rope_scaling", tables},
    {"rope_interleaved", "which elements rotary embedding pairs"},
    {"max_position_embeddings", "rotary positions have no weights"},
    {"max_sequence_length", "rotary positions have no weights"},
    {"n_ctx", "n_positions says it"},
    {"n_special", "of the first GPT; transformers does not read it for these models"},
    {"predict_special_tokens", "of the first GPT; transformers does not read it for these models"},
    {"pretraining_tp", "slices of the same products; transformers 5 does not read it"},
    {"bos_token_id", token},
    {"eos_token_id", token},
    {"pad_token_id", token},
    {"sep_token_id", token},
    {"decoder_start_token_id", token},
    {"forced_bos_token_id", token},
    {"forced_eos_token_id", token},
    {"use_cache", "a training step keeps no cache of keys and values"},
    {"output_past", "a training step keeps no cache of keys and values"},
    {"task_specific_params", generation},
    {"max_length", generation},
    {"min_length", generation},
    {"do_sample", generation},
    {"temperature", generation},
    {"top_k", generation},
    {"top_p", generation},
    {"num_beams", generation},
    {"repetition_penalty", generation},
    {"no_repeat_ngram_size", generation},
    {"prefix", generation},
    {"early_stopping", generation},
    {"num_beam_groups", generation},
    {"diversity_penalty", generation},
    {"length_penalty", generation},
    {"typical_p", generation},
    {"encoder_no_repeat_ngram_size", generation},
    {"bad_words_ids", generation},
    {"num_return_sequences", generation},
    {"output_scores", generation},
    {"return_dict_in_generate", generation},
    {"remove_invalid_values", generation},
    {"exponential_decay_length_penalty", generation},
    {"suppress_tokens", generation},
    {"begin_suppress_tokens", generation},
    {"id2label", other_head},
    {"label2id", other_head},
    {"num_labels", other_head},
    {"_num_labels", other_head},
    {"problem_type", other_head},
    {"finetuning_task", other_head},
    {"classifier_dropout", other_head},
    {"summary_type", other_head},
    {"summary_use_proj", other_head},
    {"summary_activation", other_head},
    {"summary_proj_to_labels", other_head},
    {"summary_first_dropout", other_head},
    {"return_dict", returned},
    {"is_decoder", "these models are decoders in any case"},
    {"tie_encoder_decoder", "these models are decoders in any case"},
    {"cross_attention_hidden_size", "these models are decoders in any case"},
    {"chunk_size_feed_forward", "these models do not cut their feed-forward layers"},
    {"tokenizer_class", export_only},
    {"torchscript", export_only},
    {"tf_legacy_loss", export_only},
    {"use_bfloat16", export_only},
    {"transformers.js_config", export_only},
    {"_attn_implementation_autoset", "who chose the attention kernel"},
    {"attention_multiplier", constant},
    {"query_pre_attn_scalar", constant},
    {"norm_eps", constant},
    {"norm_epsilon", constant},
    {"swiglu_limit", constant},
    {"routed_scaling_factor", constant},
    {"router_jitter_noise", "noise on what routers read, which the step's notes say is left out"},
    {"rope_local_base_freq", tables},
    {"rotary_emb_base", tables},
    {"original_max_position_embeddings", tables},
    {"initial_context_length", tables},
    {"rescale_prenorm_residual", start},
    {"n_group", routing},
    {"topk_group", routing},
    {"topk_method", routing},
    {"norm_topk_prob", routing},
    {"scoring_func", routing},
    {"router_aux_loss_coef", balance},
    {"aux_loss_alpha", balance},
    {"seq_aux", balance},
    {"moe_capacity", balance},
    {"num_nextn_predict_layers", "layers of multi-token prediction, which transformers leaves out"},
    {"cache_implementation", generation},
    {"num_logits_to_keep", generation},
    {"attention_softmax_in_fp32", kernels},
    {"scale_attention_softmax_in_fp32", kernels},
    {"use_mamba_kernels", kernels},
    {"mamba_ssm_cache_dtype", kernels},
    {"time_step_min", start},
    {"time_step_max", start},
    {"time_step_floor", start},
    {"expand", "a width that the number and the size of heads give"},
    {"ep_size", "how other code spreads experts over devices"},
    {"full_attn_mod", "of the authors' own code; transformers does not read it"},
    {"interpolate_factor", "of the authors' own code; transformers does not read it"},
};

// What the value asks for is what is there anyway.
const std::vector<HarmlessValue> values = {
    {"num_local_experts", "0"},
    {"num_experts", "0"},
    {"use_sliding_window", "false"},
    {"output_router_logits", "false"},
    {"apply_residual_connection_post_layernorm", "false"},
    {"shared_expert_intermediate_size", "0"},
    {"mamba_hidden_act", "\"silu\""},
    {"hidden_act", "\"silu\""},
    {"moe_layer_freq", "1"},
    {"mlp_type", "\"default\""},
    {"norm_type", "\"layer_norm\""},
    {"rms_norm", "true"},
};

}  // namespace harmless
}  // namespace

const std::vector<HarmlessKey>& harmless_keys() { return harmless::table; }

const std::vector<HarmlessValue>& harmless_values() { return harmless::values; }

}  // namespace shardsim
