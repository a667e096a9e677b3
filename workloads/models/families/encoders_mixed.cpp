// Encoders of text whose attention is a sketch: Longformer, SqueezeBERT, ConvBERT; and BERT's
// layers that generate.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// A layer's attention, which is another of each layer.
void set_attention(ModelSpec& spec, const std::function<Mixer(std::int64_t)>& make) {
  Stack& stack = spec.stacks[0];
  const LayerKind usual = stack.kinds.front();
  Layers all = Layers::of(static_cast<std::int64_t>(stack.order.size()), [&](std::int64_t i) {
    LayerKind kind = usual;
    kind.branches[0].body = make(i);
    return kind;
  });
  stack.kinds = std::move(all.kinds);
  stack.order = std::move(all.order);
}

// Windows without tokens of global attention, as masked models have them.
ModelSpec longformer_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/true);
  const auto attention = std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body);
  const auto layers = static_cast<std::int64_t>(spec.stacks[0].order.size());
  const std::vector<std::int64_t> windows = windows_of(c, layers);
  spec.stacks[0].pads_to = *std::max_element(windows.begin(), windows.end());
  c.pass_over({"sep_token_id", "onnx_export"});
  set_attention(spec, [&](std::int64_t i) {
    return Mixer{WindowedAttention{.heads = attention.heads,
                                   .head_dim = attention.head_dim,
                                   .window = windows[static_cast<std::size_t>(i)],
                                   .dropout = attention.dropout}};
  });
  return spec;
}

ModelSpec longformer(const Config& c) { return longformer_like(c, ""); }

ModelSpec longformer_masked(const Config& c) {
  return with_roberta_head(longformer_like(c, "longformer."), c);
}

// Products are convolutions of groups of channels.
ModelSpec squeezebert_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "encoder.layers";
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.types_per_example = true;
  if (c.size("embedding_size", 768) != stack.hidden) {
    c.fail("embedding_size", "has to be hidden_size: the class projects nothing");
  }
  LayerKind& kind = stack.kinds[0];
  const auto attention = std::get<Attention>(kind.branches[0].body);
  const auto mlp = std::get<Mlp>(kind.branches[1].body);
  const auto groups = [&](std::string_view key, std::int64_t otherwise, std::int64_t width) {
    const std::int64_t n = c.size(key, otherwise);
    static_cast<void>(c.divided("hidden_size|intermediate_size", width, key, n));
    return n;
  };
  kind.branches[0].body =
      Mixer{GroupedAttention{.heads = attention.heads,
                             .q_groups = groups("q_groups", 4, stack.hidden),
                             .k_groups = groups("k_groups", 4, stack.hidden),
                             .v_groups = groups("v_groups", 4, stack.hidden),
                             .out_groups = groups("post_attention_groups", 1, stack.hidden),
                             .dropout = attention.dropout}};
  kind.branches[0].joined.name = "post_attention.layernorm";
  kind.branches[1].body = Mixer{GroupedMlp{.width = mlp.width,
                                           .activation = mlp.activation,
                                           .up_groups = groups("intermediate_groups", 4, mlp.width),
                                           .down_groups = groups("output_groups", 4, mlp.width)}};
  kind.branches[1].joined.name = "output.layernorm";
  return spec;
}

ModelSpec squeezebert(const Config& c) { return squeezebert_like(c, ""); }

ModelSpec squeezebert_masked(const Config& c) {
  ModelSpec spec = with_bert_head(squeezebert_like(c, "transformer."), c);
  spec.head.idle_pooler = "transformer.pooler.dense";  // which the class has in any case
  return spec;
}

// Half of the heads attend, the others convolve.
ModelSpec convbert_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.types_stored = true;
  input.width = c.size("embedding_size", 768);
  if (input.width != stack.hidden) {
    input.project = prefix + "embeddings_project";
    input.project_last = true;
  }
  if (c.size("num_groups", 1) != 1) c.fail("num_groups", "only 1 is supported");
  const auto attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  const std::int64_t ratio = c.size("head_ratio", 2);
  const std::int64_t heads = std::max<std::int64_t>(attention.heads / ratio, 1);
  const std::int64_t width =
      c.divided("hidden_size", stack.hidden, "num_attention_heads", heads) / 2;
  if (2 * heads * width != stack.hidden) c.fail("head_ratio", "leaves heads of an odd width");
  set_attention(spec, [&](std::int64_t /*i*/) {
    return Mixer{ConvolvedAttention{.heads = heads,
                                    .head_dim = width,
                                    .kernel = c.size("conv_kernel_size", 9),
                                    .dropout = attention.dropout}};
  });
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec convbert(const Config& c) { return convbert_like(c, ""); }

