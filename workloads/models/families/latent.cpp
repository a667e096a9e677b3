// More decoders with latent attention: MiniCPM 3, DeepSeek-V3.2 and its kin, whose queries see the
// keys that an index picks.
#include <algorithm>
#include <cmath>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Dense; numbers that scale embeddings, branches and what the head reads.
ModelSpec minicpm3(const Config& c) {
  const Sizes n = read_sizes(c, {.tied = true});
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.optional_size("q_lora_rank", 768).value_or(0);
  attention.kv_rank = c.size("kv_lora_rank", 256);
  attention.nope_dim = c.size("qk_nope_head_dim", 64);
  attention.rope_dim = c.size("qk_rope_head_dim", 32);
  attention.value_dim =
      c.size("v_head_dim", c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = latent_layer(n, "dense", attention, mlp);
  for (Branch& branch : layer.branches) branch.multiplied = true;
  c.pass_over({"scale_emb", "scale_depth", "dim_model_base"});  // multiplied by in any case
  ModelSpec spec = decoder(n, layer);
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  spec.head.states_scaled = true;
  return spec;
}

ModelSpec deepseek_like(const Config& c, const Sizes& n, const LatentAttention& attention,
                        const Experts& experts, std::int64_t dense, std::string after_experts) {
  const std::int64_t first = c.count("first_k_dense_replace", dense);
  const std::int64_t step = c.size("moe_layer_freq", 1);
  const auto types = layer_types(
      c, n.layers,
      [&](std::int64_t i) { return std::string(i >= first && i % step == 0 ? "sparse" : "dense"); },
      "mlp_layer_types");
  c.pass_over({"mlp_bias"});  // of no module of these classes
  const Mlp mlp = llama_mlp(n);
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (types[static_cast<std::size_t>(i)] == "dense") {
                     return latent_layer(n, "dense", attention, mlp);
                   }
                   LayerKind layer = latent_layer(n, "experts", attention, experts);
                   if (!after_experts.empty()) {
                     layer.branches[1].after = {n.norm, after_experts};
                   }
                   return layer;
                 }));
}

// DeepSeek-V3 with a norm of what the experts give.
ModelSpec axk1(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Experts experts = sigmoid_experts(c, n, 192, 8, 2048, 1, true);
  read_groups(c, experts.router, 8, 4);
  return deepseek_like(c, n, read_latent(c, n), experts, 1, "mlp.post_mlp_layernorm");
}

// A softmax router, and queries that grow with their positions. Defaults: transformers 5.23,
// configuration_mistral4.py.
ModelSpec mistral4(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32, .width = 12288, .vocab = 131072});
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.optional_size("q_lora_rank", 1024).value_or(0);
  attention.kv_rank = c.size("kv_lora_rank", 256);
  attention.nope_dim = c.size("qk_nope_head_dim", 64);
  attention.scale_by_position = true;
  const double turned = static_cast<double>(attention.rope_dim) /
                        static_cast<double>(attention.nope_dim + attention.rope_dim);
  if (std::abs(c.rotary_number("partial_rotary_factor", turned) - turned) > 1e-6) {
    c.fail("rope_parameters", "partial_rotary_factor is not what qk_rope_head_dim says");
  }
  Experts experts = deepseek_experts(c, n, 128, 4, 2048, 1);
  experts.router.fp32 = false;
  experts.router.fp32_softmax = false;
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  read_groups(c, experts.router, 1, 1);
  return deepseek_like(c, n, attention, experts, 0, "");
}

void read_index(const Config& c, std::int64_t heads, LatentAttention& attention) {
  KeyIndex& index = attention.index.emplace();
  index.heads = c.size("index_n_heads", heads);
  index.head_dim = c.size("index_head_dim", 128);
  attention.chosen = c.size("index_topk", 2048);
}

