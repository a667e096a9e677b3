#include "workloads/views/maxtext.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

// Where layers of a family are, by their numbers.
enum class Scan : std::uint8_t {
  plain,      // all alike
  cycle,      // layers_0, layers_1, ... of a scanned block, and nothing is left over
  remainder,  // likewise, and what is left over follows unscanned
  pairs,      // two layers in one, told apart by their modules' names
  by_experts  // dense_layers, then moe_layers
};

struct MaxTextFamily {
  std::vector<std::string_view> families;
  std::string_view attention = "self_attention";
  std::string_view moe{};           // module of routed experts
  std::string_view shared{};        // of those that every token visits
  std::string_view gate = "embed";  // what the router's kernel calls the stream
  std::string_view norm = "_layer_norm";
  std::string_view mlp_norm = "post_self_attention_layer_norm";
  Scan scan = Scan::plain;
  int cycle = 1;
};

const std::vector<MaxTextFamily>& maxtext_families() {
  static const std::vector<MaxTextFamily> table = {
      {.families = {"llama", "mistral", "qwen2", "qwen3"}},
      {.families = {"mixtral"}, .moe = "MoeBlock_0"},
      {.families = {"qwen3_moe"}, .moe = "moe_block"},
      {.families = {"deepseek_v2", "deepseek_v3"},
       .moe = "DeepSeekMoeBlock_0/MoeBlock_0",
       .shared = "DeepSeekMoeBlock_0/shared_experts",
       .gate = "embed_moe",
       .scan = Scan::by_experts},
      {.families = {"gpt_oss"},
       .attention = "GptOssAttention",
       .moe = "GptOssMlp",
       .scan = Scan::cycle,
       .cycle = 2},
      {.families = {"gemma"}, .norm = "_norm", .mlp_norm = "pre_ffw_norm"},
      {.families = {"gemma2"},
       .attention = "self_attention{mark}",
       .norm = "_norm{mark}",
       .mlp_norm = "post_self_attention_norm{mark}",
       .scan = Scan::pairs,
       .cycle = 2},
      {.families = {"gemma3_text"},
       .norm = "_norm",
       .mlp_norm = "post_self_attention_norm",
       .scan = Scan::remainder,
       .cycle = 6},
      {.families = {"gpt2"}}};
  return table;
}

const MaxTextFamily* find_maxtext_family(const std::string& family) {
  for (const MaxTextFamily& known : maxtext_families()) {
    if (std::count(known.families.begin(), known.families.end(), family) > 0) return &known;
  }
  return nullptr;
}

