// Encoders with decoders that attend to them: T5, BART, Whisper.
#include "workloads/models/families/encoder_decoders.hpp"

#include <algorithm>

#include "workloads/layers/activation.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// "relu", "gated-gelu": the first words, and whether gated.
struct FeedForward {
  std::string activation;
  bool gated = false;
};

FeedForward t5_feed_forward(const Config& c, const T5Kind& kind) {
  std::string text = c.text("feed_forward_proj", kind.form);
  const bool gated = text.starts_with("gated-");
  if (gated) text.erase(0, 6);
  if (gated && text == "gelu") text = "gelu_new";
  const auto& known = known_activations();
  if (std::find(known.begin(), known.end(), text) == known.end()) {
    c.fail("feed_forward_proj", "is no activation, by itself or behind \"gated-\"");
  }
  return {c.activation("dense_act_fn", text), c.flag("is_gated_act", gated)};  // if it says more
}

Attention t5_attention(const Config& c, std::int64_t heads, const std::string& name) {
  Attention attention;
  attention.name = name;
  attention.q = "q";
  attention.k = "k";
  attention.v = "v";
  attention.o = "o";
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = c.size("d_kv", 64);
  attention.dropout = c.rate("dropout_rate", 0.1);
  attention.mask = ScoreMask::relative;
  attention.fp32_softmax = false;
  return attention;
}

LayerKind t5_layer(const Config& c, const T5Kind& kind, bool decodes, bool first) {
  const FeedForward form = t5_feed_forward(c, kind);
  const std::int64_t heads = c.needed("num_heads", 8);
  const double dropout = c.rate("dropout_rate", 0.1);
  first = first || kind.biases_everywhere;
  LayerKind layer{.name = first ? "first" : "rest"};
  const auto add = [&](const Body& body) {
    const std::string at = "layer." + std::to_string(layer.branches.size()) + ".";
    layer.branches.push_back(
        {.before = {NormKind::rms_t5, at + "layer_norm"}, .body = body, .dropout = dropout});
  };
  Attention attention = t5_attention(c, heads, "layer.0.SelfAttention");
  attention.causal = decodes;
  attention.bidirectional = !decodes;
  if (first) attention.relative_buckets = c.size("relative_attention_num_buckets", 32);
  add(attention);
  if (decodes) {
    Attention cross = t5_attention(c, heads, "layer.1.EncDecAttention");
    cross.cross = true;
    add(cross);
  }
  Mlp mlp;
  mlp.name = "layer." + std::to_string(layer.branches.size()) + ".DenseReluDense";
  mlp.width = c.needed("d_ff", 2048);
  mlp.form = form.gated ? MlpForm::gated : MlpForm::plain;
  mlp.activation = form.activation;
  mlp.gate = "wi_0";
  mlp.up = form.gated ? "wi_1" : "wi";
  mlp.down = "wo";
  mlp.inner_dropout = dropout;
  add(mlp);
  return layer;
}

Stack t5_stack(const Config& c, const T5Kind& kind, bool decodes, std::int64_t layers) {
  const std::string name = decodes ? "decoder" : "encoder";
  const double dropout = c.rate("dropout_rate", 0.1);
  Stack stack;
  stack.role = decodes ? StackRole::main : StackRole::encoder;
  stack.prefix = name + ".block";
  stack.hidden = c.needed("d_model", 512);
  stack.input = TokenEmbedding{.name = name + ".embed_tokens",
                               .table_of = "shared",
                               .vocab = c.needed("vocab_size", 32128),
                               .width = stack.hidden,
                               .shifted = decodes,
                               .dropout_name = name + ".dropout",
                               .dropout = dropout};
  Layers all =
      Layers::of(layers, [&](std::int64_t i) { return t5_layer(c, kind, decodes, i == 0); });
  stack.kinds = std::move(all.kinds);
  stack.order = std::move(all.order);
  stack.norm = {NormKind::rms_t5, name + ".final_layer_norm"};
  stack.dropout = dropout;
  return stack;
}

}  // namespace

