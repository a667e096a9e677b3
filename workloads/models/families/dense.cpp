// Dense decoders of Llama's make: one norm before attention, one before a gated MLP. Keys, defaults
// and names are those of transformers 5.23.0, configuration_X.py and modeling_X.py of each family.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
ModelSpec llama(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  return decoder(n, llama_layer(n, "full", llama_attention(c, n), mlp));
}

// Its window, where it has one, is every layer's.
ModelSpec mistral(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .width = 14336});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.window = c.count("sliding_window", 0);
  return decoder(
      n, llama_layer(n, attention.window > 0 ? "windowed" : "full", attention, llama_mlp(n)));
}

namespace {

// Windows from max_window_layers on, where they are asked for.
std::string qwen_type(const Config& c, std::int64_t layer) {
  const bool used = c.flag("use_sliding_window", false);
  const std::int64_t first = c.count("max_window_layers", 28);
  const bool has_window = c.optional_size("sliding_window", 4096).has_value();
  return used && has_window && layer >= first ? "sliding_attention" : "full_attention";
}

ModelSpec windowed(const Sizes& n, const Attention& attention, const Mlp& mlp,
                   const std::vector<std::string>& types, std::int64_t window) {
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   const bool full = is_full(types, i);
                   Attention a = attention;
                   a.window = full ? 0 : window;
                   return llama_layer(n, full ? "full" : "windowed", a, mlp);
                 }));
}

}  // namespace

ModelSpec qwen2(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32, .width = 22016, .vocab = 151936});
  Attention attention = llama_attention(c, n);
  set_biases(attention, true, false);
  c.pass_over({"use_sliding_window", "max_window_layers"});  // where layer_types says it
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) { return qwen_type(c, i); });
  return windowed(n, attention, llama_mlp(n), types, c.count("sliding_window", 4096));
}

ModelSpec qwen3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32, .head_dim = 128, .width = 22016, .vocab = 151936});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "q_norm"};
  attention.k_norm = {NormKind::rms, "k_norm"};
  c.pass_over({"use_sliding_window", "max_window_layers"});  // where layer_types says it
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) { return qwen_type(c, i); });
  return windowed(n, attention, llama_mlp(n), types, c.count("sliding_window", 4096));
}

namespace {

ModelSpec phi3(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.form = QkvForm::fused;
  attention.rotary.dims = rotary_dims(c, n.head_dim, 1);
  attention.rotary.concatenated = true;
  attention.window = c.count("sliding_window", 0);
  c.pass_over({"embd_pdrop"});  // which the class does not read
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::fused_gate;
  mlp.up = "gate_up_proj";
  LayerKind layer = llama_layer(n, attention.window > 0 ? "windowed" : "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.dropout = c.rate("resid_pdrop", 0);
  return decoder(n, layer);
}

ModelSpec olmo(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::layer_plain;
  Attention attention = llama_attention(c, n);
  attention.rotary.fp32 = true;
  attention.clamped = c.cap("clip_qkv", 0) > 0;
  return decoder(n, llama_layer(n, "full", attention, llama_mlp(n)));
}

// Norms after attention and MLP, not before; queries and keys normed over their whole width.
ModelSpec olmo2_like(const Config& c, const std::vector<std::string>& types, const Sizes& n) {
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms_wide, "q_norm"};
  attention.k_norm = {NormKind::rms_wide, "k_norm"};
  attention.norm_whole = true;
  attention.rotary.fp32 = true;
  return decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        const bool full = is_full(types, i);
        attention.window = full ? 0 : c.count("sliding_window", 4096);
        attention.rotary.table = full ? "rotary" : "rotary of windows";
        return LayerKind{
            .name = full ? "full" : "windowed",
            .branches = {{.body = attention, .after = {n.norm, "post_attention_layernorm"}},
                         {.body = llama_mlp(n), .after = {n.norm, "post_feedforward_layernorm"}}}};
      }));
}

ModelSpec olmo2(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::rms_wide;
  const std::vector<std::string> types(static_cast<std::size_t>(n.layers), "full_attention");
  return olmo2_like(c, types, n);
}

ModelSpec olmo3(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::rms_wide;
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string((i + 1) % 4 != 0 ? "sliding_attention" : "full_attention");
  });
  return olmo2_like(c, types, n);
}

