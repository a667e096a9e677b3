// Constants of Pax's experiments, and flags of its main program: google/paxml 1.4.0,
// tasks/lm/model_params.py, params/*.py and main.py.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace pax {

using K = KeyKind;

const std::vector<Key> used_keys = {
    {"exp", "arg.experiment", K::text},
    {"fdl_config", "arg.experiment", K::text, "", {}, /*other_spelling=*/true},
    {"task.model", "arg.model", K::text, R"("lm")"},
    {"task.parallel", "arg.parallel", K::text, R"("spmd")"},
    {"task.optimizer", "arg.optimizer", K::text, R"("adam")"},
    {"task.recipe", "arg.recipe", K::text, R"("")"},
    // The model.
    {"NUM_LAYERS", "model.layers", K::integer},
    {"VOCAB_SIZE", "model.vocab", K::integer},
    {"MODEL_DIMS", "model.hidden", K::integer},
    {"HIDDEN_DIMS", "model.width", K::integer},
    {"NUM_HEADS", "model.heads", K::integer},
    {"DIMS_PER_HEAD", "model.head_dim", K::integer},
    {"NUM_KV_HEADS", "model.kv_heads", K::integer},
    {"NUM_EXPERTS", "model.experts", K::integer},
    {"ACTIVATION_CLS",
     "model.activation",
     K::text,
     R"("relu")",
     {{"ReLU", R"("relu")"}, {"GELU", R"("gelu")"}, {"Swish", R"("silu")"}, {"SiLU", R"("silu")"}}},
    {"USE_GATED_ACTIVATION", "model.gated", K::flag, "false"},
    {"USE_BIAS", "model.bias", K::flag, "false"},
    {"COMBINE_QKV", "model.combined", K::flag},
    {"SEPARATE_EMBEDDING", "model.apart", K::flag, "false"},
    {"TRAINABLE_POSITION_EMB", "model.learned", K::flag, "false"},
    {"TRAINABLE_PE_MAX_SEQ_LEN", "model.positions", K::integer, "16384"},
    {"USE_ROTARY_POSITION_EMB", "model.rotary", K::flag, "false"},
    {"ATTEN_LOGIT_CAP", "model.attention_cap", K::number, "0"},
    {"SOFTMAX_CAP_LOGITS", "model.logit_cap", K::number, "0"},
    {"DROPOUT_PROB", "workload.dropout", K::number, "0"},
    {"NUM_LAYER", "classifier.layers", K::integer},
    {"INPUT_DIM", "classifier.inputs", K::integer},
    {"HIDDEN_DIM", "classifier.hidden", K::integer},
    {"OUTPUT_DIM", "classifier.outputs", K::integer},
    // What is computed at once, in which types, and what is kept.
    {"PERCORE_BATCH_SIZE", "arg.per_core", K::number},
    {"MAX_SEQ_LEN", "arg.sequence", K::integer},
    {"task.sequence", "arg.sequence", K::integer, "", {}, /*other_spelling=*/true},
    {"FPROP_DTYPE", "arg.type", K::text, "", {{"float32", R"("fp32")"}, {"bfloat16", R"("bf16")"}}},
    {"ENABLE_BFLOAT16", "arg.bfloat16", K::flag},
    {"USE_REPEATED_LAYER", "arg.repeated", K::flag, "false"},
    {"CHECKPOINT_POLICY", "arg.policy", K::text},
    {"USE_ADAFACTOR", "arg.adafactor", K::flag, "false"},
    {"CLIP_GRADIENT_NORM_TO_VALUE", "arg.clip", K::number, "5.0"},
    // Who holds what.
    {"ICI_MESH_SHAPE", "mesh.ici", K::any},
    {"MESH_SHAPE", "mesh.ici", K::any, "", {}, /*other_spelling=*/true},
    {"DCN_MESH_SHAPE", "mesh.dcn", K::any},
    {"TRAINING_OPTIMIZED_SHARDING", "arg.splits_stream", K::flag, "true"},
    {"EMB_W_DATA_DIMS", "arg.table_axes", K::any, R"("data")"},
    // Stages.
    {"NUM_STAGES", "arg.stages", K::integer},
    {"CIRCULAR_REPEAT", "arg.repeats", K::integer, "1"},
    {"NUM_MICROBATCHES", "arg.microbatches", K::integer},
    {"MICROBATCH_SIZE", "arg.microbatch", K::integer},
    {"STREAM_IO", "arg.streams", K::flag, "false"}};