void untie_tables(ModelSpec& spec) {
  for (Stack& stack : spec.stacks) {
    if (auto* input = std::get_if<TokenEmbedding>(&stack.input)) input->table_of.clear();
  }
  for (const SharedTable& table : spec.shared) {
    spec.apart.push_back({table.name + ".weight", {table.vocab, table.width}, /*embedding=*/true});
  }
  spec.shared.clear();
}

ModelSpec t5_like(const Config& c, const T5Kind& kind) {
  const std::int64_t layers = c.layers("num_layers", 6);
  // Buckets are what distances are put into, not how far.
  c.pass_over({"relative_attention_max_distance", "n_positions", "scale_decoder_outputs"});
  ModelSpec spec;
  spec.stacks.push_back(t5_stack(c, kind, /*decodes=*/false, layers));
  const std::int64_t decoders = c.size("num_decoder_layers", layers);
  spec.stacks.push_back(t5_stack(c, kind, /*decodes=*/true, decoders));
  const std::int64_t vocab = c.needed("vocab_size", 32128);
  spec.shared.push_back({"shared", vocab, spec.stacks[0].hidden});
  spec.head.vocab = vocab;
  spec.head.causal_loss = false;
  if (c.flag("tie_word_embeddings", true)) spec.head.tied_to = "shared.weight";
  return spec;
}