ModelSpec deepseek_v32(const Config& c) {
  const Sizes n = read_sizes(c, {});
  LatentAttention attention = read_latent(c, n);
  read_index(c, 64, attention);
  c.pass_over({"layer_types", "index_layer_types"});
  Experts experts = sigmoid_experts(c, n, 256, 8, 2048, 1, true);
  read_groups(c, experts.router, 8, 4);
  return deepseek_like(c, n, attention, experts, 3, "");
}

// DeepSeek-V3.2 of which some layers have an index and the next ones use it, too.
ModelSpec glm_moe_dsa(const Config& c) {
  const Sizes n = read_sizes(c, {});
  LatentAttention attention = read_latent(c, n);
  attention.q_rank = c.size("q_lora_rank", 2048);
  attention.nope_dim = c.size("qk_nope_head_dim", 192);
  attention.value_dim = c.size("v_head_dim", 256);
  read_index(c, 32, attention);
  c.pass_over({"layer_types"});
  const auto types = indexer_types(c, n.layers);
  ModelSpec spec =
      deepseek_like(c, n, attention, sigmoid_experts(c, n, 256, 8, 2048, 1, true), 3, "");
  Stack& stack = spec.stacks[0];
  Layers layers;
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    LayerKind kind = stack.kinds[static_cast<std::size_t>(stack.order[i])];
    if (types[i] == "shared") {
      kind.name += ", the index before";
      std::get<LatentAttention>(kind.branches[0].body).index.reset();
    }
    layers.add(std::move(kind));
  }
  stack.kinds = std::move(layers.kinds);
  stack.order = std::move(layers.order);
  return spec;
}

// Layers of two attentions and two MLPs, over which a mixture reads what the first MLP reads and is
// added behind the second; some of its experts give back what they get. Defaults: transformers
// 5.23, configuration_longcat_flash.py.
ModelSpec longcat_flash(const Config& c) {
  Sizes n = read_sizes(c, {.head_dim = 64, .has_width = false, .vocab = 131072, .layers = 28});
  n.width = c.size("ffn_hidden_size|intermediate_size", 12288);
  c.pass_over({"qk_head_dim", "routed_scaling_factor"});
  LatentAttention attention = read_latent(c, n);
  attention.scaled = true;
  Experts experts;
  experts.experts = c.size("n_routed_experts|num_local_experts", 512);
  experts.zeros = c.count("zero_expert_num", 256);
  const std::int64_t visits = c.size("moe_topk|num_experts_per_tok", 12);
  if (visits > experts.routed_to()) c.fail("moe_topk", "is more than there are experts");
  experts.zeros_per_token = visits * experts.zeros / experts.routed_to();
  experts.per_token = visits - experts.zeros_per_token;
  experts.width = c.size("expert_ffn_hidden_size|moe_intermediate_size", 2048);
  experts.activation = n.activation;
  experts.router.name = "router.classifier";
  experts.router.fp32 = true;
  experts.router.bias = c.flag("router_bias", false);
  experts.correction_bias = "router.e_score_correction_bias";
  LayerKind layer{.name = "two sublayers"};
  for (const char* number : {".0", ".1"}) {
    attention.name = std::string("self_attn") + number;
    Mlp mlp = llama_mlp(n);
    mlp.name = std::string("mlps") + number;
    layer.branches.push_back(
        {.before = {n.norm, std::string("input_layernorm") + number}, .body = attention});
    layer.branches.push_back(
        {.before = {n.norm, std::string("post_attention_layernorm") + number}, .body = mlp});
  }
  layer.branches[1].shortcut = experts;
  return decoder(n, layer);
}

}  // namespace

std::vector<Family> latent_families() {
  return {{"MiniCPM3ForCausalLM", "minicpm3", minicpm3},
          {"AXK1ForCausalLM", "axk1", axk1},
          {"Mistral4ForCausalLM", "mistral4", mistral4},
          {"DeepseekV32ForCausalLM", "deepseek_v32", deepseek_v32},
          {"GlmMoeDsaForCausalLM", "glm_moe_dsa", glm_moe_dsa},
          {"LongcatFlashForCausalLM", "longcat_flash", longcat_flash}};
}

}  // namespace shardsim::models