const std::vector<HarmlessKeys> harmless_keys = {
    {"the optimizer's numbers",
     {"LEARNING_RATE",      "WEIGHT_DECAY",      "DECAY_END",         "ADAM_BETA1",
      "ADAM_BETA2",         "ADAM_EPSILON",      "ADAM_EPSILON_ROOT", "ADAM_CLIP_THRESHOLD",
      "CLIP_THRESHOLD",     "LR_SCHEDULE",       "LR_LRED_WARMUP",    "LR_LRED_DECAY_START",
      "LR_LRED_DECAY_END",  "LR_LRED_MIN_RATIO", "LR_LRED_MAX",       "LR_COS_WARMUP",
      "LR_COS_DECAY_START", "LR_COS_DECAY_END",  "LR_COS_MIN_RATIO",  "LR_COS_MAX"}},
    {"when something is saved, written or evaluated",
     {"CHECKPOINT_EVERY_N_STEPS", "CHECKPOINT_MAX_TO_KEEP", "CHECKPOINT_SAVE_MAX_TO_KEEP",
      "SUMMARY_INTERVAL_STEPS", "EVAL_INTERVAL_STEPS", "PROFILER_NUM_STEPS",
      "PROFILER_MIN_DURATION_SEC", "PROFILER_CAPTURE_STEP", "MAX_STEPS", "NUM_TRAIN_STEPS",
      "TARGET_LOG_PPLX"}},
    {"of what is trained on",
     {"TRAIN_MIXTURE", "EVAL_MIXTURE", "TRAINING_SEED", "TRAINING_NUM_BATCHES_TO_SKIP",
      "MLPERF_REMASK", "RANDOM_BUFFER_SIZE", "USE_MLPERF_DATA", "MASK_TOKEN_ID",
      "FORCE_MASK_GENERATION", "PACKED_INPUT", "PERCORE_EVAL_BATCH_SIZE"}},
    {"how weights are initialized, or a constant that is computed with",
     {"INIT_STD", "SOFTMAX_INIT_STD", "LAYERNORM_EPSILON"}},
    {"of kernels; attention and norms are one each",
     {"USE_FLASH_ATTENTION", "USE_CUDNN_FLASH_ATTENTION", "USE_TRITON_LAYER_NORM"}},
    {"which a note says", {"EMBEDDING_LOOKUP_STYLE"}},
    {"groups that tokens are routed in", {"NUM_GROUPS", "NUM_GPUS"}},
    {"where and how the program runs",
     {"tfds_data_dir", "mode", "enable_checkpoint_saving", "multiprocess_gpu", "server_addr",
      "num_hosts", "host_idx", "alsologtostderr", "jax_backend_target",
      "jax_fully_async_checkpoint", "jax_profiler_port", "job_log_dir", "eval_on_test",
      "enable_auto_sharding", "maybe_use_persistence_checkpointing", "xprof_port"}}};

const std::vector<RefusedKey> refused_keys = {
    {"RELATIVE_BIAS", "[false]", "biases of distances in every layer are not simulated"},
    {"ENABLE_DCONV", "[false]", "convolutions of queries, keys and values are not simulated"},
    {"NORM_POLICY", R"(["pre"])", "norms elsewhere than before each branch are not simulated"},
    {"REL_POS_EMB_DIM", "[null]", "attention with relative positions is not simulated"},
    {"INPUT_DROPOUT_PROB", "[0, 0.0]", "dropout of what enters the layers is not simulated"},
    {"PIPELINE_BROADCAST_INPUTS", "[false]", "inputs sent to every stage are not simulated"},
    {"MLP_WEIGHT_SHARDING", "[[-1, -1], null]", "a classifier's weights in parts"},
    {"SOFTMAX_WEIGHT_SHARDING", "[[-1, -1], null]", "a classifier's weights in parts"}};

}  // namespace pax
}  // namespace

KeyTable pax_keys() { return {&pax::used_keys, &pax::harmless_keys, &pax::refused_keys}; }

}  // namespace shardsim
