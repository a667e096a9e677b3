// T5Gemma: two Gemma 2, of which the second attends to the first.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

struct Side {
  std::string name;
  double dropout = 0, attention_dropout = 0;
  bool decodes = false;
};

Attention side_attention(const Config& c, const Sizes& n, const Side& side) {
  Attention attention = llama_attention(c, n);
  attention.dropout = side.attention_dropout;
  attention.soft_cap = c.cap("attn_logit_softcapping", 50);
  attention.rotary.table = "rotary of " + side.name;
  attention.bidirectional = !side.decodes;
  return attention;
}

LayerKind side_layer(const Config& c, const Sizes& n, const Side& side, bool full) {
  LayerKind layer{.name = full ? "full" : "windowed"};
  const auto add = [&](const Body& body, const std::string& name) {
    layer.branches.push_back({.before = {n.norm, "pre_" + name + "_layernorm"},
                              .body = body,
                              .after = {n.norm, "post_" + name + "_layernorm"},
                              .dropout = side.dropout});
  };
  Attention attention = side_attention(c, n, side);
  attention.window = full ? 0 : c.count("sliding_window", 4096);
  add(attention, "self_attn");
  if (side.decodes) {
    Attention cross = side_attention(c, n, side);
    cross.name = "cross_attn";
    cross.cross = true;
    cross.rotary.dims = 0;
    add(cross, "cross_attn");
  }
  Mlp mlp = llama_mlp(n);
  mlp.inner_dropout = side.dropout;
  add(mlp, "feedforward");
  return layer;
}

Sizes side_sizes(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 4,
                           .head_dim = 256,
                           .tied = true,
                           .activation = "gelu_pytorch_tanh",
                           .activation_keys = "hidden_activation",
                           .hidden = 2304,
                           .width = 9216,
                           .vocab = 256000,
                           .layers = 26});
  n.norm = NormKind::rms_offset;
  return n;
}

Stack side_stack(const Config& c, const Side& side) {
  const Sizes n = side_sizes(c);
  c.pass_over({"cross_attention_hidden_size", "dropout_rate", "attention_dropout", "is_decoder",
               "final_logit_softcapping"});
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string(i % 2 == 0 ? "sliding_attention" : "full_attention");
  });
  Layers layers = Layers::of(
      n.layers, [&](std::int64_t i) { return side_layer(c, n, side, is_full(types, i)); });
  const std::string at = "model." + side.name;
  Stack stack;
  stack.role = side.decodes ? StackRole::main : StackRole::encoder;
  stack.prefix = at + ".layers";
  stack.hidden = n.hidden;
  stack.input = TokenEmbedding{.name = at + ".embed_tokens",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .scaled = true,
                               .shifted = side.decodes,
                               .dropout_name = at + ".dropout",
                               .dropout = side.dropout};
  stack.kinds = std::move(layers.kinds);
  stack.order = std::move(layers.order);
  stack.norm = {n.norm, at + ".norm"};
  stack.dropout = side.dropout;
  return stack;
}

ModelSpec t5gemma_like(const Config& c) {
  const double dropout = c.rate("dropout_rate", 0);
  const double attention_dropout = c.rate("attention_dropout", 0);
  c.pass_over({"classifier_dropout_rate", "vocab_size", "is_encoder_decoder"});  // sides say more
  const std::optional<Config> encoder = c.sub("encoder");
  const std::optional<Config> decoder = c.sub("decoder");
  if (!encoder || !decoder) c.fail("encoder", "needs an object for each side");
  ModelSpec spec;
  spec.stacks.push_back(side_stack(*encoder, {"encoder", dropout, attention_dropout, false}));
  spec.stacks.push_back(side_stack(*decoder, {"decoder", dropout, attention_dropout, true}));
  spec.head.name = "lm_head.out_proj";
  spec.head.vocab = std::get<TokenEmbedding>(spec.stacks[1].input).vocab;
  spec.head.causal_loss = false;
  spec.head.fp32_loss = true;
  spec.head.soft_cap = decoder->cap("final_logit_softcapping", 30);
  set_tied(spec, c.flag("tie_word_embeddings", true));
  return spec;
}

// The encoder by itself, which classes below have where the file says that there is no decoder.
void keep_encoder(ModelSpec& spec) {
  spec.stacks.resize(1);
  spec.stacks[0].role = StackRole::main;
}

ModelSpec t5gemma_encoder(const Config& c) {
  if (c.flag("is_encoder_decoder", true)) {
    c.fail("is_encoder_decoder", "the class is an encoder alone: only false is supported");
  }
  ModelSpec spec = t5gemma_like(c);
  keep_encoder(spec);
  replace_root(spec, "model.", "");
  spec.head = {.kind = HeadKind::none};
  return spec;
}

// Of the decoder's states, whose tokens are the text's, moved by one; of the encoder's without one.
ModelSpec t5gemma_classifier(const Config& c, HeadRows rows) {
  ModelSpec spec = t5gemma_like(c);
  if (!c.flag("is_encoder_decoder", true)) keep_encoder(spec);
  spec.head = {.kind = HeadKind::classification,
               .name = "score.out_proj",
               .vocab = labels_of(c),
               .bias = true,
               .fp32_loss = rows == HeadRows::each,
               .rows = rows,
               .dropout = c.rate("classifier_dropout_rate", 0)};
  return spec;
}

ModelSpec t5gemma_sequences(const Config& c) { return t5gemma_classifier(c, HeadRows::picked); }
ModelSpec t5gemma_tokens(const Config& c) { return t5gemma_classifier(c, HeadRows::each); }

}  // namespace

std::vector<Family> t5gemma_families() {
  return {{"T5GemmaForConditionalGeneration", "t5gemma", t5gemma_like},
          {"T5GemmaEncoderModel", "t5gemma", t5gemma_encoder},
          {"T5GemmaForSequenceClassification", "t5gemma", t5gemma_sequences},
          {"T5GemmaForTokenClassification", "t5gemma", t5gemma_tokens}};
}

}  // namespace shardsim::models