constexpr std::array maxtext_rows = std::to_array<ViewRow>(
    {{"model.embed_tokens.weight", "token_embedder/embedding", "vocab=vocab embed_vocab=hidden"},
     {"model.norm.weight", "decoder/decoder_norm/scale", "norm=hidden"},
     {"lm_head.weight", "decoder/logits_dense/kernel", "embed_vocab=hidden vocab=vocab"},
     {"input_layernorm.weight", "pre_self_attention{norm}/scale", "norm=hidden"},
     {"post_attention_layernorm.weight", "{mlp_norm}/scale", "norm=hidden"},
     {"pre_feedforward_layernorm.weight", "pre_ffw{norm}/scale", "norm=hidden"},
     {"post_feedforward_layernorm.weight", "post_ffw{norm}/scale", "norm=hidden"},
     {"self_attn.q_proj.weight", "{attention}/query/kernel", "embed=hidden q_heads=heads kv=*"},
     {"self_attn.k_proj.weight", "{attention}/key/kernel",
      "embed=hidden kv_heads=heads kv_head_dim=*"},
     {"self_attn.v_proj.weight", "{attention}/value/kernel",
      "embed=hidden kv_heads=heads kv_head_dim=*"},
     {"self_attn.o_proj.weight", "{attention}/out/kernel", "heads=heads kv=* embed=hidden"},
     {"self_attn.q_proj.bias", "{attention}/query/bias", "q_heads=heads kv=*"},
     {"self_attn.k_proj.bias", "{attention}/key/bias", "kv_heads=heads kv_head_dim=*"},
     {"self_attn.v_proj.bias", "{attention}/value/bias", "kv_heads=heads kv_head_dim=*"},
     {"self_attn.o_proj.bias", "{attention}/out/bias", "embed=hidden"},
     {"self_attn.q_norm.weight", "{attention}/query_norm/scale", "norm=head_dim"},
     {"self_attn.k_norm.weight", "{attention}/key_norm/scale", "norm=head_dim"},
     {"self_attn.sinks", "{attention}/sinks", "-=heads"},
     // Latent attention.
     {"self_attn.q_a_proj.weight", "{attention}/wq_a/kernel", "embed=hidden q_lora_up_proj=*"},
     {"self_attn.q_a_layernorm.weight", "{attention}/q_norm/scale", "norm=*"},
     {"self_attn.q_b_proj.weight", "{attention}/wq_b/kernel", "q_lora=q_rank q_heads=heads kv=*"},
     {"self_attn.kv_a_proj_with_mqa.weight", "{attention}/wkv_a/kernel",
      "embed=hidden kv_lora_up_proj=*"},
     {"self_attn.kv_a_layernorm.weight", "{attention}/kv_norm/scale", "norm=*"},
     {"self_attn.kv_b_proj.weight", "{attention}/wkv_b/kernel",
      "kv_lora=kv_rank kv_heads=heads kv_head_dim=*"},
     {"mlp.gate_proj.weight", "mlp{mark}/wi_0/kernel", "embed=hidden mlp=ffn"},
     {"mlp.up_proj.weight", "mlp{mark}/wi_1/kernel", "embed=hidden mlp=ffn"},
     {"mlp.down_proj.weight", "mlp{mark}/wo/kernel", "mlp=ffn embed=hidden"},
     {"mlp.gate.weight", "{moe}/gate/kernel", "{gate}=hidden -=experts"},
     {"mlp.router.weight", "{moe}/gate/kernel", "{gate}=hidden -=experts"},
     {"mlp.router.bias", "{moe}/gate/bias", "-=experts"},
     {"mlp.experts.gate_up_proj", "{moe}/wi_{gate_up}", "exp=experts embed_moe=hidden mlp_moe=ffn"},
     {"mlp.experts.gate_up_proj_bias", "{moe}/wi_{gate_up}_bias", "exp=experts activation_mlp=ffn"},
     {"mlp.experts.down_proj", "{moe}/wo", "exp=experts mlp_moe=ffn embed_moe=hidden"},
     {"mlp.experts.down_proj_bias", "{moe}/wo_bias", "exp=experts activation_embed=hidden"},
     {"mlp.shared_experts.gate_proj.weight", "{shared}/wi_0/kernel", "embed=hidden mlp=ffn"},
     {"mlp.shared_experts.up_proj.weight", "{shared}/wi_1/kernel", "embed=hidden mlp=ffn"},
     {"mlp.shared_experts.down_proj.weight", "{shared}/wo/kernel", "mlp=ffn embed=hidden"},
     // Its GPT-3, for what transformers calls GPT-2.
     {"transformer.wte.weight", "token_embedder/embedding", "vocab=vocab embed_vocab=hidden"},
     {"transformer.wpe.weight", "decoder/position_embedder/embedding",
      "vocab=positions embed_vocab=hidden"},
     {"transformer.ln_f.weight", "decoder/decoder_norm/scale", "norm=hidden"},
     {"transformer.ln_f.bias", "decoder/decoder_norm/bias", "norm=hidden"},
     {"ln_1.weight", "pre_self_attention_norm/scale", "norm=hidden"},
     {"ln_1.bias", "pre_self_attention_norm/bias", "norm=hidden"},
     {"attn.c_attn.weight", "self_attention/qkv_proj/kernel",
      "embed=hidden qkv=qkv heads=heads kv=head_dim"},
     {"attn.c_attn.bias", "self_attention/qkv_proj/bias", "qkv=qkv heads=heads kv=head_dim"},
     {"attn.c_proj.weight", "self_attention/out/kernel", "heads=heads kv=head_dim embed=hidden"},
     {"attn.c_proj.bias", "self_attention/out/bias", "embed=hidden"},
     {"ln_2.weight", "mlp/mlp_layer_norm/scale", "norm=hidden"},
     {"ln_2.bias", "mlp/mlp_layer_norm/bias", "norm=hidden"},
     {"mlp.c_fc.weight", "mlp/wi/kernel", "embed=hidden mlp=ffn"},
     {"mlp.c_fc.bias", "mlp/wi/bias", "mlp=ffn"},
     {"mlp.c_proj.weight", "mlp/wo/kernel", "mlp=ffn embed=hidden"},
     {"mlp.c_proj.bias", "mlp/wo/bias", "embed=hidden"}});

