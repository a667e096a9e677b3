// Gemma 4: keys and values that later layers share, inputs of each layer beside the stream, heads
// of full layers that are wider, experts beside the MLP.
//
// Source: transformers 5.23.0, configuration_gemma4.py and modeling_gemma4.py.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/key_sharing.hpp"

namespace shardsim::models {
namespace {

// Where the file says nothing; the unified model has no inputs of each layer.
struct Gemma4Defaults {
  std::int64_t window = 512;
  std::int64_t per_layer = 256;
};

class Gemma4 {
 public:
  explicit Gemma4(const Config& c, const Gemma4Defaults& usual = {})
      : c_(c),
        n_(read_sizes(c, {.kv_heads = 4,
                          .head_dim = 256,
                          .tied = true,
                          .activation = "gelu_pytorch_tanh",
                          .activation_keys = "hidden_activation|hidden_act"})),
        sharing_(read_key_sharing(c, n_, types(), 0)),
        global_dim_(c.size("global_head_dim", 512)),
        both_ways_(c.text("use_bidirectional_attention", "") == "all"),
        per_layer_(c.count("hidden_size_per_layer_input", usual.per_layer)),
        window_(usual.window) {}

  ModelSpec read() {
    ModelSpec spec = decoder(n_, Layers::of(n_.layers, [&](std::int64_t i) { return layer(i); }));
    Stack& stack = spec.stacks[0];
    std::get<TokenEmbedding>(stack.input).scaled = true;
    stack.norm = power_norm("model.norm");
    if (per_layer_ > 0) {
      stack.per_layer = PerLayerInputs{.table = "model.embed_tokens_per_layer",
                                       .vocab = c_.size("vocab_size_per_layer_input", 262'144),
                                       .width = per_layer_,
                                       .project = "model.per_layer_model_projection",
                                       .norm = power_norm("model.per_layer_projection_norm")};
    }
    spec.head.soft_cap = c_.cap("final_logit_softcapping", 0);
    return spec;
  }

 private:
  [[nodiscard]] std::vector<std::string> types() const {
    constexpr std::int64_t period = 6;
    std::vector<std::string> all = layer_types(c_, n_.layers, [](std::int64_t i) {
      return std::string((i + 1) % period != 0 ? "sliding_attention" : "full_attention");
    });
    all.back() = "full_attention";  // whatever the file says
    return all;
  }

  [[nodiscard]] Attention attention(std::int64_t i) const {
    const std::string& type = sharing_.types[static_cast<std::size_t>(i)];
    const bool full = type == "full_attention";
    Attention a = llama_attention(c_, n_);
    if (full) a.head_dim = global_dim_;
    if (full && c_.flag("attention_k_eq_v", false)) {
      a.values_of_keys = true;
      a.kv_heads = c_.size("num_global_key_value_heads", a.kv_heads);
    }
    if (const auto all = c_.sub("per_layer_config")) {
      a.head_dim = n_.head_dim;
      a.kv_heads = n_.kv_heads;
      if (const auto own = own_of_layer(*all, i)) {
        a.head_dim = own->size("head_dim", n_.head_dim);
        a.kv_heads = own->size("num_key_value_heads", n_.kv_heads);
      }
    }
    static_cast<void>(
        c_.divided("num_attention_heads", a.heads, "num_global_key_value_heads", a.kv_heads));
    a.rotary.dims = a.head_dim;
    a.rotary.table = full ? "rotary" : "rotary of windows";
    a.window = full ? 0 : c_.count("sliding_window", window_);
    a.bidirectional = both_ways_;
    sharing_.set(i, a);
    return a;
  }

  [[nodiscard]] Experts experts() const {
    Experts m = read_experts(c_, n_, "num_experts", c_.size("num_experts"), "top_k_experts",
                             c_.size("top_k_experts"), c_.size("moe_intermediate_size"));
    m.name = "";
    m.router.name = "router.proj";
    m.router.norm = plain_power_norm("router.norm");
    m.router.scale = "router.scale";
    m.router.expert_scale = "router.per_expert_scale";
    m.router.renormalize = Renormalize::in_place;
    m.rows_norm = power_norm("pre_feedforward_layernorm_2");
    return m;
  }

  [[nodiscard]] LayerKind layer(std::int64_t i) const {
    const Attention a = attention(i);
    Mlp mlp = llama_mlp(n_);
    if (!a.reads.empty() && c_.flag("use_double_wide_mlp", false)) mlp.width *= 2;
    LayerKind kind{.name = fmt::format("{}{}", a.window > 0 ? "windowed" : "full",
                                       !a.reads.empty()      ? ", reads keys"
                                       : !a.hands_on.empty() ? ", hands keys on"
                                                             : ""),
                   .branches = {{.before = power_norm("input_layernorm"),
                                 .body = a,
                                 .after = power_norm("post_attention_layernorm")},
                                {.before = power_norm("pre_feedforward_layernorm"),
                                 .body = mlp,
                                 .after = power_norm("post_feedforward_layernorm")}},
                   .scalar = "layer_scalar"};
    if (c_.flag("enable_moe_block", false)) {
      Branch& branch = kind.branches[1];
      branch.body_after = power_norm("post_feedforward_layernorm_1");
      branch.beside = experts();
      branch.beside_of_stream = true;
      branch.beside_after = power_norm("post_feedforward_layernorm_2");
    }
    if (per_layer_ > 0) {
      kind.branches.push_back(
          {.body = PerLayerGate{.width = per_layer_, .activation = n_.activation},
           .after = power_norm("post_per_layer_input_norm")});
    }
    return kind;
  }

  const Config& c_;
  Sizes n_;
  KeySharing sharing_;
  std::int64_t global_dim_;
  bool both_ways_;
  std::int64_t per_layer_;
  std::int64_t window_;
};

ModelSpec gemma4_unified_text(const Config& c) {
  c.pass_over({"global_head_dim", "num_global_key_value_heads", "partial_rotary_factor",
               "use_double_wide_mlp"});
  constexpr std::int64_t window = 1024;
  return Gemma4(c, {.window = window, .per_layer = 0}).read();
}

}  // namespace

ModelSpec gemma4_text(const Config& c) {
  c.pass_over({"num_experts", "top_k_experts", "moe_intermediate_size", "global_head_dim",
               "num_global_key_value_heads", "vocab_size_per_layer_input", "partial_rotary_factor",
               "use_double_wide_mlp"});
  return Gemma4(c).read();
}

std::vector<Family> recent_gemma_families() {
  return {{"Gemma4ForCausalLM", "gemma4_text", gemma4_text},
          {"Gemma4UnifiedForCausalLM", "gemma4_unified_text", gemma4_unified_text}};
}

}  // namespace shardsim::models