// Attention and MLP of one norm.
LayerKind cohere_layer(const Sizes& n, const std::string& name, const Attention& attention) {
  return {.name = name,
          .branches = {{.before = {n.norm, "input_layernorm"}, .body = attention},
                       {.body = llama_mlp(n)}},
          .parallel = true};
}

ModelSpec cohere(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .hidden = 8192, .width = 22528, .vocab = 256000});
  n.norm = NormKind::layer_wide;
  Attention attention = llama_attention(c, n);
  if (c.flag("use_qk_norm", false)) {
    attention.q_norm = {n.norm, "q_norm", false, {n.heads, n.head_dim}};
    attention.k_norm = {n.norm, "k_norm", false, {n.kv_heads, n.head_dim}};
  }
  ModelSpec spec = decoder(n, cohere_layer(n, "full", attention));
  static_cast<void>(c.number("logit_scale", 1));  // multiplied by in any case
  spec.head.scaled = true;
  return spec;
}

// Full layers, every fourth, have no rotary positions.
ModelSpec cohere2(const Config& c) {
  // Of the authors' own code, what the class does in any case.
  c.pass_over({"order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
               "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
               "use_parallel_embedding"});
  Sizes n = read_sizes(c, {.tied = true, .hidden = 8192, .width = 22528, .vocab = 256000});
  n.norm = NormKind::layer_wide;
  const std::int64_t period = c.size("sliding_window_pattern", 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string((i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  });
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = is_full(types, i);
                             Attention attention = llama_attention(c, n);
                             attention.window = full ? 0 : c.count("sliding_window", 4096);
                             if (full) attention.rotary.dims = 0;
                             return cohere_layer(n, full ? "full" : "windowed", attention);
                           }));
  static_cast<void>(c.number("logit_scale", 1));  // multiplied by in any case
  spec.head.scaled = true;
  return spec;
}

ModelSpec starcoder2(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 2, .tied = true, .activation = "gelu_pytorch_tanh"});
  n.norm = NormKind::layer;
  const bool bias = c.flag("use_bias", true);
  const double dropout = c.rate("residual_dropout", 0);
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias, bias);
  attention.out_dropout = dropout;
  attention.window = c.count("sliding_window", 0);
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  mlp.up = "c_fc";
  mlp.down = "c_proj";
  mlp.bias = bias;
  mlp.dropout = dropout;
  LayerKind layer = llama_layer(n, attention.window > 0 ? "windowed" : "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.before.bias = true;
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.bias = true;
  std::get<TokenEmbedding>(spec.stacks[0].input).dropout = c.rate("embedding_dropout", 0);
  return spec;
}

// Llama with multipliers, which change no shape.
ModelSpec granite(const Config& c) {
  ModelSpec spec = llama(c);
  set_multipliers(c, spec);
  return spec;
}

// Every fourth layer has no rotary positions.
ModelSpec smollm3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .tied = true});
  const std::vector<std::int64_t> with_rotary = c.integers("no_rope_layers");
  const std::int64_t period = c.size("no_rope_layer_interval", 4);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  c.pass_over({"use_sliding_window"});  // where layer_types says it
  const auto has_rotary = [&](std::int64_t i) {
    if (with_rotary.empty()) return (i + 1) % period != 0;
    const auto at = static_cast<std::size_t>(i);
    if (at >= with_rotary.size()) c.fail("no_rope_layers", "has fewer entries than layers");
    return with_rotary[at] != 0;
  };
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool given = c.given("sliding_window");
    return std::string(c.flag("use_sliding_window", false) && given && has_rotary(i)
                           ? "sliding_attention"
                           : "full_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   Attention attention = llama_attention(c, n);
                   std::string name = has_rotary(i) ? "full" : "full, no positions";
                   if (!has_rotary(i)) attention.rotary.dims = 0;
                   if (!is_full(types, i)) {
                     attention.window = c.count("sliding_window", 0);
                     name = "windowed";
                   }
                   return llama_layer(n, name, attention, mlp);
                 }));
}

Mlp glm_mlp(const Sizes& n) {
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::fused_gate;
  mlp.up = "gate_up_proj";
  return mlp;
}

Attention glm_attention(const Config& c, const Sizes& n) {
  Attention attention = llama_attention(c, n);
  set_biases(attention, c.flag("attention_bias", true), false);
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.5);
  attention.rotary.concatenated = true;
  attention.rotary.each_layer = true;
  return attention;
}

