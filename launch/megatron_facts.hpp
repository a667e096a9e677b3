// Parts of what Megatron's arguments come to: its types, what it computes again, its model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

// "arg.type", "arg.fp8", ... as "precision" of a workload, and back.
void read_megatron_types(const Facts& facts, Json& workload);
void add_megatron_type_facts(const Json& precision, Facts& facts);

// "arg.recompute", ... as "rematerialization", and back.
void read_megatron_recompute(const Facts& facts, Json& workload);
void add_megatron_recompute_facts(const Json& rematerialization, Facts& facts);

// --hybrid-layer-pattern or the ratios of --hybrid-attention-ratio, as "model.pattern" with the
// sizes of state-space layers. Throws InputError for a letter that is no kind of layer.
void find_megatron_pattern(Facts& facts);

// Of a config.json, as arguments have it.
void add_megatron_model_facts(const Json& config, const Place& place, Facts& facts);

// Stacks, attention, fused losses and CUDA graphs as "kernels" of a strategy, and back.
void read_megatron_kernels(const Facts& facts, Json& experiment);
void add_megatron_kernel_facts(const Json& strategy, Facts& facts);

// "M-M*|M-M-": stages of a pattern as "arg.pattern_stages", the pattern without them.
void divide_megatron_pattern(Facts& facts);
// "strategy.pipeline..." and what goes into it with others, and back.
void read_megatron_stages(Facts& facts, Json& experiment);
void add_megatron_stage_facts(const Json& strategy, Facts& facts);

// The distributed optimizer's instances and buckets; Megatron's FSDP, whose data axis falls into
// replicas and shards with several instances; and back, of so many devices with different tokens.
void read_megatron_sharding(const Facts& facts, std::vector<std::string>& notes, Json& experiment);
void add_megatron_buffer_facts(const Json& strategy, std::int64_t data, Facts& facts);

// "arg.late_weights" and "arg.late_microbatches" as what "overlap" says more, and all of it back.
void read_megatron_overlap(const Facts& facts, Json& experiment);
void add_megatron_overlap_facts(const Json& strategy, Facts& facts);

// "arg.optimizer_on_host" and the like as "offload", and all of that back.
void read_megatron_offload(const Facts& facts, Json& experiment);
void add_megatron_offload_facts(const Json& strategy, Facts& facts);

// "arg.balancing", "arg.loss_weights" and "arg.expert_bias" as "experts", and back, of null as
// "megatron" has it.
void read_megatron_routing(const Facts& facts, Json& experiment);
void add_megatron_routing_facts(const Json& experts, Facts& facts);

// --window-size "(4095, 0)": so many tokens before the one that reads them, and that one.
[[nodiscard]] std::int64_t megatron_window(const Facts& facts);
// Of groups within each other, from the inside out; empty: not said.
[[nodiscard]] std::vector<std::int64_t> megatron_context_sizes(const Facts& facts);
// --moe-layer-freq "([0]*3+[1]*58)": layers before those of experts. Throws InputError for layers
// of experts that are not all behind the others.
[[nodiscard]] std::int64_t megatron_dense_layers(const Facts& facts);

}  // namespace shardsim
