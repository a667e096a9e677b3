// Keys of DeepSpeed's JSON: DeepSpeed 0.19.8, runtime/{config,constants}.py,
// runtime/zero/{config,offload_config}.py, runtime/tensor_parallel/config.py, read 2026-11-26.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace deepspeed {

using K = KeyKind;

const std::vector<std::pair<std::string_view, std::string_view>> types = {
    {"fp32", R"("fp32")"}, {"fp16", R"("fp16")"}, {"bf16", R"("bf16")"}, {"bfp16", R"("bf16")"}};
const std::vector<std::pair<std::string_view, std::string_view>> optimizers = {
    {"AdamW", R"("adamw")"}, {"Adam", R"("adamw")"},      {"adamw", R"("adamw")"},
    {"adam", R"("adamw")"},  {"FusedAdam", R"("adamw")"}, {"SGD", R"("sgd")"}};

const std::vector<Key> used_keys = {
    // May be "auto", which transformers fills in from its own arguments (deepspeed.cpp).
    {"train_batch_size", "workload.batch", K::any},
    {"train_micro_batch_size_per_gpu", "arg.microbatch", K::integer},
    {"gradient_accumulation_steps", "arg.microbatches", K::any},
    {"bf16.enabled", "arg.bf16", K::any, "false"},
    {"bfloat16.enabled", "arg.bf16", K::any, "", {}, /*other_spelling=*/true},
    {"fp16.enabled", "arg.fp16", K::any, "false"},
    {"communication_data_type", "arg.reduce", K::text, "", types},
    {"data_types.grad_accum_dtype", "arg.gradients", K::text, "", types},
    {"gradient_clipping", "arg.clip", K::any, "0.0"},
    {"optimizer.type", "workload.optimizer", K::text, R"("adamw")", optimizers},
    {"zero_optimization.stage", "strategy.zero_stage", K::integer, "0"},
    // May be "auto", which transformers fills in from the width of the model.
    {"zero_optimization.reduce_bucket_size", "arg.bucket", K::any},
    {"zero_optimization.overlap_comm", "arg.overlaps", K::flag},
    {"zero_optimization.round_robin_gradients", "strategy.round_robin_gradients", K::flag},
    {"zero_optimization.stage3_prefetch_bucket_size", "arg.prefetch", K::any},
    {"zero_optimization.prefetch_bucket_size", "arg.prefetch", K::any, "", {}, true},
    {"zero_optimization.stage3_param_persistence_threshold", "arg.persistence", K::any},
    {"zero_optimization.param_persistence_threshold", "arg.persistence", K::any, "", {}, true},
    {"zero_optimization.stage3_max_live_parameters", "arg.live", K::integer},
    {"zero_optimization.max_live_parameters", "arg.live", K::integer, "", {}, true},
    {"zero_optimization.stage3_max_reuse_distance", "arg.reuse", K::integer},
    {"zero_optimization.max_reuse_distance", "arg.reuse", K::integer, "", {}, true},
    {"zero_optimization.sub_group_size", "arg.sub_group", K::integer},
    {"zero_optimization.offload_optimizer.device",
     "arg.optimizer_device",
     K::text,
     "",
     {{"none", R"("none")"}, {"cpu", R"("cpu")"}}},
    {"zero_optimization.cpu_offload", "arg.optimizer_on_host", K::flag, "", {}, true},
    {"zero_optimization.offload_param.device",
     "arg.parameters_device",
     K::text,
     "",
     {{"none", R"("none")"}, {"cpu", R"("cpu")"}}},
    {"zero_optimization.cpu_offload_param", "arg.parameters_on_host", K::flag, "", {}, true},
    {"zero_optimization.cpu_offload_params", "arg.parameters_on_host", K::flag, "", {}, true},
    {"zero_optimization.zero_hpz_partition_size", "arg.hpz", K::integer},
    {"zero_optimization.zero_quantized_weights", "arg.qwz", K::flag},
    {"zero_optimization.stage3_allgather_sequential", "arg.sequential", K::flag},
    {"zero_optimization.allgather_sequential", "arg.sequential", K::flag, "", {}, true},
    {"zero_optimization.stage3_model_persistence_threshold", "arg.whole_in_all", K::any},
    {"zero_optimization.model_persistence_threshold", "arg.whole_in_all", K::any, "", {}, true},
    {"zero_optimization.memory_efficient_linear", "arg.linear", K::flag},
    {"zero_optimization.reduce_scatter", "arg.scatters", K::flag, "true"},
    {"zero_optimization.compute_grad_norm", "arg.norm", K::flag, "true"},
    {"bf16.check_grad_overflow", "arg.checks_overflow", K::flag, "true"},
    {"bfloat16.check_grad_overflow", "arg.checks_overflow", K::flag, "", {}, true},
    {"tensor_parallel.autotp_size", "arg.tp", K::integer}};

