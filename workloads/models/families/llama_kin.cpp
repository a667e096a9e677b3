// Dense decoders near Llama that fewer people train: what differs is a norm's place, queries and
// keys that are normed, windows, positions of part of the layers.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec ministral(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  const auto window = c.optional_size("sliding_window", 4096);
  const auto types = layer_types(c, n.layers, [&](std::int64_t) {
    return std::string(window ? "sliding_attention" : "full_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   attention.window = is_full(types, i) ? 0 : window.value_or(0);
                   return llama_layer(n, is_full(types, i) ? "full" : "windowed", attention,
                                      llama_mlp(n));
                 }));
}

// Queries are scaled by their position.
ModelSpec ministral3(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.window = c.count("sliding_window", 0);
  attention.scale_by_position = true;
  return decoder(n, llama_layer(n, "full", attention, llama_mlp(n)));
}

ModelSpec cwm(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .head_dim = 128});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string(i % 4 == 0 ? "full_attention" : "sliding_attention");
  });
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   attention.window = is_full(types, i) ? 0 : c.count("sliding_window", 8192);
                   return llama_layer(n, is_full(types, i) ? "full" : "windowed", attention, mlp);
                 }));
}

// Norms after attention and MLP; positions on windowed layers alone, where there are windows.
ModelSpec exaone4(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 32});
  Attention base = llama_attention(c, n);
  set_biases(base, false, false);
  base.q_norm = {NormKind::rms, "q_norm"};
  base.k_norm = {NormKind::rms, "k_norm"};
  const auto window = c.optional_size("sliding_window", 4096);
  const std::int64_t period = c.size("sliding_window_pattern", 4);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    const bool slides = window && (i + 1) % period != 0 && i + 1 < n.layers;
    return std::string(slides ? "sliding_attention" : "full_attention");
  });
  return decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        Attention attention = base;
        attention.window = is_full(types, i) ? 0 : window.value_or(0);
        if (is_full(types, i) && window) attention.rotary.dims = 0;
        return LayerKind{
            .name = is_full(types, i) ? "full" : "windowed",
            .branches = {{.body = attention, .after = {n.norm, "post_attention_layernorm"}},
                         {.body = llama_mlp(n), .after = {n.norm, "post_feedforward_layernorm"}}}};
      }));
}

// Queries and keys are normed after they are turned.
ModelSpec hunyuan_v1_dense(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {NormKind::rms, "query_layernorm"};
  attention.k_norm = {NormKind::rms, "key_layernorm"};
  attention.norm_after_rotary = true;
  return decoder(n, llama_layer(n, "full", attention, llama_mlp(n)));
}

ModelSpec hyperclovax(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "full", llama_attention(c, n), mlp);
  if (c.flag("use_post_norm", true)) {
    layer.branches[0].after = {n.norm, "post_norm1"};
    layer.branches[1].after = {n.norm, "post_norm2"};
  }
  ModelSpec spec = decoder(n, layer);
  set_multipliers(c, spec);
  return spec;
}

// Norms without parameters, the embedding's among them; squared ReLU; a soft cap of logits.
ModelSpec nanochat(const Config& c) {
  Sizes n = read_sizes(c, {.activation = "relu2"});
  n.norm = NormKind::rms_plain;
  Attention attention = llama_attention(c, n);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  attention.norm_after_rotary = true;
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  mlp.up = "fc1";
  mlp.down = "fc2";
  ModelSpec spec = decoder(n, llama_layer(n, "full", attention, mlp));
  std::get<TokenEmbedding>(spec.stacks[0].input).norm = {n.norm, "model.initial_norm"};
  spec.head.soft_cap = c.cap("final_logit_softcapping", 15);
  return spec;
}

ModelSpec stablelm(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 32});
  n.norm = NormKind::layer;
  Attention attention = llama_attention(c, n);
  set_biases(attention, c.flag("use_qkv_bias", false), false);
  if (c.flag("qk_layernorm", false)) {
    attention.norm_by_head = true;
    attention.q_norm = {NormKind::layer, "q_layernorm"};
    attention.k_norm = {NormKind::layer, "k_layernorm"};
  }
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.25);
  attention.rotary.concatenated = true;
  LayerKind layer = llama_layer(n, "full", attention, llama_mlp(n));
  for (Branch& branch : layer.branches) branch.before.bias = true;
  layer.branches[1].dropout = c.rate("hidden_dropout", 0);
  if (c.flag("use_parallel_residual", false)) {
    layer.parallel = true;
    layer.branches[1].before = {};
  }
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.bias = true;
  return spec;
}

// Queries, keys and values of one matrix, normed; squared ReLU.
ModelSpec persimmon(const Config& c) {
  Sizes n = read_sizes(c, {.activation = "relu2"});
  n.norm = NormKind::layer;
  Attention attention = llama_attention(c, n);
  set_biases(attention, true, true);
  attention.form = QkvForm::fused;
  attention.qkv = "query_key_value";
  attention.o = "dense";
  if (c.flag("qk_layernorm", true)) {
    attention.q_norm = {n.norm, "q_layernorm", true};
    attention.k_norm = {n.norm, "k_layernorm", true};
  }
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.5);
  attention.rotary.concatenated = true;
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  mlp.bias = true;
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.before.bias = true;
  layer.branches[1].dropout = c.rate("hidden_dropout", 0);
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm = {n.norm, "model.final_layernorm", true};
  return spec;
}

