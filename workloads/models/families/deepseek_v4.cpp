// Decoders between hyper-connections: DeepSeek-V4, HunYuan 4.
#include <algorithm>
#include <utility>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Kinds of layers as the file lists them, or by the tokens of their entries in older files.
std::vector<std::string> v4_layer_types(const Config& c, std::int64_t layers) {
  const std::vector<std::int64_t> ratios = c.integers("compress_ratios");
  return layer_types(c, layers, [&](std::int64_t i) -> std::string {
    constexpr const char* heavily = "heavily_compressed_attention";
    constexpr const char* sparse = "compressed_sparse_attention";
    if (!ratios.empty()) {
      if (i >= static_cast<std::int64_t>(ratios.size())) {
        c.fail("compress_ratios", "has fewer entries than there are layers");
      }
      const std::int64_t ratio = ratios[static_cast<std::size_t>(i)];
      if (ratio == 0) return "sliding_attention";
      return ratio == 4 ? sparse : heavily;
    }
    return i < 2 || i % 2 == 0 ? heavily : sparse;
  });
}

CompressedAttention v4_attention(const Config& c, const Sizes& n) {
  CompressedAttention a;
  a.heads = n.heads;
  a.head_dim = n.head_dim;
  a.q_rank = c.size("q_lora_rank", 1024);
  a.window = c.size("sliding_window", 128);
  a.groups = c.size("o_groups", 8);
  a.out_rank = c.size("o_lora_rank", 1024);
  a.dropout = c.rate("attention_dropout", 0);
  const std::int64_t turned = c.size("qk_rope_head_dim", 64 * n.head_dim / 512);
  const double share = static_cast<double>(turned) / static_cast<double>(n.head_dim);
  a.rotary_dims = rotary_dims(c, n.head_dim, c.number("partial_rotary_factor", share));
  static_cast<void>(c.divided("num_attention_heads", n.heads, "o_groups", a.groups));
  if (c.size("num_key_value_heads", 1) != 1) {
    c.fail("num_key_value_heads", "all heads of DeepSeek-V4 read one of keys");
  }
  c.pass_over({"attention_bias", "compress_rope_theta"});
  return a;
}

// Of a kind of layer; none slides alone.
std::optional<Compressor> v4_compressor(const Config& c, const std::string& type) {
  const auto rates = c.sub("compress_rates");
  const auto tokens = [&](std::string_view older, std::int64_t otherwise) {
    return rates ? rates->size(type, otherwise) : c.size(older, otherwise);
  };
  if (type == "sliding_attention") return {};
  if (type == "heavily_compressed_attention")
    return Compressor{tokens("compress_rate_hca", 128), {}};
  if (type != "compressed_sparse_attention") {
    c.fail("layer_types", "has a kind of attention that DeepSeek-V4 does not have: " + type);
  }
  EntryIndex index;
  index.heads = c.size("index_n_heads", 64);
  index.head_dim = c.size("index_head_dim", 128);
  index.chosen = c.size("index_topk", 512);
  return Compressor{tokens("compress_rate_csa", 4), index};
}

// Routers of the first layers look experts up by the token's number.
Experts v4_experts(const Config& c, Sizes n, bool by_token) {
  n.width = c.size("moe_intermediate_size|intermediate_size", 2048);
  Experts experts = read_experts(c, n, "n_routed_experts|num_local_experts", 256,
                                 "num_experts_per_tok", 6, n.width);
  const std::string scores = c.text("scoring_func", "sqrtsoftplus");
  if (scores != "sqrtsoftplus" && scores != "sigmoid") {
    c.fail("scoring_func", "is neither \"sqrtsoftplus\" nor \"sigmoid\"");
  }
  experts.router.scores = scores == "sigmoid" ? RouterScores::sigmoid : RouterScores::sqrt_softplus;
  experts.router.renormalize = Renormalize::offset;
  if (by_token) {
    experts.router.table = "tid2eid";
    experts.router.table_rows = n.vocab;
  } else {
    experts.router.correction_bias = "e_score_correction_bias";
  }
  experts.gate = ExpertsGate::limited;
  experts.shared = llama_mlp(n);
  experts.shared->name = "shared_experts";
  experts.shared->limited = true;
  experts.shared->bias = c.flag("mlp_bias", false);
  c.pass_over({"n_shared_experts", "norm_topk_prob", "routed_scaling_factor", "swiglu_limit",
               "router_jitter_noise", "num_nextn_predict_layers", "hc_eps"});
  return experts;
}

