// Decoders before Llama: layer norms with biases, GELU without a gate, learned positions or ALiBi,
// queries, keys and values of one matrix.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Attention fused_attention(const Sizes& n, std::string name, std::string qkv, std::string out) {
  Attention attention;
  attention.name = std::move(name);
  attention.heads = n.heads;
  attention.kv_heads = n.kv_heads;
  attention.head_dim = n.head_dim;
  attention.form = QkvForm::fused;
  attention.qkv = std::move(qkv);
  attention.o = std::move(out);
  set_biases(attention, true, true);
  return attention;
}

// GPT-2: learned positions, Conv1D weights [in, out].
ModelSpec gpt2(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true,
                           .activation = "gelu_new",
                           .activation_keys = "activation_function",
                           .has_width = false});
  n.width = c.size("n_inner", 4 * n.hidden);
  const double dropout = c.rate("resid_pdrop", 0.1);
  Attention attention = fused_attention(n, "attn", "c_attn", "c_proj");
  attention.form = QkvForm::fused_conv1d;
  attention.dropout = c.rate("attn_pdrop", 0.1);
  attention.out_dropout = dropout;
  attention.fp32_softmax = false;
  Mlp mlp = plain_mlp(n, "c_fc", "c_proj");
  mlp.conv1d = true;
  mlp.dropout = dropout;
  return gpt2_decoder(c, n, attention, mlp);
}

// Attention and MLP in parallel, each of its own norm.
ModelSpec gpt_neox(const Config& c) {
  const Sizes n = read_sizes(c, {.activation = "gelu"});
  const bool bias = c.flag("attention_bias", true);
  Attention attention = fused_attention(n, "attention", "query_key_value", "dense");
  set_biases(attention, bias, bias);
  attention.dropout = c.rate("attention_dropout", 0);
  attention.rotary.dims = static_cast<std::int64_t>(
      static_cast<double>(n.head_dim) *
      c.rotary_number("partial_rotary_factor", c.ratio("rotary_pct", 0.25)));
  attention.rotary.concatenated = true;
  const double dropout = c.rate("hidden_dropout", 0);
  ModelSpec spec = decoder(n, {.name = "full",
                               .branches = {{.before = layer_norm("input_layernorm"),
                                             .body = attention,
                                             .dropout = dropout},
                                            {.before = layer_norm("post_attention_layernorm"),
                                             .body = plain_mlp(n, "dense_h_to_4h", "dense_4h_to_h"),
                                             .dropout = dropout}},
                               .parallel = c.flag("use_parallel_residual", true)});
  Stack& stack = spec.stacks[0];
  stack.prefix = "gpt_neox.layers";
  stack.norm = layer_norm("gpt_neox.final_layer_norm");
  stack.input = TokenEmbedding{
      .name = "gpt_neox.embed_in", .vocab = n.vocab, .width = n.hidden, .dropout = dropout};
  set_tied(spec, n.tied);
  return spec;
}

// The position table has two rows more than positions; 350m norms after, and embeds narrower.
ModelSpec opt(const Config& c) {
  const Sizes n = read_sizes(c, {.tied = true,
                                 .activation = "relu",
                                 .activation_keys = "activation_function",
                                 .width_keys = "ffn_dim"});
  constexpr std::int64_t offset = 2;
  const bool before = c.flag("do_layer_norm_before", true);
  const bool bias = c.flag("enable_bias", true);
  const double dropout = c.rate("dropout", 0.1);
  const NormKind kind =
      c.flag("layer_norm_elementwise_affine", true) ? NormKind::layer : NormKind::layer_fixed;
  Attention attention = llama_attention(c, n);
  set_biases(attention, bias, bias);
  attention.o = "out_proj";
  attention.rotary.dims = 0;
  Mlp mlp = plain_mlp(n, "fc1", "fc2");
  mlp.name = "";
  mlp.bias = bias;
  const Norm of_attention{kind, "self_attn_layer_norm", true};
  const Norm of_mlp{kind, "final_layer_norm", true};
  LayerKind layer{
      .name = "full",
      .branches = {{.body = attention, .dropout = dropout}, {.body = mlp, .dropout = dropout}}};
  (before ? layer.branches[0].before : layer.branches[0].joined) = of_attention;
  (before ? layer.branches[1].before : layer.branches[1].joined) = of_mlp;
  ModelSpec spec = decoder(n, layer);
  const std::int64_t width = c.size("word_embed_proj_dim", n.hidden);
  Stack& stack = spec.stacks[0];
  stack.prefix = "model.decoder.layers";
  stack.norm = {};
  const bool has_final_norm = !c.flag("_remove_final_layer_norm", false);
  if (before && has_final_norm) {
    stack.norm = {kind, "model.decoder.final_layer_norm", true};
  }
  stack.input = TokenEmbedding{.name = "model.decoder.embed_tokens",
                               .vocab = n.vocab,
                               .width = width,
                               .positions = "model.decoder.embed_positions",
                               .position_rows = c.size("max_position_embeddings", 2048) + offset,
                               .position_offset = offset,
                               .position_numbers = PositionNumbers::per_example,
                               .project = width != n.hidden ? "model.decoder.project_in" : ""};
  if (width != n.hidden) {
    stack.project = "model.decoder.project_out";
    stack.project_width = width;
  }
  set_tied(spec, n.tied);
  return spec;
}

