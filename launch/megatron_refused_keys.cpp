// Keys of Megatron that ask for what is not simulated. Sources: megatron_keys.cpp.
#include "launch/framework_files.hpp"

namespace shardsim {
namespace {
namespace megatron {

const std::vector<RefusedKey> refused_keys = {
    {"yaml-cfg", "", "another file holds the arguments: write them out"},
    {"spec",
     R"([["megatron.core.models.mamba.mamba_layer_specs", "mamba_stack_spec"],
         ["megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec"]])",
     "a layer specification of one's own is a program, not a configuration"},
    {"heterogeneous-layers-config-path", "",
     "layers that another file describes: name the model's config.json with --model"},
    {"use-torch-fsdp2", R"([false])",
     "Megatron with PyTorch's FSDP2 is not simulated; \"fsdp2\" alone is a strategy"},
    {"no-pin-cpu-grads", R"([false])", "copies of memory that is not pinned are not simulated"},
    {"no-pin-cpu-params", R"([false])", "copies of memory that is not pinned are not simulated"},
    {"fine-grained-activation-offloading", "[true, false]", "is said by --offload-modules"},
    {"overlap-param-gather-with-optimizer-step", R"([false])",
     "gathers beside the optimizer's step are not simulated"},
    {"hybrid-context-parallel", R"([false])",
     "groups that change with the batch are not simulated"},
    {"no-rope-freq", "",
     "layers without positions cannot be made of arguments: name the model's "
     "config.json with --model"},
    {"linear-attention-freq", "",
     "linear attention cannot be made of arguments: name the model's "
     "config.json with --model"},
    {"experimental-attention-variant", "", "this attention cannot be made of arguments"},
    {"moe-latent-size", "", "experts in a latent width are not simulated"},
    {"attention-output-gate", R"([false])", "a gate behind attention cannot be made of arguments"},
    {"fp32-residual-connection", R"([false])", "a residual stream in fp32 is not simulated"},
    {"apply-residual-connection-post-layernorm", R"([false])",
     "a residual stream behind the norm cannot be made of arguments"},
    {"num-experts-per-layer", "", "a number of experts for each layer is not simulated"},
    {"distribute-saved-activations", R"([false])",
     "what recomputation keeps, in parts over tensor-parallel ranks, is not simulated"},
    {"pipeline-model-parallel-split-rank", "",
     "encoders and decoders on stages of their own are "
     "not simulated"},
    {"encoder-tensor-model-parallel-size", "[0, \"0\"]",
     "encoders are not simulated under Megatron"},
    {"encoder-pipeline-model-parallel-size", "[0, \"0\"]",
     "encoders are not simulated under Megatron"},
    {"encoder-num-layers", "", "encoders are not simulated under Megatron"},
    {"decoder-num-layers", "", "encoders and decoders are not simulated under Megatron"},
    {"reduce-scatter-with-fp32-accumulation", R"([false])",
     "reduce-scatters by all-to-all are not simulated"},
    {"reuse-grad-buf-for-mxfp8-param-ag", R"([false])",
     "a gradient buffer that parameters are gathered in is not simulated"},
    {"main-grads-dtype", R"(["fp32"])",
     "another type of the optimizer's gradients is not simulated"},
    {"outer-dp-sharding-strategy", R"(["no_shard"])", "shards of two levels are not simulated"},
    {"lora-rank", "", "say \"lora\" of the workload in the experiment"},
    {"deepspeed", R"([false])", "is DeepSpeed's: import deepspeed reads its JSON"},
    {"deepspeed-config", "", "is DeepSpeed's: import deepspeed reads it"},
    {"no-pipeline-parallel", "[true, false]", "is DeepSpeed's: import deepspeed reads its JSON"},
    {"deepspeed-activation-checkpointing", "[false]",
     "is DeepSpeed's: import deepspeed reads its JSON"},
    {"cpu-optimizer", "[false]", "an optimizer on the host is not simulated"},
    {"zero-stage", "[0, \"0\"]", "is DeepSpeed's: import deepspeed reads its JSON"}};

}  // namespace megatron
}  // namespace

const std::vector<RefusedKey>& megatron_refused_keys() { return megatron::refused_keys; }

}  // namespace shardsim