namespace {

ModelSpec t5(const Config& c) { return t5_like(c, {}); }
ModelSpec mt5(const Config& c) { return t5_like(c, {.form = "gated-gelu"}); }
ModelSpec umt5(const Config& c) {
  return t5_like(c, {.form = "gated-gelu", .biases_everywhere = true});
}

// BART and Whisper name their layers alike; BART norms after the sums, Whisper before.
struct BartLike {
  std::string activation;
  double dropout = 0, attention_dropout = 0, activation_dropout = 0;
  bool norm_before = false;
  bool k_bias = true;
};

Attention bart_attention(const BartLike& b, std::int64_t hidden, std::int64_t heads,
                         const std::string& name) {
  Attention attention;
  attention.name = name;
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = hidden / heads;
  attention.o = "out_proj";
  set_biases(attention, true, true);
  attention.k_bias = b.k_bias;
  attention.heads_first = b.norm_before;  // Whisper's, scaled and made contiguous
  attention.dropout = b.attention_dropout;
  attention.fp32_softmax = false;
  return attention;
}

LayerKind bart_layer(const BartLike& b, std::int64_t hidden, std::int64_t heads, std::int64_t width,
                     bool decodes) {
  LayerKind layer{.name = decodes ? "decoder" : "encoder"};
  const auto add = [&](const Body& body, const std::string& norm) {
    Branch branch{.body = body, .dropout = b.dropout};
    (b.norm_before ? branch.before : branch.joined) = layer_norm(norm);
    layer.branches.push_back(std::move(branch));
  };
  Attention attention = bart_attention(b, hidden, heads, "self_attn");
  attention.bidirectional = !decodes;
  add(attention, "self_attn_layer_norm");
  if (decodes) {
    Attention cross = bart_attention(b, hidden, heads, "encoder_attn");
    cross.cross = true;
    add(cross, "encoder_attn_layer_norm");
  }
  Mlp mlp;
  mlp.name = "";
  mlp.width = width;
  mlp.form = MlpForm::plain;
  mlp.activation = b.activation;
  mlp.bias = true;
  mlp.up = "fc1";
  mlp.down = "fc2";
  mlp.inner_dropout = b.activation_dropout;
  add(mlp, "final_layer_norm");
  return layer;
}

Stack bart_stack(const Config& c, const BartLike& b, bool decodes) {
  const std::string side = decodes ? "decoder" : "encoder";
  Stack stack;
  stack.role = decodes ? StackRole::main : StackRole::encoder;
  stack.prefix = "model." + side + ".layers";
  stack.hidden = c.needed("d_model|hidden_size", 1024);
  const std::int64_t heads = c.size(side + "_attention_heads|num_attention_heads", 16);
  static_cast<void>(c.divided("d_model", stack.hidden, side + "_attention_heads", heads));
  const LayerKind layer =
      bart_layer(b, stack.hidden, heads, c.size(side + "_ffn_dim", 4096), decodes);
  Layers all = Layers::of(c.layers(side + "_layers|num_hidden_layers", 12),
                          [&](std::int64_t) { return LayerKind(layer); });
  stack.kinds = std::move(all.kinds);
  stack.order = std::move(all.order);
  return stack;
}

// With what enters it.
Stack bart_side(const Config& c, const BartLike& b, bool decodes) {
  constexpr std::int64_t offset = 2;
  Stack stack = bart_stack(c, b, decodes);
  const std::string at = decodes ? "model.decoder" : "model.encoder";
  stack.input = TokenEmbedding{
      .name = at + ".embed_tokens",
      .table_of = "model.shared",
      .vocab = c.needed("vocab_size|tgt_vocab_size", 50265),
      .width = stack.hidden,
      .scaled = c.flag("scale_embedding", false),
      .shifted = decodes,
      .positions = at + ".embed_positions",
      .position_rows = c.size("max_position_embeddings", 1024) + offset,
      .position_offset = offset,
      .position_numbers = decodes ? PositionNumbers::made : PositionNumbers::per_example,
      .norm = layer_norm(at + ".layernorm_embedding"),
      .dropout_name = at,
      .dropout = b.dropout};
  return stack;
}

BartLike read_bart(const Config& c) {
  return {.activation = c.activation("activation_function", "gelu"),
          .dropout = c.rate("dropout", 0.1),
          .attention_dropout = c.rate("attention_dropout", 0),
          .activation_dropout = c.rate("activation_dropout", 0)};
}

ModelSpec bart_like(const Config& c, const BartLike& b) {
  const std::int64_t vocab = c.needed("vocab_size|tgt_vocab_size", 50265);
  ModelSpec spec;
  for (const bool decodes : {false, true}) spec.stacks.push_back(bart_side(c, b, decodes));
  spec.shared.push_back({"model.shared", vocab, spec.stacks[0].hidden});
  spec.buffers.push_back({"final_logits_bias", {1, vocab}});
  spec.head.vocab = vocab;
  spec.head.causal_loss = false;
  if (c.flag("tie_word_embeddings", true)) {
    spec.head.tied_to = "model.shared.weight";
  } else {
    untie_tables(spec);
  }
  return spec;
}

// BART with norms before the branches, and one after each stack.
ModelSpec mbart_like(const Config& c, BartLike kind) {
  kind.norm_before = true;
  ModelSpec spec = bart_like(c, kind);
  spec.stacks[0].norm = layer_norm("model.encoder.layer_norm");
  spec.stacks[1].norm = layer_norm("model.decoder.layer_norm");
  for (Stack& stack : spec.stacks) {
    for (LayerKind& kind : stack.kinds) {
      for (Branch& branch : kind.branches) {
        if (auto* attention = std::get_if<Attention>(&branch.body)) attention->heads_first = false;
      }
    }
  }
  return spec;
}

}  // namespace

ModelSpec bart(const Config& c) { return bart_like(c, read_bart(c)); }

Stack bart_decoder(const Config& c) { return bart_side(c, read_bart(c), /*decodes=*/true); }

ModelSpec mbart(const Config& c) { return mbart_like(c, read_bart(c)); }