ModelSpec glm(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 2, .head_dim = 128});
  return decoder(n, llama_layer(n, "full", glm_attention(c, n), glm_mlp(n)));
}

// Norms before and after.
ModelSpec glm4(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 2, .head_dim = 128});
  LayerKind layer = llama_layer(n, "full", glm_attention(c, n), glm_mlp(n));
  layer.branches[0].after = {n.norm, "post_self_attn_layernorm"};
  layer.branches[1].after = {n.norm, "post_mlp_layernorm"};
  return decoder(n, layer);
}

ModelSpec internlm3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 2, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  set_biases(attention, c.flag("attention_bias|qkv_bias", false), false);
  attention.o_bias = c.flag("mlp_bias|bias", false);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias|bias", false);
  return decoder(n, llama_layer(n, "full", attention, mlp));
}

ModelSpec seed_oss(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  set_biases(attention, c.flag("attention_bias", true), c.flag("attention_out_bias", false));
  attention.dropout = c.rate("attention_dropout", 0.1);
  attention.out_dropout = c.rate("residual_dropout", 0.1);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  mlp.dropout = c.rate("residual_dropout", 0.1);
  return decoder(n, llama_layer(n, "full", attention, mlp));
}

ModelSpec ernie4_5(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 2, .head_dim = 128, .tied = true});
  const bool bias = c.flag("use_bias", false);
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias, bias);
  attention.rotary.fp32 = attention.rotary.each_layer = true;
  Mlp mlp = llama_mlp(n);
  mlp.bias = bias;
  return decoder(n, llama_layer(n, "full", attention, mlp));
}

ModelSpec helium(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 20, .head_dim = 128});
  n.norm = NormKind::rms_cast;
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  Attention attention = llama_attention(c, n);
  attention.o_bias = false;
  if (n.heads * n.head_dim != n.hidden) {
    c.fail("head_dim", "num_attention_heads * head_dim is not hidden_size");
  }
  attention.rotary.each_layer = true;
  return decoder(n, llama_layer(n, "full", attention, mlp));
}

// Squared ReLU without a gate.
ModelSpec arcee(const Config& c) {
  const Sizes n = read_sizes(c, {.activation = "relu2"});
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  mlp.bias = c.flag("mlp_bias", false);
  return decoder(n, llama_layer(n, "full", llama_attention(c, n), mlp));
}

ModelSpec nemotron(const Config& c) {
  Sizes n = read_sizes(c, {.activation = "relu2"});
  n.norm = NormKind::layer_offset;
  Attention attention = llama_attention(c, n);
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.5);
  attention.rotary.concatenated = true;
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.before.bias = true;
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.bias = true;
  return spec;
}

}  // namespace

std::vector<Family> dense_families() {
  return {{"LlamaForCausalLM", "llama", llama},
          {"MistralForCausalLM", "mistral", mistral},
          {"Qwen2ForCausalLM", "qwen2", qwen2},
          {"Qwen3ForCausalLM", "qwen3", qwen3},
          {"Phi3ForCausalLM", "phi3", phi3},
          {"OlmoForCausalLM", "olmo", olmo},
          {"Olmo2ForCausalLM", "olmo2", olmo2},
          {"Olmo3ForCausalLM", "olmo3", olmo3},
          {"CohereForCausalLM", "cohere", cohere},
          {"Cohere2ForCausalLM", "cohere2", cohere2},
          {"Starcoder2ForCausalLM", "starcoder2", starcoder2},
          {"GraniteForCausalLM", "granite", granite},
          {"SmolLM3ForCausalLM", "smollm3", smollm3},
          {"GlmForCausalLM", "glm", glm},
          {"Glm4ForCausalLM", "glm4", glm4},
          {"InternLM3ForCausalLM", "internlm3", internlm3},
          {"LlamaForCausalLM", "internlm3", internlm3},
          {"SeedOssForCausalLM", "seed_oss", seed_oss},
          {"Ernie4_5ForCausalLM", "ernie4_5", ernie4_5},
          {"HeliumForCausalLM", "helium", helium},
          {"ArceeForCausalLM", "arcee", arcee},
          {"NemotronForCausalLM", "nemotron", nemotron}};
}

}  // namespace shardsim::models