ModelSpec convbert_masked(const Config& c) {
  ModelSpec spec = convbert_like(c, "convbert.");
  const std::int64_t width = std::get<TokenEmbedding>(spec.stacks[0].input).width;
  spec = with_masked_head(std::move(spec), c, "generator_lm_head", "",
                          "generator_predictions.dense", "generator_predictions.LayerNorm");
  spec.head.transform_width = width;
  return spec;
}

// BERT without token types; where the file calls it a decoder, tokens see those before them.
ModelSpec bert_generation(const Config& c) {
  ModelSpec spec = bert_like(c, "bert.", /*roberta=*/false);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.types.clear();
  auto& attention = std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body);
  attention.bidirectional = !c.flag("is_decoder", false);
  if (c.flag("add_cross_attention", false)) {
    c.fail("add_cross_attention", "beside an encoder is not supported");
  }
  spec = with_masked_head(std::move(spec), c, "lm_head.decoder", "lm_head.bias", "", "");
  spec.head.transform_norm = {};
  spec.head.shifted = spec.head.fp32_loss = true;
  return spec;
}

// Layers around a narrow stream. Defaults: transformers 5.23, configuration_mobilebert.py.
ModelSpec mobilebert_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  if (!c.flag("use_bottleneck", true)) c.fail("use_bottleneck", "only true is supported");
  const std::string type = c.text("normalization_type", "no_norm");
  if (type != "no_norm" && type != "layer_norm") {
    c.fail("normalization_type", "is neither \"no_norm\" nor \"layer_norm\"");
  }
  const NormKind norm = type == "no_norm" ? NormKind::scale : NormKind::layer;
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.width = c.size("embedding_size", 128);
  input.neighbours = c.flag("trigram_input", true);
  input.norm.kind = norm;
  input.dropout = c.rate("hidden_dropout_prob", 0);
  input.types_per_example = true;
  if (input.neighbours || input.width != stack.hidden) {
    input.project = prefix + "embeddings.embedding_transformation";
    input.project_bias = true;
  } else {  // the class has it in any case
    const std::string idle = prefix + "embeddings.embedding_transformation";
    spec.apart.push_back({idle + ".weight", {stack.hidden, input.width}});
    spec.apart.push_back({idle + ".bias", {stack.hidden}});
  }
  const auto attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  const BottleneckLayer layer{.heads = attention.heads,
                              .narrow = c.size("intra_bottleneck_size", 128),
                              .width = std::get<Mlp>(stack.kinds[0].branches[1].body).width,
                              .mlps = c.size("num_feedforward_networks", 4),
                              .activation = c.activation("hidden_act", "relu"),
                              .norm = norm,
                              .shares_keys = c.flag("key_query_shared_bottleneck", true),
                              .narrow_attention = c.flag("use_bottleneck_attention", false),
                              .dropout = c.rate("hidden_dropout_prob", 0),
                              .attention_dropout = attention.dropout};
  static_cast<void>(
      c.divided("intra_bottleneck_size", layer.narrow, "num_attention_heads", layer.heads));
  if (c.size("true_hidden_size", layer.narrow) != layer.narrow) {
    c.fail("true_hidden_size", "is not intra_bottleneck_size");
  }
  if (!layer.shares_keys && !layer.narrow_attention) {
    c.fail("key_query_shared_bottleneck", "the class's queries cannot read the wide stream");
  }
  Branch whole;
  whole.body = Mixer{layer};
  whole.replaces = true;
  stack.kinds[0].branches.assign(1, whole);
  if (!c.flag("classifier_activation", true)) spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec mobilebert(const Config& c) { return mobilebert_like(c, ""); }