namespace {

// Tables of sines that are parameters, and no norm of what enters.
void set_sines(const Config& c, ModelSpec& spec) {
  for (Stack& stack : spec.stacks) {
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.fixed_positions = true;
    input.position_rows = c.size("max_position_embeddings", 1024);
    input.position_offset = 0;
    input.norm = {};
  }
}

ModelSpec marian(const Config& c) {
  if (!c.flag("share_encoder_decoder_embeddings", true)) {
    c.fail("share_encoder_decoder_embeddings", "only true is supported");
  }
  c.pass_over({"decoder_vocab_size"});  // of tables that are not shared
  ModelSpec spec = bart(c);
  set_sines(c, spec);
  return spec;
}

ModelSpec pegasus(const Config& c) {
  ModelSpec spec = mbart(c);
  set_sines(c, spec);
  return spec;
}

// Learned positions from the table's first row on.
void set_positions(const Config& c, ModelSpec& spec, std::int64_t rows) {
  for (Stack& stack : spec.stacks) {
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.position_numbers = PositionNumbers::made;  // the same for all
    input.position_rows = c.size("max_position_embeddings", rows);
    input.position_offset = 0;
  }
}

ModelSpec blenderbot(const Config& c) {
  ModelSpec spec = mbart(c);
  set_positions(c, spec, 128);
  for (Stack& stack : spec.stacks) std::get<TokenEmbedding>(stack.input).norm = {};
  return spec;
}

ModelSpec blenderbot_small(const Config& c) {
  ModelSpec spec = bart(c);
  set_positions(c, spec, 512);
  return spec;
}

// Mel spectra of 30 seconds into an encoder of 1,500 places; tokens of the decoder are the step's.
ModelSpec whisper(const Config& c) {
  const BartLike b{.activation = c.activation("activation_function", "gelu"),
                   .dropout = c.rate("dropout", 0),
                   .attention_dropout = c.rate("attention_dropout", 0),
                   .activation_dropout = c.rate("activation_dropout", 0),
                   .norm_before = true,
                   .k_bias = false};
  const std::int64_t vocab = c.needed("vocab_size", 51865);
  ModelSpec spec;
  Stack encoder = bart_stack(c, b, /*decodes=*/false);
  encoder.input = AudioStem{.prefix = "model.encoder",
                            .bins = c.size("num_mel_bins", 80),
                            .rows = c.size("max_source_positions", 1500),
                            .positions = "embed_positions",
                            .dropout = b.dropout};
  encoder.norm = layer_norm("model.encoder.layer_norm");
  Stack stack = bart_stack(c, b, /*decodes=*/true);
  stack.input = TokenEmbedding{.name = "model.decoder.embed_tokens",
                               .vocab = vocab,
                               .width = stack.hidden,
                               .shifted = true,
                               .positions = "model.decoder.embed_positions",
                               .position_rows = c.size("max_target_positions", 448),
                               .position_numbers = PositionNumbers::per_example,
                               .dropout_name = "model.decoder",
                               .dropout = b.dropout};
  stack.norm = layer_norm("model.decoder.layer_norm");
  spec.stacks = {std::move(encoder), std::move(stack)};
  spec.head.name = "proj_out";
  spec.head.vocab = vocab;
  spec.head.causal_loss = false;
  const bool tied = c.flag("tie_word_embeddings", true);
  if (tied) spec.head.tied_to = "model.decoder.embed_tokens.weight";
  return spec;
}

}  // namespace

ModelSpec m2m100(const Config& c) {
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    static_cast<void>(c.rate(key, 0.05));  // layers that a step leaves out at random are counted
  }
  BartLike kind = read_bart(c);
  kind.activation = c.activation("activation_function", "relu");
  kind.attention_dropout = c.rate("attention_dropout", 0.1);
  ModelSpec spec = mbart_like(c, kind);
  spec.buffers.clear();
  for (Stack& stack : spec.stacks) {
    auto& input = std::get<TokenEmbedding>(stack.input);
    input.positions.clear();
    input.norm = {};
  }
  return spec;
}

std::vector<Family> encoder_decoder_families() {
  return {{"T5ForConditionalGeneration", "t5", t5},
          {"MT5ForConditionalGeneration", "mt5", mt5},
          {"UMT5ForConditionalGeneration", "umt5", umt5},
          {"BartForConditionalGeneration", "bart", bart},
          {"MBartForConditionalGeneration", "mbart", mbart},
          {"M2M100ForConditionalGeneration", "m2m_100", m2m100},
          {"MarianMTModel", "marian", marian},
          {"PegasusForConditionalGeneration", "pegasus", pegasus},
          {"BlenderbotForConditionalGeneration", "blenderbot", blenderbot},
          {"BlenderbotSmallForConditionalGeneration", "blenderbot-small", blenderbot_small},
          {"PLBartForConditionalGeneration", "plbart", bart},
          {"WhisperForConditionalGeneration", "whisper", whisper}};
}

}  // namespace shardsim::models