// Norms of what the output projection and the last product read, too.
ModelSpec bitnet(const Config& c) {
  const Sizes n = read_sizes(c, {.activation = "relu2"});
  Attention attention = llama_attention(c, n);
  attention.o_norm = {n.norm, "attn_sub_norm"};
  Mlp mlp = llama_mlp(n);
  mlp.inner_norm = {n.norm, "ffn_sub_norm"};
  return decoder(n, llama_layer(n, "full", attention, mlp));
}

// Layer norms and biases in Llama's layers, an MLP without a gate.
ModelSpec jais2(const Config& c) {
  Sizes n = read_sizes(c, {.activation = "relu2"});
  n.norm = NormKind::layer;
  Attention attention = llama_attention(c, n);
  const bool bias = c.flag("attention_bias", true);
  set_biases(attention, bias, bias);
  Mlp mlp = plain_mlp(n, "up_proj", "down_proj");
  mlp.bias = c.flag("mlp_bias", true);
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.before.bias = true;
  ModelSpec spec = decoder(n, layer);
  spec.stacks[0].norm.bias = true;
  return spec;
}

// xIELU without a gate, whose two numbers each layer learns.
ModelSpec apertus(const Config& c) {
  const Sizes n = read_sizes(c, {.activation = "xielu"});
  Attention attention = llama_attention(c, n);
  attention.q_norm = {n.norm, "q_norm"};
  attention.k_norm = {n.norm, "k_norm"};
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::plain;
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  layer.branches[0].before.name = "attention_layernorm";
  layer.branches[1].before.name = "feedforward_layernorm";
  return decoder(n, layer);
}

// Llama with dropout of what branches give, at attention's rate.
ModelSpec emu3_text(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 8, .width = 14336, .vocab = 184622});
  const double dropout = c.rate("attention_dropout", 0.1);
  Attention attention = llama_attention(c, n);
  attention.dropout = dropout;
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "full", attention, mlp);
  for (Branch& branch : layer.branches) branch.dropout = dropout;
  return decoder(n, layer);
}

// Moshi's decoder, of its text alone: a row of the table beside the vocabulary's, tables of
// positions made in each layer, gate and up of one product (transformers 5.23, modeling_moshi.py).
ModelSpec moshi(const Config& c) {
  Sizes n = read_sizes(c, {.width_keys = "ffn_dim", .width = 22528});
  n.norm = NormKind::rms_cast;
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  c.pass_over({"audio_vocab_size", "num_codebooks", "audio_encoder_config", "depth_decoder_config",
               "sliding_window", "tie_word_embeddings"});
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.q = "q_proj.linear";
  attention.k = "k_proj.linear";
  attention.v = "v_proj.linear";
  attention.o = "o_proj.linear";
  attention.rotary.each_layer = true;
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::fused_gate;
  mlp.up = "fc1";
  mlp.down = "fc2";
  if (n.width % 2 != 0) c.fail("ffn_dim", "is not even");
  mlp.width = n.width / 2;
  ModelSpec spec = decoder(n, llama_layer(n, "full", attention, mlp));
  std::get<TokenEmbedding>(spec.stacks[0].input).vocab = n.vocab + 1;
  set_tied(spec, false);  // whatever the file says
  return spec;
}

// Sinks everywhere; full layers without positions, or with what layer_rope_theta says.
ModelSpec granite_swa(const Config& c) {
  const Sizes n = read_sizes(c, {.kv_heads = 4, .tied = true});
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  ModelSpec spec = decoder(n, sink_layers(c, n, mlp));
  set_multipliers(c, spec);
  return spec;
}

}  // namespace

Layers sink_layers(const Config& c, const Sizes& n, const Body& feed_forward) {
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string(i % 4 == 0 ? "full_attention" : "sliding_attention");
  });
  std::vector<bool> turned;  // null is a layer without positions
  if (const auto list = c.json().find("layer_rope_theta")) {
    for (const JsonReader& theta : list->elements()) turned.push_back(!theta.is_null());
  }
  c.pass_over({"layer_rope_theta"});
  return Layers::of(n.layers, [&](std::int64_t i) {
    const bool full = is_full(types, i);
    Attention attention = llama_attention(c, n);
    attention.sinks = true;
    attention.window = full ? 0 : c.count("sliding_window", 128);
    const auto at = static_cast<std::size_t>(i);
    if (at < turned.size() && !turned[at]) attention.rotary.dims = 0;
    return llama_layer(n, full ? "full" : "windowed", attention, feed_forward);
  });
}

std::vector<Family> llama_kin_families() {
  return {{"MinistralForCausalLM", "ministral", ministral},
          {"Ministral3ForCausalLM", "ministral3", ministral3},
          {"CwmForCausalLM", "cwm", cwm},
          {"Exaone4ForCausalLM", "exaone4", exaone4},
          {"HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", hunyuan_v1_dense},
          {"HyperCLOVAXForCausalLM", "hyperclovax", hyperclovax},
          {"NanoChatForCausalLM", "nanochat", nanochat},
          {"StableLmForCausalLM", "stablelm", stablelm},
          {"PersimmonForCausalLM", "persimmon", persimmon},
          {"BitNetForCausalLM", "bitnet", bitnet},
          {"Jais2ForCausalLM", "jais2", jais2},
          {"ApertusForCausalLM", "apertus", apertus},
          {"Emu3ForCausalLM", "emu3_text_model", emu3_text},
          {"GraniteSWAForCausalLM", "granite_swa", granite_swa},
          {"MoshiForCausalLM", "moshi", moshi}};
}

}  // namespace shardsim::models