ModelSpec mobilebert_masked(const Config& c) {
  ModelSpec spec = with_bert_head(mobilebert_like(c, "mobilebert."), c);
  spec.head.activation = c.activation("hidden_act", "relu");
  const auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  if (!c.flag("tie_word_embeddings", true)) c.fail("tie_word_embeddings", "has to be true");
  if (input.width < spec.stacks[0].hidden) spec.head.more_rows = "cls.predictions.dense";
  return spec;
}

// Shapes and sounds of characters beside them. Defaults: configuration_roc_bert.py.
ModelSpec roc_bert_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  if (!c.flag("concat_input", true)) c.fail("concat_input", "only true is supported");
  const std::string at = prefix + "embeddings.";
  input.project = at + "map_inputs_layer";
  input.project_bias = true;
  const auto add = [&](const char* flag, const char* table, const char* rows, std::int64_t n,
                       const char* width, std::int64_t w) {
    const BesideTable beside{at + table, c.size(rows, n), c.size(width, w)};
    if (c.flag(flag, true)) {
      input.beside.push_back(beside);
    } else {
      spec.apart.push_back({beside.name + ".weight", {beside.rows, beside.width}, true});
    }
  };
  constexpr std::int64_t shapes = 24858, sounds = 910;
  add("enable_shape", "shape_embed", "shape_vocab_size", shapes, "shape_embed_dim", 512);
  add("enable_pronunciation", "pronunciation_embed", "pronunciation_vocab_size", sounds,
      "pronunciation_embed_dim", 768);
  return spec;
}

ModelSpec roc_bert(const Config& c) { return roc_bert_like(c, ""); }

ModelSpec roc_bert_masked(const Config& c) {
  return with_bert_head(roc_bert_like(c, "roc_bert."), c);
}

// Attention to all tokens, and values along the sequence. Landmarks fewer than segments are
// inverted in fp32 among products in bf16, which PyTorch refuses.
// Defaults: configuration_nystromformer.py.
ModelSpec nystromformer_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  if (c.size("num_landmarks", 64) != c.size("segment_means_seq_len", 64)) {
    c.fail("num_landmarks",
           "only segment_means_seq_len is supported: the class multiplies fp32 by bf16 otherwise");
  }
  c.pass_over({"inv_coeff_init_option", "attention_probs_dropout_prob"});
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  constexpr std::int64_t offset = 2;
  input.position_rows = c.size("max_position_embeddings", 510) + offset;
  input.position_offset = offset;
  input.types_stored = true;
  auto& branches = stack.kinds[0].branches;
  const auto attention = std::get<Attention>(branches[0].body);
  branches[0].body =
      Mixer{FilteredAttention{.heads = attention.heads,
                              .head_dim = attention.head_dim,
                              .taps = c.optional_size("conv_kernel_size", 65).value_or(0)}};
  std::get<Mlp>(branches[1].body).activation = c.activation("hidden_act", "gelu_new");
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec nystromformer(const Config& c) { return nystromformer_like(c, ""); }

ModelSpec nystromformer_masked(const Config& c) {
  ModelSpec spec = with_bert_head(nystromformer_like(c, "nystromformer."), c);
  spec.head.activation = c.activation("hidden_act", "gelu_new");
  return spec;
}

}  // namespace

std::vector<Family> mixed_encoder_families() {
  return {{"MobileBertForMaskedLM", "mobilebert", mobilebert_masked},
          {"MobileBertModel", "mobilebert", mobilebert},
          {"RoCBertForMaskedLM", "roc_bert", roc_bert_masked},
          {"RoCBertModel", "roc_bert", roc_bert},
          {"LongformerForMaskedLM", "longformer", longformer_masked},
          {"LongformerModel", "longformer", longformer},
          {"SqueezeBertForMaskedLM", "squeezebert", squeezebert_masked},
          {"SqueezeBertModel", "squeezebert", squeezebert},
          {"ConvBertForMaskedLM", "convbert", convbert_masked},
          {"ConvBertModel", "convbert", convbert},
          {"NystromformerForMaskedLM", "nystromformer", nystromformer_masked},
          {"NystromformerModel", "nystromformer", nystromformer},
          {"BertGenerationDecoder", "bert-generation", bert_generation}};
}

}  // namespace shardsim::models
