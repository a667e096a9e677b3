// ModernBERT (arXiv:2412.13663), an encoder, and the decoder of its kin (Ettin, arXiv:2507.11412).
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

Sizes modernbert_sizes(const Config& c) {
  Sizes n =
      read_sizes(c, {.tied = true, .activation = "gelu", .activation_keys = "hidden_activation"});
  n.norm = NormKind::layer;
  return n;
}

// Every so many layers one sees all; the first has no norm before its attention. `head` is the
// module before the logits.
ModelSpec modernbert_like(const Config& c, const Sizes& n, Attention attention, std::int64_t window,
                          const std::string& head) {
  const bool norm_bias = c.flag("norm_bias", false);
  attention.name = "attn";
  attention.o = "Wo";
  Mlp mlp = llama_mlp(n);
  mlp.form = MlpForm::fused_gate;
  mlp.up = "Wi";
  mlp.down = "Wo";
  mlp.bias = c.flag("mlp_bias", false);
  mlp.inner_dropout = c.rate("mlp_dropout", 0);
  const std::int64_t period = c.size("global_attn_every_n_layers", 3);
  const auto types = layer_types(c, n.layers, [&](std::int64_t i) {
    return std::string(i % period == 0 ? "full_attention" : "sliding_attention");
  });
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                const bool full = is_full(types, i);
                attention.window = full ? 0 : window;
                attention.rotary.table = full ? "rotary" : "rotary of windows";
                LayerKind layer{
                    .name = full ? "full" : "windowed",
                    .branches = {{.before = {n.norm, "attn_norm", norm_bias}, .body = attention},
                                 {.before = {n.norm, "mlp_norm", norm_bias}, .body = mlp}}};
                if (i == 0) layer.branches[0].before = {};
                return layer;
              }));
  spec.stacks[0].norm = {n.norm, "model.final_norm", norm_bias};
  spec.stacks[0].input = TokenEmbedding{.name = "model.embeddings.tok_embeddings",
                                        .vocab = n.vocab,
                                        .width = n.hidden,
                                        .norm = {n.norm, "model.embeddings.norm", norm_bias},
                                        .dropout = c.rate("embedding_dropout", 0)};
  spec.head = {.kind = HeadKind::masked,
               .name = "decoder",
               .vocab = n.vocab,
               .bias = c.flag("decoder_bias", true),
               .transform = head + ".dense",
               .transform_bias = c.flag("classifier_bias", false),
               .activation = c.activation("classifier_activation", "gelu"),
               .transform_norm = {n.norm, head + ".norm", norm_bias},
               .fp32_loss = true};
  set_tied(spec, n.tied);
  return spec;
}

ModelSpec modernbert(const Config& c) {
  const Sizes n = modernbert_sizes(c);
  Attention attention = llama_attention(c, n);
  attention.bidirectional = true;
  attention.out_dropout = attention.dropout;
  attention.form = QkvForm::fused;
  attention.qkv = "Wqkv";
  return modernbert_like(c, n, attention, c.count("local_attention", 128), "head");
}

ModelSpec modernbert_decoder(const Config& c) {
  const Sizes n = modernbert_sizes(c);
  Attention attention = llama_attention(c, n);
  attention.out_dropout = attention.dropout;
  attention.rotary.by_example = true;
  c.pass_over({"sliding_window"});  // half of local_attention
  ModelSpec spec = modernbert_like(c, n, attention, c.count("local_attention", 128) / 2, "lm_head");
  spec.head.shifted = true;
  return spec;
}

// Logits of all tokens, of which the last that is no padding counts.
ModelSpec modernbert_decoder_sequences(const Config& c) {
  ModelSpec spec = modernbert_decoder(c);
  Head head{.kind = HeadKind::classification,
            .name = "classifier",
            .vocab = labels_of(c),
            .bias = c.flag("classifier_bias", false),
            .transform = "head.dense",
            .transform_bias = spec.head.transform_bias,
            .activation = spec.head.activation,
            .transform_norm = spec.head.transform_norm,
            .rows = HeadRows::picked,
            .dropout = c.rate("classifier_dropout", 0)};
  head.transform_norm.name = "head.norm";
  spec.head = std::move(head);
  return spec;
}

}  // namespace

std::vector<Family> modernbert_families() {
  return {{"ModernBertForMaskedLM", "modernbert", modernbert},
          {"ModernBertDecoderForCausalLM", "modernbert-decoder", modernbert_decoder},
          {"ModernBertDecoderForSequenceClassification", "modernbert-decoder",
           modernbert_decoder_sequences}};
}

}  // namespace shardsim::models
