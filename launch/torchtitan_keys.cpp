// Keys of torchtitan's TOML files: torchtitan 0.2.0, config/job_config.py, and older names of the
// same, read 2026-11-26.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace torchtitan {

using K = KeyKind;

const std::vector<std::pair<std::string_view, std::string_view>> types = {
    {"float32", R"("fp32")"}, {"bfloat16", R"("bf16")"}};
const std::vector<std::pair<std::string_view, std::string_view>> schedules = {
    {"1F1B", R"("1f1b")"},
    {"1f1b", R"("1f1b")"},
    {"GPipe", R"("gpipe")"},
    {"gpipe", R"("gpipe")"},
    {"Interleaved1F1B", R"("interleaved-1f1b")"},
    {"interleaved_1f1b", R"("interleaved-1f1b")"},
    {"LoopedBFS", R"("looped-bfs")"},
    {"InterleavedZeroBubble", R"("interleaved-zero-bubble")"},
    {"FlexibleInterleaved1F1B", R"("interleaved-zero-bubble")"},
    {"ZBVZeroBubble", R"("zbv")"},
    {"DualPipeV", R"("dualpipev")"}};

const std::vector<Key> used_keys = {
    {"model.name", "arg.name", K::text, R"("llama3")"},
    {"model.flavor", "arg.flavor", K::text, R"("debugmodel")"},
    {"model.converters", "arg.converters", K::any, "[]"},
    {"optimizer.name", "workload.optimizer", K::text, R"("adamw")",
     {{"AdamW", R"("adamw")"}, {"Adam", R"("adamw")"}}},
    {"training.local_batch_size", "arg.local_batch", K::integer, "8"},
    {"training.batch_size", "arg.local_batch", K::integer, "", {}, /*other_spelling=*/true},
    {"training.global_batch_size", "arg.global_batch", K::integer, "-1"},
    {"training.seq_len", "workload.sequence", K::integer, "2048"},
    {"training.dtype", "arg.type", K::text, R"("fp32")", types},
    {"training.mixed_precision_param", "arg.compute", K::text, R"("bf16")", types},
    {"training.mixed_precision_reduce", "arg.reduce", K::text, R"("fp32")", types},
    {"parallelism.data_parallel_replicate_degree", "mesh.dp_replicate", K::integer, "1"},
    {"parallelism.data_parallel_shard_degree", "mesh.dp_shard", K::integer, "-1"},
    {"parallelism.fsdp_reshard_after_forward", "arg.reshard", K::text, R"("default")",
     {{"default", R"("default")"}, {"always", R"("always")"}, {"never", R"("never")"}}},
    {"parallelism.tensor_parallel_degree", "mesh.tp", K::integer, "1"},
    {"parallelism.disable_loss_parallel", "strategy.loss_parallel", K::flag, "true",
     {{"true", "false"}, {"false", "true"}}},
    {"parallelism.enable_async_tensor_parallel", "strategy.async_tp", K::flag},
    {"parallelism.pipeline_parallel_degree", "mesh.pp", K::integer, "1"},
    {"parallelism.module_fqns_per_model_part", "arg.modules", K::any},
    {"parallelism.pipeline_parallel_first_stage_less_layers", "arg.first_less", K::integer, "1"},
    {"parallelism.pipeline_parallel_last_stage_less_layers", "arg.last_less", K::integer, "1"},
    {"parallelism.pipeline_parallel_layers_per_stage", "arg.layers_of_stage", K::integer},
    {"parallelism.pipeline_parallel_schedule", "arg.schedule", K::text, R"("1f1b")", schedules},
    {"parallelism.pipeline_parallel_schedule_csv", "arg.schedule_file", K::text, R"("")"},
    {"parallelism.pipeline_parallel_microbatch_size", "arg.microbatch", K::integer, "1"},
    {"parallelism.context_parallel_degree", "mesh.cp", K::integer, "1"},
    {"parallelism.context_parallel_rotate_method", "arg.rotates", K::text, R"("all-gather")",
     {{"allgather", R"("all-gather")"}, {"alltoall", R"("ring")"}}},
    {"parallelism.expert_parallel_degree", "arg.ep", K::integer, "1"},
    {"parallelism.expert_tensor_parallel_degree", "arg.etp", K::integer, "1"},
    {"activation_checkpoint.mode", "arg.checkpoints", K::text, R"("selective")",
     {{"none", R"("none")"}, {"full", R"("full")"}, {"selective", R"("selective")"},
      {"memory_budget", R"("memory_budget")"}}},
    {"activation_checkpoint.selective_ac_option", "arg.every", K::text, R"("2")"},
    {"compile.enable", "arg.compiled", K::flag, "false"},
    {"training.compile", "arg.compiled", K::flag, "", {}, /*other_spelling=*/true},
    {"compile.components", "arg.compiled_parts", K::any, R"(["model", "loss"])"},
    {"quantize.linear.float8.recipe_name", "arg.float8_recipe", K::text, R"("tensorwise")",
     {{"tensorwise", R"("tensorwise")"}, {"rowwise", R"("rowwise")"},
      {"rowwise_with_gw_hp", R"("rowwise")"}}},
    {"float8.recipe_name", "arg.float8_recipe", K::text, "",
     {{"tensorwise", R"("tensorwise")"}, {"rowwise", R"("rowwise")"},
      {"rowwise_with_gw_hp", R"("rowwise")"}}, /*other_spelling=*/true},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", "arg.float8_gather", K::flag, "false"},
    {"float8.enable_fsdp_float8_all_gather", "arg.float8_gather", K::flag, "", {},
     /*other_spelling=*/true},
    {"quantize.dense.float8.enable_fsdp_float8_all_gather", "arg.float8_gather", K::flag, "", {},
     /*other_spelling=*/true},
    {"float8.enable_float8_linear", "arg.float8", K::flag, "", {}, /*other_spelling=*/true},
    // As files had them before the section "parallelism".
    {"training.data_parallel_replicate_degree", "mesh.dp_replicate", K::integer, "", {}, true},
    {"training.data_parallel_shard_degree", "mesh.dp_shard", K::integer, "", {}, true},
    {"training.data_parallel_degree", "mesh.dp_shard", K::integer, "", {}, true},
    {"training.tensor_parallel_degree", "mesh.tp", K::integer, "", {}, true},
    {"training.enable_async_tensor_parallel", "strategy.async_tp", K::flag, "", {}, true},
    {"training.disable_loss_parallel", "strategy.loss_parallel", K::flag, "",
     {{"true", "false"}, {"false", "true"}}, true},
    {"experimental.enable_async_tensor_parallel", "strategy.async_tp", K::flag, "", {}, true},
    {"experimental.pipeline_parallel_degree", "mesh.pp", K::integer, "", {}, true},
    {"experimental.pipeline_parallel_schedule", "arg.schedule", K::text, "", schedules, true},
    {"experimental.pipeline_parallel_microbatches", "arg.microbatches", K::integer, "", {}, true},
    {"experimental.context_parallel_degree", "mesh.cp", K::integer, "", {}, true},
    {"experimental.context_parallel_rotate_method", "arg.rotates", K::text, "",
     {{"allgather", R"("all-gather")"}, {"alltoall", R"("ring")"}}, true}};