// Whether each layer has experts.
std::vector<bool> layers_with_experts(const Workload& workload) {
  std::vector<bool> have(layer_count(workload));
  for (const Block& block : workload.blocks) {
    if (!block.is_layer) continue;
    const bool has = std::any_of(block.forward.begin(), block.forward.end(),
                                 [](const Op& op) { return op.module == OpModule::experts; });
    for (const std::int32_t number : block.numbers) have[at(number)] = has;
  }
  return have;
}

TreeView::Layer stacked_at(std::string path, std::string axis) {
  return {.path = std::move(path), .mark = "", .stacked = true, .axis = std::move(axis)};
}

TreeView::Layer layer_of(const MaxTextFamily& family, std::size_t i, std::size_t layers,
                         bool has_experts) {
  const auto cycle = static_cast<std::size_t>(family.cycle);
  switch (family.scan) {
    case Scan::plain:
      break;
    case Scan::cycle:
      return stacked_at(fmt::format("decoder/layers/layers_{}", i % cycle), "layers");
    case Scan::remainder:
      if (i < layers - layers % cycle) {
        return stacked_at(fmt::format("decoder/layers/layers_{}", i % cycle), "layers");
      }
      return {.path = fmt::format("decoder/layers_remainder/layers_{}", i % cycle)};
    case Scan::pairs: {
      TreeView::Layer layer = stacked_at("decoder/layers", "layers");
      layer.mark = i % cycle == 0 ? "_local" : "_global";
      return layer;
    }
    case Scan::by_experts: {
      const std::string stack = has_experts ? "moe_layers" : "dense_layers";
      return stacked_at("decoder/" + stack, stack);
    }
  }
  return stacked_at("decoder/layers", "layers");
}

std::vector<std::string> known_families() {
  std::vector<std::string> names;
  for (const MaxTextFamily& family : maxtext_families()) {
    names.insert(names.end(), family.families.begin(), family.families.end());
  }
  return names;
}

}  // namespace

std::vector<TreeView::Layer> maxtext_layers(const ViewInput& input) {
  const MaxTextFamily* family = find_maxtext_family(input.family);
  if (family == nullptr) fail_without_family(input, "maxtext", known_families());
  const std::vector<bool> has_experts = layers_with_experts(input.workload);
  const std::size_t count = has_experts.size();
  const bool may_be_left = family->scan == Scan::remainder;
  if (!may_be_left && count % static_cast<std::size_t>(family->cycle) != 0) {
    throw InputError(input.place,
                     fmt::format("view \"maxtext\" scans {} layers of {} together, and its {} are "
                                 "no multiple of these",
                                 family->cycle, input.family, count));
  }
  std::vector<TreeView::Layer> layers;
  for (std::size_t i = 0; i < count; ++i) {
    layers.push_back(layer_of(*family, i, count, has_experts[i]));
  }
  return layers;
}

std::optional<ViewedParameter> maxtext_parameter(const ViewInput& input, TensorId parameter) {
  const MaxTextFamily& family = *find_maxtext_family(input.family);
  auto viewed = by_row(input.workload, parameter, maxtext_rows,
                       {{"attention", family.attention},
                        {"moe", family.moe},
                        {"shared", family.shared},
                        {"gate", family.gate},
                        {"norm", family.norm},
                        {"mlp_norm", family.mlp_norm}});
  if (viewed) viewed->form.stacked_at = std::min<std::size_t>(1, viewed->form.axes.size());
  return viewed;
}

}  // namespace shardsim
