// Encoders of 2025 and 2026: UltraBERT of text, ESM C of proteins.
//
// Names, rates and defaults as in transformers 5.23, modeling_ultrabert.py and modeling_esmc.py.
#include <string>
#include <vector>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

// Llama's layers that see both ways, two of three of them windows.
ModelSpec ultrabert_masked(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  attention.bidirectional = true;
  const std::int64_t radius = c.count("sliding_window", 128);
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  constexpr std::int64_t full_each = 3;
  const auto types = layer_types(c, n.layers, [](std::int64_t i) {
    return std::string((i + 1) % full_each == 0 ? "full_attention" : "sliding_attention");
  });
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const bool full = is_full(types, i);
                             attention.window = full ? 0 : 2 * radius + 1;
                             attention.rotary.table = full ? "rotary" : "rotary of windows";
                             return llama_layer(n, full ? "full" : "windowed", attention, mlp);
                           }));
  c.pass_over({"classifier_dropout", "classifier_pooling"});
  spec.head = {.kind = HeadKind::masked,
               .name = "head.decoder",
               .vocab = n.vocab,
               .transform = "head.linear1",
               .transform_bias = false,
               .transform_width = c.size("prediction_head_size", 768),
               .activation = "gelu_pytorch_tanh",
               .second_transform = "head.linear2",
               .fp32_loss = true};
  set_tied(spec, n.tied);
  return spec;
}

ModelSpec layers_alone(ModelSpec spec, const std::string& root) {
  replace_root(spec, root, "");
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec ultrabert(const Config& c) { return layers_alone(ultrabert_masked(c), "model."); }

ModelSpec ultrabert_sequences(const Config& c) {
  ModelSpec spec = ultrabert_masked(c);
  if (c.text("classifier_pooling", "cls") != "cls") {
    c.fail("classifier_pooling", "only \"cls\" is supported");
  }
  spec.head = classifier_of(c, "classifier", HeadRows::first, c.rate("classifier_dropout", 0));
  return spec;
}

ModelSpec ultrabert_tokens(const Config& c) {
  ModelSpec spec = ultrabert_masked(c);
  spec.head = classifier_of(c, "classifier", HeadRows::each, c.rate("classifier_dropout", 0));
  return spec;
}

ModelSpec ultrabert_answers(const Config& c) {
  ModelSpec spec = ultrabert_masked(c);
  spec.head = head_of_answers(0);
  return spec;
}

// Llama's layers that see both ways, with layer norms, of queries and keys, too; branches are
// scaled.
ModelSpec esmc_masked(const Config& c) {
  Sizes n = read_sizes(c, {});
  n.norm = NormKind::layer;
  if (n.kv_heads != n.heads) c.fail("num_key_value_heads", "has to be num_attention_heads");
  c.pass_over({"mask_token_id", "classifier_dropout", "tie_word_embeddings"});
  Attention attention = llama_attention(c, n);
  attention.bidirectional = true;
  attention.q_norm = {NormKind::layer, "q_norm"};
  attention.k_norm = {NormKind::layer, "k_norm"};
  attention.norm_whole = true;
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  LayerKind layer = llama_layer(n, "encoder", attention, mlp);
  for (Branch& branch : layer.branches) {
    branch.before.bias = true;
    branch.multiplied = true;
  }
  ModelSpec spec = decoder(n, layer);
  replace_root(spec, "model.", "esmc.");
  spec.head = {.kind = HeadKind::masked,
               .name = "lm_head.decoder",
               .vocab = n.vocab,
               .bias = true,
               .transform = "lm_head.dense",
               .activation = "gelu",
               .transform_norm = layer_norm("lm_head.layer_norm"),
               .fp32_loss = true};
  return spec;
}

ModelSpec esmc(const Config& c) { return layers_alone(esmc_masked(c), "esmc."); }

ModelSpec esmc_sequences(const Config& c) {
  ModelSpec spec = esmc_masked(c);
  const double dropout = c.rate("classifier_dropout", 0.1);
  spec.head = classifier_of(c, "classifier.out_proj", HeadRows::first, dropout);
  spec.head.transform = "classifier.dense";
  spec.head.activation = "tanh";
  spec.head.input_dropout = dropout;
  return spec;
}

ModelSpec esmc_tokens(const Config& c) {
  ModelSpec spec = esmc_masked(c);
  spec.head = classifier_of(c, "score", HeadRows::each, c.rate("classifier_dropout", 0.1));
  spec.head.fp32_loss = true;
  return spec;
}

}  // namespace

std::vector<Family> recent_encoder_families() {
  return {{"UltrabertForMaskedLM", "ultrabert", ultrabert_masked},
          {"UltrabertModel", "ultrabert", ultrabert},
          {"UltrabertForSequenceClassification", "ultrabert", ultrabert_sequences},
          {"UltrabertForTokenClassification", "ultrabert", ultrabert_tokens},
          {"UltrabertForQuestionAnswering", "ultrabert", ultrabert_answers},
          {"EsmcForMaskedLM", "esmc", esmc_masked},
          {"EsmcModel", "esmc", esmc},
          {"EsmcForSequenceClassification", "esmc", esmc_sequences},
          {"EsmcForTokenClassification", "esmc", esmc_tokens}};
}

}  // namespace shardsim::models
