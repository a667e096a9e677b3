// Linear recurrences: RecurrentGemma.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Two recurrent blocks, then windowed attention; biases but for queries, keys and values.
ModelSpec recurrent_gemma(const Config& c) {
  Sizes n = read_sizes(
      c, {.tied = true, .activation = "gelu_pytorch_tanh", .activation_keys = "hidden_activation"});
  n.norm = NormKind::rms_offset;
  Attention attention = llama_attention(c, n);
  attention.name = "temporal_block";
  attention.o_bias = true;
  attention.window = c.count("attention_window_size|sliding_window", 2048);
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.5);
  attention.rotary.concatenated = attention.rotary.each_layer = true;
  RecurrentBlock recurrent;
  recurrent.width = c.size("lru_width", n.hidden);
  recurrent.heads = n.heads;
  recurrent.kernel = c.size("conv1d_width", 4);
  recurrent.activation = n.activation;
  static_cast<void>(c.divided("lru_width", recurrent.width, "num_attention_heads", n.heads));
  Mlp mlp = llama_mlp(n);
  mlp.name = "mlp_block";
  mlp.width = n.width / 2;  // intermediate_size counts gate and up
  mlp.bias = true;
  // How weights start.
  c.pass_over({"w_init_variance_scale", "final_w_init_variance_scale",
               "embeddings_scale_by_sqrt_dim", "layers_block_type", "layer_types"});
  std::vector<std::string> pattern = c.texts("block_types|_block_types");
  if (pattern.empty()) pattern = {"recurrent", "recurrent", "attention"};
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const std::string& type =
                                 pattern[static_cast<std::size_t>(i) % pattern.size()];
                             LayerKind layer = llama_layer(n, type, attention, mlp);
                             if (type == "recurrent") layer.branches[0].body = recurrent;
                             layer.branches[0].before.name = "temporal_pre_norm";
                             layer.branches[1].before.name = "channel_pre_norm";
                             return layer;
                           }));
  spec.stacks[0].norm.name = "model.final_norm";
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  spec.head.soft_cap = c.cap("logits_soft_cap", 30);
  return spec;
}

}  // namespace

std::vector<Family> recurrent_families() {
  return {{"RecurrentGemmaForCausalLM", "recurrent_gemma", recurrent_gemma}};
}

}  // namespace shardsim::models
