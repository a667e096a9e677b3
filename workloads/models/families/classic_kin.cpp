// More decoders before Llama: GPT-J, CodeGen, StarCoder 1, BioGPT, GPT-NeoX Japanese.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Sizes read_old(const Config& c, std::string_view activation, bool tied) {
  Sizes n = read_sizes(c, {.tied = tied,
                           .activation = activation,
                           .activation_keys = "activation_function",
                           .has_width = false});
  n.width = c.size("n_inner", 4 * n.hidden);
  return n;
}

// Attention and MLP of one norm, scores in fp32 multiplied out; part of each head turned.
ModelSpec gptj_like(const Config& c, bool fused) {
  const Sizes n = read_old(c, "gelu_new", false);
  const double dropout = c.rate("resid_pdrop", 0);
  Attention attention = llama_attention(c, n);
  set_biases(attention, false, false);
  attention.name = "attn";
  attention.o = "out_proj";
  attention.form = fused ? QkvForm::fused : QkvForm::separate;
  attention.plain_only = attention.fp32_scores = true;
  attention.dropout = c.rate("attn_pdrop", 0);
  attention.out_dropout = dropout;
  attention.rotary.dims = c.optional_size("rotary_dim", 64).value_or(n.head_dim);
  attention.rotary.apart = true;
  attention.rotary.fp32 = fused;
  attention.rotary.concatenated = true;
  attention.rotary.each_layer = true;
  Mlp mlp = plain_mlp(n, "fc_in", "fc_out");
  mlp.dropout = dropout;
  ModelSpec spec =
      decoder(n, {.name = "full",
                  .branches = {{.before = layer_norm("ln_1"), .body = attention}, {.body = mlp}},
                  .parallel = true});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.ln_f");
  stack.input = TokenEmbedding{.name = "transformer.wte",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .dropout_name = "transformer.drop",
                               .dropout = c.rate("embd_pdrop", 0)};
  spec.head.bias = true;
  set_tied(spec, n.tied);
  return spec;
}

ModelSpec gptj(const Config& c) { return gptj_like(c, /*fused=*/false); }
ModelSpec codegen(const Config& c) { return gptj_like(c, /*fused=*/true); }

// GPT's modules under GPT-2's names and keys, without rotary positions.
Attention gpt_attention(const Config& c, const Sizes& n, QkvForm form) {
  Attention attention = llama_attention(c, n);
  set_biases(attention, true, true);
  attention.name = "attn";
  attention.form = form;
  attention.qkv = "c_attn";
  attention.o = "c_proj";
  attention.rotary.dims = 0;
  attention.dropout = c.rate("attn_pdrop", 0.1);
  attention.out_dropout = c.rate("resid_pdrop", 0.1);
  return attention;
}

Mlp gpt_mlp(const Config& c, const Sizes& n) {
  Mlp mlp = plain_mlp(n, "c_fc", "c_proj");
  mlp.dropout = c.rate("resid_pdrop", 0.1);
  return mlp;
}

// GPT-2 with one key head, linear modules in place of Conv1D.
ModelSpec gpt_bigcode(const Config& c) {
  Sizes n = read_old(c, "gelu_pytorch_tanh", true);
  n.kv_heads = c.flag("multi_query", true) ? 1 : n.heads;
  const Attention attention = gpt_attention(c, n, QkvForm::fused);
  const Mlp mlp = gpt_mlp(c, n);
  return gpt2_decoder(c, n, attention, mlp);
}

ModelSpec biogpt(const Config& c) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = "gelu"});
  constexpr std::int64_t offset = 2;
  Attention attention = llama_attention(c, n);
  set_biases(attention, true, true);
  attention.o = "out_proj";
  attention.rotary.dims = 0;
  attention.dropout = c.rate("attention_probs_dropout_prob", 0.1);
  attention.fp32_softmax = false;
  ModelSpec spec = fairseq_decoder(c, n, attention, fairseq_mlp(c, n, ""), "hidden_dropout_prob");
  Stack& stack = spec.stacks[0];
  stack.prefix = "biogpt.layers";
  stack.norm = layer_norm("biogpt.layer_norm");
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.name = "biogpt.embed_tokens";
  input.positions = "biogpt.embed_positions";
  input.position_rows = c.size("max_position_embeddings", 1024) + offset;
  input.position_offset = offset;
  spec.head.name = "output_projection";
  set_tied(spec, n.tied);
  return spec;
}

