// Keys of MaxText that ask for what is not simulated. Sources: maxtext_keys.cpp.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace maxtext {

const std::vector<RefusedKey> refused_keys = {
    {"logical_axis_rules", R"([[["norm", "fsdp"]]])",  // of Llama 2, and what "xla" does
     "rules of one's own are the strategy \"maxtext\"; the usual ones are read from the degrees"},
    {"override_logical_axis_rules", "[false]", "rules of one's own are the strategy \"maxtext\""},
    {"custom_mesh_and_rule", R"([""])", "rules of one's own are the strategy \"maxtext\""},
    {"optimizer_memory_host_offload", "[false]", "an optimizer on the host is not simulated"},
    {"parameter_memory_host_offload", "[false]", "parameters on the host are not simulated"},
    {"shard_optimizer_over_data", "[false]", "ZeRO 1 over the data axis is not simulated of XLA"},
    {"pipeline_parallel_layers", "[-1]", "layers outside of the pipeline are not simulated"},
    {"pipeline_delay_activation_forwarding", "[false]", "delayed messages are not simulated"},
    {"pipeline_fsdp_ag_once", "[false]", "gathers once for all microbatches are not simulated"},
    {"use_ring_of_experts", "[false]", "a ring of experts is not simulated"},
    {"use_batch_split_schedule", "[false]",
     "experts' exchange beside computation is not simulated"},
    {"expert_shard_attention_option", R"(["fsdp"])",
     "the expert axis as one of context is not simulated"},
    {"moe_fsdp_use_two_stage_all_gather", "[false]", "gathers in two calls are not simulated"},
    {"shard_exp_on_fsdp", "[false]", "experts over fsdp are not simulated under \"xla\""},
    {"use_2d_fsdp_sharding", "[false]", "experts over fsdp are not simulated under \"xla\""},
    {"num_vocab_tiling", "[1]", "a loss in parts of the vocabulary is not simulated"},
    {"moba", "[false]", "attention to blocks is not simulated"},
    {"use_sparse_indexer", "[false]", "sparse attention is not simulated"},
    {"sharding_strategy", "", "shardings of servers are not read"},
    {"use_indexer", "[false]", "sparse attention is not simulated"},
    {"global_head_dim", "[0]", "name the model's config.json with --model"},
    {"share_kv_projections", "[false]", "name the model's config.json with --model"},
    {"attention_output_dim", "[-1]", "name the model's config.json with --model"},
    {"partial_rotary_factor", "[1, 1.0]", "name the model's config.json with --model"},
    {"use_untrainable_positional_embedding", "[false]",
     "name the model's config.json with --model"},
    {"mhc_expansion_rate", "[0]", "hyper connections are not simulated"},
    {"use_multimodal", "[false]", "name the model's config.json with --model"},
    {"use_audio", "[false]", "sounds are not simulated"},
    {"use_mrope", "[false]", "name the model's config.json with --model"},
    {"use_dpo", "[false]", "training by preferences is not simulated"},
    {"use_sft", "[]", "is trained as any batch is: leave it out"},
    {"max_checkify", "[false]", "checks in every operation are not simulated"}};

}  // namespace maxtext
}  // namespace

const std::vector<RefusedKey>& maxtext_refused_keys() { return maxtext::refused_keys; }

}  // namespace shardsim