// Defaults: transformers 5.23, configuration_deepseek_v4.py.
ModelSpec deepseek_v4(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 1, .head_dim = 512, .has_width = false, .vocab = 129280});
  n.norm = NormKind::rms_wide;
  const auto types = v4_layer_types(c, n.layers);
  const std::int64_t by_token = c.count("num_hash_layers", 3);
  const auto mixtures = layer_types(
      c, n.layers, [&](std::int64_t i) { return std::string(i < by_token ? "hash_moe" : "moe"); },
      "mlp_layer_types");
  CompressedAttention attention = v4_attention(c, n);
  ModelSpec spec = decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const std::string& type = types[static_cast<std::size_t>(i)];
        const bool is_hash = mixtures[static_cast<std::size_t>(i)] == "hash_moe";
        attention.compressor = v4_compressor(c, type);
        LayerKind layer = llama_layer(n, (is_hash ? "experts by token, " : "experts, ") + type, {},
                                      v4_experts(c, n, is_hash));
        layer.branches[0].body = Mixer{attention};
        layer.branches[0].maps = "attn_hc";
        layer.branches[1].maps = "ffn_hc";
        return layer;
      }));
  spec.stacks[0].hyper = HyperConnections{.streams = c.size("hc_mult", 4),
                                          .balancings = c.size("hc_sinkhorn_iters", 20)};
  return spec;
}

// DeepSeek-V3.2's attention with a gate and sinks, some layers with an index that the next ones
// use, too. Defaults: transformers 5.23, configuration_hy_v4.py.
ModelSpec hy_v4(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32, .head_dim = 64, .width = 6912, .vocab = 120832});
  c.pass_over({"layer_types", "learnable_sink_init", "hc_magnitude", "hc_eps", "swiglu_limit",
               "routed_scaling_factor", "qk_head_dim"});
  LatentAttention attention = read_latent(c, n);
  attention.nope_dim = c.size("qk_nope_head_dim", 192);
  attention.value_dim = c.size("v_head_dim", 256);
  attention.gate = "gate_proj";
  attention.sinks = true;
  attention.chosen = c.size("index_topk", 2048);
  const KeyIndex index{.heads = c.size("index_n_heads", 16),
                       .head_dim = c.size("index_head_dim", 128)};
  const auto indexed = layer_types(
      c, n.layers,
      [](std::int64_t i) { return std::string(i == 0 || (i - 1) % 4 == 0 ? "full" : "shared"); },
      "indexer_types");
  const auto mixtures = layer_types(
      c, n.layers, [](std::int64_t i) { return std::string(i == 0 ? "dense" : "sparse"); },
      "mlp_layer_types");
  Experts experts = deepseek_experts(c, n, 256, 8, 768, 1);
  experts.router.scores = RouterScores::sigmoid;
  experts.router.correction_bias = "e_score_correction_bias";
  if (c.flag("norm_topk_prob", true)) experts.router.renormalize = Renormalize::in_place;
  experts.router.groups = c.size("n_group", 1);
  experts.router.chosen_groups = c.size("topk_group", 1);
  experts.gate = ExpertsGate::limited;
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const auto at = static_cast<std::size_t>(i);
                             attention.index.reset();
                             if (indexed[at] == "full") attention.index = index;
                             const bool is_dense = mixtures[at] == "dense";
                             LayerKind layer =
                                 latent_layer(n, is_dense ? "dense" : "experts", attention,
                                              is_dense ? Body{llama_mlp(n)} : Body{experts});
                             layer.branches[0].maps = "attn_hc";
                             layer.branches[1].maps = "ffn_hc";
                             return layer;
                           }));
  spec.stacks[0].hyper = HyperConnections{.streams = c.size("hc_mult", 4), .independent = true};
  return spec;
}

}  // namespace

std::vector<Family> deepseek_v4_families() {
  return {{"DeepseekV4ForCausalLM", "deepseek_v4", deepseek_v4},
          {"HYV4ForCausalLM", "hy_v4", hy_v4}};
}

}  // namespace shardsim::models