const std::vector<HarmlessKeys> harmless_keys = {
    {"of logs, profiles and checks beside the step",
     {"steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state", "comms_logger.*",
      "flops_profiler.*", "tensorboard.*", "wandb.*", "csv_monitor.*", "comet.*",
      "monitor_config.*", "zero_optimization.log_trace_cache_warnings",
      "zero_optimization.enable_sanity_checks", "verbose", "comms_config.*", "nebula.*", "$schema",
      "_comment", "comment"}},
    {"of rates and of numbers that are computed with",
     {"scheduler.*", "optimizer.params.*", "optimizer.legacy_fusion", "fp16.loss_scale",
      "fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis",
      "fp16.min_loss_scale", "fp16.auto_cast", "fp16.consecutive_hysteresis", "bf16.loss_scale",
      "bf16.auto_cast", "bfloat16.loss_scale", "prescale_gradients", "gradient_predivide_factor",
      "seed", "bf16.immediate_grad_update"}},
    {"of how weights are loaded and saved",
     {"checkpoint.*", "load_universal_checkpoint", "zero_optimization.load_from_fp32_weights",
      "zero_optimization.elastic_checkpoint",
      "zero_optimization.stage3_gather_16bit_weights_on_model_save",
      "zero_optimization.stage3_gather_fp16_weights_on_model_save",
      "zero_optimization.gather_16bit_weights_on_model_save",
      "zero_optimization.pipeline_loading_checkpoint", "zero_optimization.legacy_stage1", "aio.*",
      "hybrid_engine.*"}},
    {"of batches that are read, and of processes that come and go",
     {"dataloader_drop_last", "elasticity.*", "autotuning.*", "data_efficiency.*",
      "curriculum_learning.*"}},
    {"of who sets the optimizer up",
     {"zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "use_node_local_storage",
      "disable_python_gc", "graph_harvesting"}},
    {"of what is kept on the host, which \"device\" asks for",
     {"zero_optimization.offload_optimizer.*", "zero_optimization.offload_param.*"}},
    {"of models that call DeepSpeed's own checkpointing; say \"rematerialization\" of the workload",
     {"activation_checkpointing.*"}},
    {"the calls are planned as DeepSpeed makes them by itself, in buckets of their own",
     {"zero_optimization.allgather_partitions", "zero_optimization.allgather_bucket_size",
      "zero_optimization.ignore_unused_parameters", "zero_optimization.override_module_apply",
      "zero_optimization.cpu_offload_use_pin_memory", "disable_allgather", "pipeline.*",
      "tensor_parallel.tp_grain_size", "tensor_parallel.tp.*", "sparse_gradients",
      "zero_optimization.save_muon_momentum_buffer_in_memory", "amp.opt_level"}}};

const std::vector<RefusedKey> refused_keys = {
    {"zero_optimization.offload_optimizer.ratio", "[1, 1.0]",
     "a part of the optimizer on the host is not simulated"},
    {"zero_optimization.zenflow.*", "", "ZenFlow is not simulated"},
    {"zero_optimization.zero_quantized_gradients", "[false]",
     "gradients in 4 bits (qgZ) are not simulated"},
    {"zero_optimization.zero_quantized_nontrainable_weights", "[false]",
     "frozen weights in 8 bits are not simulated"},
    {"zero_optimization.mics_shard_size", "[-1]", "MiCS is not simulated"},
    {"zero_optimization.mics_hierarchical_params_gather", "[false]", "MiCS is not simulated"},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", "[false]",
     "gathers by all-reduce are not simulated"},
    {"zero_optimization.use_all_reduce_for_fetch_params", "[false]",
     "gathers by all-reduce are not simulated"},
    {"zero_optimization.leaf_module.*", "", "modules that are gathered whole are not simulated"},
    {"zero_optimization.stage3_module_granularity_threshold", "[0]",
     "modules that are gathered whole are not simulated"},
    {"zero_optimization.module_granularity_threshold", "[0]",
     "modules that are gathered whole are not simulated"},
    {"zero_optimization.contiguous_gradients", "[true]",
     "gradients that are reduced where they are made are not simulated"},
    {"zero_optimization.use_multi_rank_bucket_allreduce", "[true]",
     "buckets in a call for each device's part are not simulated"},
    {"zero_optimization.parameter_alignment", "[false]",
     "parameters that begin at multiples of 16 bytes are not simulated"},
    {"sequence_parallel_size", "[1]", "DeepSpeed-Ulysses is not simulated under \"deepspeed\""},
    {"seq_parallel_communication_data_type", "", "DeepSpeed-Ulysses is not simulated"},
    {"amp.enabled", "[false]", "apex's amp is not simulated; \"fp16\" and \"bf16\" are"},
    {"bf16.bf16_master_weights_and_grads", "[false]", "master weights in bf16 are not read"},
    {"bf16.bf16_optimizer_states", "[false]", "moments in bf16 are not read"},
    {"fp16.fp16_master_weights_and_grads", "[false]", "master weights in fp16 are not read"},
    {"torch_autocast.enabled", "[false]", "autocast is not simulated under \"deepspeed\""},
    {"torch_autocast.*", R"(["bfloat16", "float16"])", "autocast is not simulated"},
    {"compression_training.*", "", "compressed training is not simulated"},
    {"quantize_training.*", "", "compressed training is not simulated"},
    {"sparse_attention.*", "", "sparse attention is not simulated"},
    {"progressive_layer_drop.enabled", "[false]", "layers that are left out are not simulated"},
    {"progressive_layer_drop.*", "", "layers that are left out are not simulated"},
    {"eigenvalue.enabled", "[false]", "eigenvalues between steps are not simulated"},
    {"compile.deepcompile", "[false]", "DeepCompile's passes are not simulated"},
    {"compile.*", "", "DeepCompile's passes are not simulated"},
    {"expert_parallel.*", "", "experts over devices are not simulated under \"deepspeed\""},
    {"autoep.*", "", "experts over devices are not simulated under \"deepspeed\""}};

}  // namespace deepspeed
}  // namespace

KeyTable deepspeed_keys() {
  return {&deepspeed::used_keys, &deepspeed::harmless_keys, &deepspeed::refused_keys};
}

}  // namespace shardsim