const std::vector<HarmlessKeys> harmless_keys = {
    {"of logs, profiles and files",
     {"job.*", "profiling.*", "metrics.*", "memory_estimation.*", "comm.*", "validation.*",
      "model.print_after_conversion", "activation_checkpoint.visualize_memory_budget_pareto",
      "experimental.custom_import", "experimental.custom_args_module",
      "experimental.custom_model_path", "debug.*"}},
    {"of checkpoints, which are no part of a step",
     {"checkpoint.*"}},
    {"of data and tokenizers",
     {"training.dataset", "training.dataset_path", "model.hf_assets_path", "model.tokenizer_path",
      "training.seed", "training.data.*", "training.dataloader.*", "data.*"}},
    {"of how long training goes on and at which rates",
     {"lr_scheduler.*", "optimizer.lr", "optimizer.beta1", "optimizer.beta2", "optimizer.eps",
      "optimizer.weight_decay", "training.steps", "training.warmup_steps",
      "training.max_norm",  // the norm is taken in any case
      "training.gc_freq", "training.gc_debug", "training.deterministic",
      "training.debug_moe_force_load_balance"}},
    {"which of few kernels",
     {"optimizer.implementation", "optimizer.fused", "optimizer.foreach", "compile.backend",
      "model.norm_type", "parallelism.enable_compiled_autograd",
      "training.enable_compiled_autograd", "experimental.enable_compiled_autograd",
      "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
      "activation_checkpoint.early_stop", "activation_checkpoint.preserve_rng_state",
      "activation_checkpoint.determinism_check", "activation_checkpoint.debug",
      "activation_checkpoint.memory_budget", "quantize.linear.float8.emulate",
      "quantize.linear.float8.filter_fqns", "float8.filter_fqns", "float8.emulate",
      "float8.force_recompute_fp8_weight_in_bwd",
      "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
      "float8.precompute_float8_dynamic_scale_for_fsdp", "quantize.linear.mx.*",
      "quantize.dense.*", "quantize.moe.*", "float8.moe_fqns", "quantize.grouped_mm.*"}}};

const std::vector<RefusedKey> refused_keys = {
    {"training.enable_cpu_offload", "[false]",
     "parameters, gradients and optimizer on the host are not simulated"},
    {"optimizer.early_step_in_backward", "[false]", "steps inside of backward are not simulated"},
    {"experimental.pipeline_parallel_split_points", "[[], \"\"]",
     "stages by their first layers are read as \"parallelism.module_fqns_per_model_part\" alone"},
    {"parallelism.pipeline_parallel_split_points", "[[], \"\"]",
     "stages by their first layers are read as \"parallelism.module_fqns_per_model_part\" alone"},
    {"fault_tolerance.enable", "[false]", "replicas that come and go are not simulated"},
    {"fault_tolerance.*", "", "replicas that come and go are not simulated"}};

}  // namespace torchtitan
}  // namespace

KeyTable torchtitan_keys() { return {&torchtitan::used_keys, &torchtitan::harmless_keys, &torchtitan::refused_keys}; }

}  // namespace shardsim
