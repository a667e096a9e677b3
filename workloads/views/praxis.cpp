#include "workloads/views/praxis.hpp"

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

const std::vector<std::string>& praxis_families() {
  static const std::vector<std::string> table = {"gpt2", "llama", "mistral", "mixtral",
                                                 "praxis_lm"};
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
     {"model.embed_positions.weight", "params/lm/position_emb/emb_var", "-=positions -=hidden"},
     {"model.norm.weight", "params/lm/final_ln/scale", "-=hidden"},
     {"model.norm.bias", "params/lm/final_ln/bias", "-=hidden"},
     {"lm_head.weight", "params/lm/softmax/logits_ffn/linear/w", "-=hidden -=vocab"},
     {"lm_head.bias", "params/lm/softmax/logits_ffn/bias/b", "-=vocab"},
     {"input_layernorm.weight", "layer_norm/scale", "-=hidden"},
     {"input_layernorm.bias", "layer_norm/bias", "-=hidden"},
     {"self_attn.qkv_proj.weight", "self_attention/combined_qkv/w",
      "-=group_qkv -=hidden -=heads -=head_dim"},
     {"self_attn.qkv_proj.bias", "self_attention/combined_qkv/b", "-=group_qkv -=heads -=head_dim"},
     {"self_attn.per_dim_scale.weight", "self_attention/per_dim_scale/per_dim_scale", "-=head_dim"},
     {"self_attn.q_proj.bias", "self_attention/query/b", "-=heads -=head_dim"},
     {"self_attn.k_proj.bias", "self_attention/key/b", "-=heads -=head_dim"},
     {"self_attn.v_proj.bias", "self_attention/value/b", "-=heads -=head_dim"},
     {"self_attn.o_proj.bias", "self_attention/post/b", "-=hidden"},
     {"self_attn.q_proj.weight", "self_attention/query/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.k_proj.weight", "self_attention/key/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.v_proj.weight", "self_attention/value/w", "-=hidden -=heads -=head_dim"},
     {"self_attn.o_proj.weight", "self_attention/post/w", "-=hidden -=heads -=head_dim"},
     {"post_attention_layernorm.weight", "ff_layer/layer_norm/scale", "-=hidden"},
     {"post_attention_layernorm.bias", "ff_layer/layer_norm/bias", "-=hidden"},
     {"mlp.gate.weight", "ff_layer/gate", "-=hidden -=experts"},
     {"mlp.experts.gate_up_proj", "ff_layer/wi_{gate_up:gate_0,0}", "-=experts -=hidden -=ffn"},
     {"mlp.experts.down_proj", "ff_layer/wo_0", "-=experts -=ffn -=hidden"},
     {"mlp.gate_proj.weight", "ff_layer/ffn_layer1_gate/linear/w", "-=hidden -=ffn"},
     {"mlp.up_proj.weight", "ff_layer/ffn_layer1/linear/w", "-=hidden -=ffn"},
     {"mlp.down_proj.weight", "ff_layer/ffn_layer2/linear/w", "-=ffn -=hidden"},
     {"mlp.gate_proj.bias", "ff_layer/ffn_layer1_gate/bias/b", "-=ffn"},
     {"mlp.up_proj.bias", "ff_layer/ffn_layer1/bias/b", "-=ffn"},
     {"mlp.down_proj.bias", "ff_layer/ffn_layer2/bias/b", "-=hidden"}});

// In the place of these: a table that is the softmax' too (SharedEmbeddingSoftmax), and experts
// without a gate.
constexpr ViewRow shared_table = {"", "params/lm/softmax/logits_ffn/linear/w", "-=hidden -=vocab"};
constexpr ViewRow plain_experts = {"", "ff_layer/wi_0", "-=experts -=hidden -=ffn"};

bool has_parameter(const Workload& workload, std::string_view name) {
  const auto all = parameters(workload);
  return std::any_of(all.begin(), all.end(), [&](const ParameterView& parameter) {
    return workload.tensors[at(parameter.tensor)].name == name;
  });
}

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
  const std::string name = name_in_layer(input.workload, parameter);
  auto viewed = by_row(input.workload, parameter, praxis_rows, {});
  if (name == "model.embed_tokens.weight" && !has_parameter(input.workload, "lm_head.weight")) {
    viewed = in_form(input.workload, parameter, shared_table.to, shared_table.dims);
  }
  if (!viewed && name == "mlp.experts.gate_up_proj") {
    viewed = in_form(input.workload, parameter, plain_experts.to, plain_experts.dims);
  }
  if (viewed) viewed->form.has_axes = false;
  return viewed;
}

}  // namespace shardsim