// Positions are sines, which have no table.
ModelSpec xglm(const Config& c) {
  Sizes n;
  n.hidden = c.needed("d_model|hidden_size", 1024);
  n.layers = c.layers("num_layers|num_hidden_layers", 24);
  n.heads = n.kv_heads = c.needed("attention_heads|num_attention_heads", 16);
  n.head_dim = c.divided("d_model", n.hidden, "attention_heads", n.heads);
  n.width = c.needed("ffn_dim", 4096);
  n.vocab = c.needed("vocab_size", 256008);
  n.activation = c.activation("activation_function", "gelu");
  static_cast<void>(c.rate("layerdrop", 0));  // layers that a step leaves out at random are counted
  Attention attention = fairseq_attention(c, n);
  attention.plain_only = true;
  attention.bounded = true;
  ModelSpec spec = fairseq_decoder(c, n, attention, fairseq_mlp(c, n, ""));
  set_tied(spec, c.flag("tie_word_embeddings", true));
  return spec;
}

// The first GPT: norms of the sums, none after the last layer.
ModelSpec openai_gpt(const Config& c) {
  Sizes n = read_sizes(
      c, {.tied = true, .activation = "gelu", .activation_keys = "afn", .has_width = false});
  n.width = 4 * n.hidden;
  n.activation = n.activation == "gelu" ? "gelu_new" : n.activation;  // of the class's own table
  Attention attention = gpt_attention(c, n, QkvForm::fused_conv1d);
  attention.plain_only = true;
  attention.fp32_softmax = false;
  Mlp mlp = gpt_mlp(c, n);
  mlp.conv1d = true;
  ModelSpec spec = decoder(n, {.name = "full",
                               .branches = {{.body = attention, .joined = layer_norm("ln_1")},
                                            {.body = mlp, .joined = layer_norm("ln_2")}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = {};
  stack.input = TokenEmbedding{.name = "transformer.tokens_embed",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .positions = "transformer.positions_embed",
                               .position_rows = c.size("n_positions", 512),
                               .position_numbers = PositionNumbers::stored,
                               .dropout_name = "transformer.drop",
                               .dropout = c.rate("embd_pdrop", 0.1)};
  set_tied(spec, n.tied);
  return spec;
}

// Slopes of distances (ALiBi), scores multiplied out; nothing has a bias, norms neither.
ModelSpec mpt(const Config& c) {
  Sizes n;
  n.hidden = c.needed("d_model", 2048);
  n.layers = c.layers("n_layers", 24);
  n.heads = n.kv_heads = c.needed("n_heads", 16);
  n.head_dim = c.divided("d_model", n.hidden, "n_heads", n.heads);
  n.vocab = c.needed("vocab_size", 50368);
  n.width = 4 * n.hidden;  // whatever expansion_ratio says
  n.tied = c.flag("tie_word_embeddings", true);
  c.pass_over({"expansion_ratio", "max_seq_len", "resid_pdrop", "emb_pdrop", "learned_pos_emb",
               "init_device", "logit_scale", "no_bias", "embedding_fraction", "norm_type",
               "embedding_initializer_range", "init_config", "verbose"});
  double dropout = 0;
  if (const auto inner = c.sub("attn_config")) {
    dropout = inner->rate("attn_pdrop", 0);
    if (inner->number("clip_qkv", 0) != 0) inner->fail("clip_qkv", "is not supported");
    inner->pass_over({"attn_type", "attn_impl", "softmax_scale", "prefix_lm", "qk_ln",
                      "attn_uses_sequence_id", "alibi", "alibi_bias_max", "model_type"});
  }
  Attention attention;
  attention.name = "attn";
  attention.form = QkvForm::fused;
  attention.qkv = "Wqkv";
  attention.o = "out_proj";
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.head_dim;
  attention.plain_only = true;
  attention.mask = ScoreMask::blanks;
  attention.dropout = dropout;
  Mlp mlp = plain_mlp(n, "up_proj", "down_proj");
  mlp.name = "ffn";
  mlp.activation = "gelu";
  mlp.bias = false;
  ModelSpec spec = decoder(
      n,
      {.name = "full",
       .branches = {{.before = {NormKind::layer, "norm_1"}, .body = attention, .dropout = dropout},
                    {.before = {NormKind::layer, "norm_2"}, .body = mlp, .dropout = dropout}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.blocks";
  stack.norm = {NormKind::layer, "transformer.norm_f"};
  stack.input = TokenEmbedding{.name = "transformer.wte", .vocab = n.vocab, .width = n.hidden};
  set_tied(spec, n.tied);
  return spec;
}

// Positions are sines; scores multiplied out; the head has a bias.
ModelSpec ctrl(const Config& c) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = "relu", .width_keys = "dff"});
  const double dropout = c.rate("resid_pdrop", 0.1);
  Attention attention;
  attention.name = "multi_head_attention";
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.head_dim;
  attention.q = "Wq";
  attention.k = "Wk";
  attention.v = "Wv";
  attention.o = "dense";
  set_biases(attention, true, true);
  Mlp mlp = plain_mlp(n, "0", "2");
  mlp.name = "ffn";
  mlp.activation = "relu";
  ModelSpec spec = decoder(
      n, {.name = "full",
          .branches = {{.before = layer_norm("layernorm1"), .body = attention, .dropout = dropout},
                       {.before = layer_norm("layernorm2"), .body = mlp, .dropout = dropout}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.layernorm");
  stack.input = TokenEmbedding{.name = "transformer.w",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .scaled = true,
                               .dropout = c.rate("embd_pdrop", 0.1)};
  spec.head.bias = true;
  set_tied(spec, n.tied);
  return spec;
}

// GPT-NeoX whose branches follow each other, without biases but for one behind the last layer's
// attention, which is multiplied out (transformers 5.23, modeling_gpt_neox_japanese.py).
ModelSpec gpt_neox_japanese(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .activation = "gelu", .has_width = false});
  n.width = n.hidden * c.size("intermediate_multiple_size", 4);
  const double dropout = c.rate("hidden_dropout", 0);
  Attention attention;
  attention.name = "attention";
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.head_dim;
  attention.form = QkvForm::fused;
  attention.qkv = "query_key_value";
  attention.o = "dense";
  attention.plain_only = true;
  attention.fp32_softmax = false;
  attention.dropout = c.rate("attention_dropout", 0.1);
  attention.rotary.dims =
      static_cast<std::int64_t>(static_cast<double>(n.head_dim) *
                                c.rotary_number("partial_rotary_factor", c.ratio("rotary_pct", 1)));
  c.pass_over({"rotary_emb_base"});
  Mlp mlp = plain_mlp(n, "dense_h_to_4h", "dense_4h_to_h");
  mlp.bias = false;
  ModelSpec spec = decoder(
      n, Layers::of(n.layers, [&](std::int64_t i) {
        Attention own = attention;
        const bool last = i + 1 == n.layers;
        if (last) own.o_added = "dense_bias";
        return LayerKind{
            .name = last ? "full, biased" : "full",
            .branches = {{.before = layer_norm("input_layernorm"), .body = own, .dropout = dropout},
                         {.before = layer_norm("post_attention_layernorm"),
                          .body = mlp,
                          .dropout = dropout}}};
      }));
  Stack& stack = spec.stacks[0];
  stack.prefix = "gpt_neox_japanese.layers";
  stack.norm = layer_norm("gpt_neox_japanese.final_layer_norm");
  stack.input =
      TokenEmbedding{.name = "gpt_neox_japanese.embed_in", .vocab = n.vocab, .width = n.hidden};
  spec.head.name = "embed_out";
  set_tied(spec, n.tied);
  return spec;
}

}  // namespace

std::vector<Family> classic_kin_families() {
  return {{"MptForCausalLM", "mpt", mpt},
          {"GPTJForCausalLM", "gptj", gptj},
          {"CodeGenForCausalLM", "codegen", codegen},
          {"GPTBigCodeForCausalLM", "gpt_bigcode", gpt_bigcode},
          {"BioGptForCausalLM", "biogpt", biogpt},
          {"OpenAIGPTLMHeadModel", "openai-gpt", openai_gpt},
          {"XGLMForCausalLM", "xglm", xglm},
          {"CTRLLMHeadModel", "ctrl", ctrl},
          {"GPTNeoXJapaneseForCausalLM", "gpt_neox_japanese", gpt_neox_japanese}};
}

}  // namespace shardsim::models
