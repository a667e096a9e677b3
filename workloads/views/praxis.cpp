#include "workloads/views/praxis.hpp"

#include <algorithm>
#include <array>

#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

const std::vector<std::string>& praxis_families() {
  static const std::vector<std::string> table = {"gpt2", "llama", "mistral", "mixtral"};
  return table;
}

constexpr std::array praxis_rows = std::to_array<ViewRow>(
    {// The table of tokens is the softmax'.
     {"transformer.wte.weight", "params/lm/softmax/logits_ffn/linear/w", "-=hidden -=vocab"},
     {"transformer.wpe.weight", "params/lm/position_emb/emb_var", "-=positions -=hidden"},
     {"transformer.ln_f.weight", "params/lm/final_ln/scale", "-=hidden"},
     {"transformer.ln_f.bias", "params/lm/final_ln/bias", "-=hidden"},
     {"ln_1.weight", "layer_norm/scale", "-=hidden"},
     {"ln_1.bias", "layer_norm/bias", "-=hidden"},
     {"attn.c_attn.weight", "self_attention/combined_qkv/w", "-=qkv -=hidden -=heads -=head_dim"},
     {"attn.c_attn.bias", "self_attention/combined_qkv/b", "-=qkv -=heads -=head_dim"},
     {"attn.c_proj.weight", "self_attention/post/w", "-=hidden -=heads -=head_dim"},
     {"attn.c_proj.bias", "self_attention/post/b", "-=hidden"},
     {"ln_2.weight", "ff_layer/layer_norm/scale", "-=hidden"},
     {"ln_2.bias", "ff_layer/layer_norm/bias", "-=hidden"},
     {"mlp.c_fc.weight", "ff_layer/ffn_layer1/linear/w", "-=hidden -=ffn"},
     {"mlp.c_fc.bias", "ff_layer/ffn_layer1/bias/b", "-=ffn"},
     {"mlp.c_proj.weight", "ff_layer/ffn_layer2/linear/w", "-=ffn -=hidden"},
     {"mlp.c_proj.bias", "ff_layer/ffn_layer2/bias/b", "-=hidden"},
     {"model.embed_tokens.weight", "params/lm/embedding_lookup/emb_var", "-=vocab -=hidden"},
     {"model.norm.weight", "params/lm/final_ln/scale", "-=hidden"},
     {"lm_head.weight", "params/lm/softmax/logits_ffn/linear/w", "-=hidden -=vocab"},
     {"input_layernorm.weight", "layer_norm/scale", "-=hidden"},
     {"self_attn.q_proj.weight", "self_attention/query/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.k_proj.weight", "self_attention/key/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.v_proj.weight", "self_attention/value/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.o_proj.weight", "self_attention/post/w", "-=hidden -=heads -=head_dim"},
     {"post_attention_layernorm.weight", "ff_layer/layer_norm/scale", "-=hidden"},
     {"mlp.gate.weight", "ff_layer/gate", "-=hidden -=experts"},
     {"mlp.experts.gate_up_proj", "ff_layer/wi_{gate_up:gate_0,0}", "-=experts -=hidden -=ffn"},
     {"mlp.experts.down_proj", "ff_layer/wo_0", "-=experts -=ffn -=hidden"},
     {"mlp.gate_proj.weight", "ff_layer/ffn_layer1_gate/linear/w", "-=hidden -=ffn"},
     {"mlp.up_proj.weight", "ff_layer/ffn_layer1/linear/w", "-=hidden -=ffn"},
     {"mlp.down_proj.weight", "ff_layer/ffn_layer2/linear/w", "-=ffn -=hidden"}});

}  // namespace

ViewedLayers praxis_layers(const ViewInput& input) {
  const auto& known = praxis_families();
  if (std::count(known.begin(), known.end(), input.family) == 0) {
    fail_without_family(input, "praxis", known);
  }
  const TreeView::Layer repeated = {.path = "params/lm/transformer/repeat/sub/x_layers_0",
                                    .mark = "",
                                    .stacked = true,
                                    .axis = std::nullopt};
  ViewedLayers layers;
  for (const auto& [stack, count] : layer_counts(input.workload)) {
    layers[stack].assign(count, repeated);
  }
  return layers;
}

std::optional<ViewedParameter> praxis_parameter(const ViewInput& input, TensorId parameter) {
  auto viewed = by_row(input.workload, parameter, praxis_rows, {});
  if (viewed) viewed->form.has_axes = false;
  return viewed;
}

}  // namespace shardsim