// ALiBi: scores start from a bias that no parameter has; always multiplied out.
ModelSpec bloom(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .activation = "gelu", .has_width = false});
  n.width = 4 * n.hidden;
  n.activation = "gelu";
  const double dropout = c.rate("hidden_dropout", 0);
  Attention attention = fused_attention(n, "self_attention", "query_key_value", "dense");
  attention.dropout = c.rate("attention_dropout", 0);
  attention.alibi = true;
  ModelSpec spec = decoder(
      n, {.name = "full",
          .branches = {
              {.before = layer_norm("input_layernorm"), .body = attention, .dropout = dropout},
              {.before = layer_norm("post_attention_layernorm"),
               .body = plain_mlp(n, "dense_h_to_4h", "dense_4h_to_h"),
               .dropout = dropout}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.ln_f");
  stack.input = TokenEmbedding{.name = "transformer.word_embeddings",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .norm = layer_norm("transformer.word_embeddings_layernorm")};
  set_tied(spec, n.tied);
  return spec;
}

// Attention and MLP of one norm, biases everywhere, the head's too.
ModelSpec phi(const Config& c) {
  Sizes n = read_sizes(c, {.activation = "gelu_new"});
  const double dropout = c.rate("resid_pdrop", 0);
  Attention attention = llama_attention(c, n);
  set_biases(attention, true, true);
  attention.o = "dense";
  attention.rotary.dims = static_cast<std::int64_t>(static_cast<double>(n.head_dim) *
                                                    c.rotary_number("partial_rotary_factor", 0.5));
  attention.rotary.concatenated = true;
  if (c.flag("qk_layernorm", false)) {
    attention.q_norm = layer_norm("q_layernorm");
    attention.k_norm = layer_norm("k_layernorm");
  }
  ModelSpec spec =
      decoder(n, {.name = "full",
                  .branches = {{.before = layer_norm("input_layernorm"),
                                .body = attention,
                                .dropout = dropout},
                               {.body = plain_mlp(n, "fc1", "fc2"), .dropout = dropout}},
                  .parallel = true});
  spec.stacks[0].norm = layer_norm("model.final_layernorm");
  auto& embedding = std::get<TokenEmbedding>(spec.stacks[0].input);
  embedding.dropout_name = "model.embed_dropout";
  embedding.dropout = c.rate("embd_pdrop", 0);
  spec.head.bias = true;
  return spec;
}

// Falcon: three generations in one class. Its attention always gets a mask.
ModelSpec falcon(const Config& c) {
  Sizes n = read_sizes(
      c, {.tied = true, .activation = "gelu", .activation_keys = "activation", .has_width = false});
  n.width = c.size("ffn_hidden_size", 4 * n.hidden);
  const bool grouped = c.flag("new_decoder_architecture", false);
  const bool multi_query = c.flag("multi_query", true);
  const bool one_key_head = !grouped && multi_query;
  const bool parallel = c.flag("parallel_attn", true);
  const bool alibi = c.flag("alibi", false);
  const bool bias = c.flag("bias", false);
  const std::int64_t key_heads = c.size("num_kv_heads", n.heads);
  n.kv_heads = grouped ? key_heads : one_key_head ? 1 : n.heads;
  static_cast<void>(c.divided("num_attention_heads", n.heads, "num_kv_heads", n.kv_heads));
  Attention attention = fused_attention(n, "self_attention", "query_key_value", "dense");
  set_biases(attention, bias, bias);
  attention.bias_apart = true;
  attention.kv_by_index = grouped || one_key_head;
  attention.expand_kv = one_key_head;
  attention.mask = alibi ? ScoreMask::alibi : ScoreMask::each_layer;
  const double dropout = c.rate("attention_dropout", 0);
  attention.dropout = alibi ? dropout : 0;  // the class's kernel has none without ALiBi
  if (!alibi) attention.rotary.dims = n.head_dim;
  Mlp mlp = plain_mlp(n, "dense_h_to_4h", "dense_4h_to_h");
  mlp.bias = bias;
  mlp.bias_apart = true;
  LayerKind layer{.name = "full",
                  .branches = {{.before = layer_norm("input_layernorm"), .body = attention},
                               {.body = mlp, .dropout = c.rate("hidden_dropout", 0)}},
                  .parallel = parallel || grouped};
  if (!parallel) {
    if (!grouped) layer.branches[0].dropout = dropout;
    layer.branches[1].before = layer_norm("post_attention_layernorm");
  } else if (c.size("num_ln_in_parallel_attn", grouped ? 2 : 1) == 2) {
    layer.branches[0].before = layer_norm("ln_attn");
    layer.branches[1].before = layer_norm("ln_mlp");
  }
  ModelSpec spec = decoder(n, layer);
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.ln_f");
  stack.input =
      TokenEmbedding{.name = "transformer.word_embeddings", .vocab = n.vocab, .width = n.hidden};
  set_tied(spec, n.tied);
  return spec;
}

// GPT-Neo's attention_types: [[["global", "local"], 12]] is a pattern, 12 times.
std::vector<bool> local_layers(const Config& c, std::int64_t layers) {
  std::vector<bool> local;
  if (!c.given("attention_types")) {
    for (std::int64_t i = 0; i < layers; ++i) local.push_back(i % 2 != 0);
    return local;
  }
  constexpr std::int64_t most = 10'000;
  for (const JsonReader& entry : c.json().at("attention_types").elements()) {
    const std::vector<JsonReader> parts = entry.elements();
    if (parts.size() != 2) entry.fail("expected a pattern and how often it comes");
    const std::int64_t times = parts[1].integer(1, most);
    for (std::int64_t i = 0; i < times && static_cast<std::int64_t>(local.size()) < layers; ++i) {
      for (const JsonReader& type : parts[0].elements()) local.push_back(type.string() == "local");
    }
  }
  if (static_cast<std::int64_t>(local.size()) != layers) {
    c.fail("attention_types", "does not list as many layers as there are");
  }
  return local;
}

// Every other layer sees a window of 256; scores in fp32, multiplied out.
ModelSpec gpt_neo(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true,
                           .activation = "gelu_new",
                           .activation_keys = "activation_function",
                           .has_width = false});
  n.width = c.size("intermediate_size", 4 * n.hidden);
  const double dropout = c.rate("resid_dropout", 0);
  Attention attention = llama_attention(c, n);
  attention.name = "attn.attention";
  attention.o = "out_proj";
  attention.rotary.dims = 0;
  set_biases(attention, false, true);
  attention.plain_only = attention.fp32_scores = true;
  attention.out_dropout = dropout;
  Mlp mlp = plain_mlp(n, "c_fc", "c_proj");
  mlp.dropout = dropout;
  const std::vector<bool> local = local_layers(c, n.layers);
  c.pass_over({"attention_layers"});  // made of attention_types
  const std::int64_t window = c.count("window_size", 256);
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                const bool windowed = local[static_cast<std::size_t>(i)];
                attention.window = windowed ? window : 0;
                return LayerKind{.name = windowed ? "windowed" : "full",
                                 .branches = {{.before = layer_norm("ln_1"), .body = attention},
                                              {.before = layer_norm("ln_2"), .body = mlp}}};
              }));
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.ln_f");
  stack.input = TokenEmbedding{.name = "transformer.wte",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .positions = "transformer.wpe",
                               .position_rows = c.size("max_position_embeddings", 2048),
                               .dropout = c.rate("embed_dropout", 0)};
  set_tied(spec, n.tied);
  return spec;
}

}  // namespace

std::vector<Family> classic_families() {
  return {{"GPT2LMHeadModel", "gpt2", gpt2},       {"GPTNeoXForCausalLM", "gpt_neox", gpt_neox},
          {"OPTForCausalLM", "opt", opt},          {"BloomForCausalLM", "bloom", bloom},
          {"FalconForCausalLM", "falcon", falcon}, {"GPTNeoForCausalLM", "gpt_neo", gpt_neo},
          {"PhiForCausalLM", "phi", phi}};
}

}  // namespace shardsim::models
