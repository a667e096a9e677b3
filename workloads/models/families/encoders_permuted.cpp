// XLM, FlauBERT and XLNet: encoders of text of the time after BERT.
#include <string>
#include <utility>

#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Of heads, tokenizers and adaptive softmaxes.
void pass_over_other_uses(const Config& c) {
  c.pass_over({"embed_init_std",
               "sinusoidal_embeddings",
               "use_lang_emb",
               "lang_id",
               "mask_index",
               "mask_token_id",
               "unk_index",
               "bos_index",
               "eos_index",
               "pad_index",
               "start_n_top",
               "end_n_top",
               "summary_type",
               "summary_use_proj",
               "summary_activation",
               "summary_proj_to_labels",
               "summary_first_dropout",
               "layerdrop",
               "id2lang",
               "lang2id",
               "max_vocab",
               "min_count",
               "asm_cutoffs",
               "asm_div_value"});
}

// Modules of all layers lie in four lists; what is padding is set to zero behind each layer.
// Defaults: transformers 5.23, configuration_xlm.py.
ModelSpec xlm_like(const Config& c, const std::string& prefix) {
  Sizes n;
  n.hidden = c.needed("emb_dim|hidden_size", 2048);
  n.layers = c.layers("n_layers|num_hidden_layers", 12);
  n.heads = n.kv_heads = c.needed("n_heads|num_attention_heads", 16);
  n.head_dim = c.divided("emb_dim", n.hidden, "n_heads", n.heads);
  n.width = 4 * n.hidden;
  n.vocab = c.needed("vocab_size|n_words", 30145);
  n.activation = c.flag("gelu_activation", true) ? "gelu" : "relu";
  n.norm = NormKind::layer;
  if (c.flag("asm", false)) c.fail("asm", "an adaptive softmax is not supported");
  if (!c.flag("is_encoder", true)) c.fail("is_encoder", "the class is an encoder alone");
  if (c.flag("pre_norm", false)) c.fail("pre_norm", "norms before the branches are not supported");
  pass_over_other_uses(c);
  const double dropout = c.rate("dropout", 0.1);
  Mlp mlp = plain_mlp(n, "lin1", "lin2");
  mlp.name = "ffns.{}";
  mlp.dropout = dropout;
  const Mixer attention{PaddedAttention{.name = "attentions.{}",
                                        .heads = n.heads,
                                        .head_dim = n.head_dim,
                                        .causal = c.flag("causal", false),
                                        .dropout = c.rate("attention_dropout", 0.1)}};
  ModelSpec spec = decoder(
      n,
      {.name = "encoder",
       .branches = {{.body = attention, .joined = layer_norm("layer_norm1.{}"), .dropout = dropout},
                    {.body = mlp, .joined = layer_norm("layer_norm2.{}"), .masked = true}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
  stack.numbered_inside = true;
  stack.norm = {};
  stack.input = TokenEmbedding{.name = prefix + "embeddings",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .positions = prefix + "position_embeddings",
                               .position_rows = c.size("max_position_embeddings", 512),
                               .position_numbers = PositionNumbers::stored,
                               .norm = layer_norm(prefix + "layer_norm_emb"),
                               .dropout = dropout,
                               .masked = true};
  const std::int64_t languages = c.size("n_langs", 1);
  if (languages > 1 && c.flag("use_lang_emb", true)) {
    // Of a step that is told no languages nobody looks them up.
    spec.apart.push_back(
        {prefix + "lang_embeddings.weight", {languages, n.hidden}, /*embedding=*/true});
  }
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec xlm(const Config& c) { return xlm_like(c, ""); }

ModelSpec xlm_masked(const Config& c) {
  ModelSpec spec = with_masked_head(xlm_like(c, "transformer."), c, "pred_layer.proj", "", "", "");
  spec.head.transform_norm = {};
  return spec;
}

// "first" of "summary_type", straight to the labels.
ModelSpec xlm_sequences(const Config& c) {
  ModelSpec spec = xlm_like(c, "transformer.");
  if (c.text("summary_type", "first") != "first" || !c.flag("summary_use_proj", true) ||
      !c.flag("summary_proj_to_labels", true) || c.given("summary_activation")) {
    c.fail("summary_type", "only the class's own summary is supported");
  }
  spec.head = {.kind = HeadKind::classification,
               .name = "sequence_summary.summary",
               .vocab = labels_of(c),
               .bias = true,
               .dropout = c.rate("summary_first_dropout", 0.1)};
  return spec;
}

// Defaults: configuration_xlnet.py. Steps of whole sequences, without memories and permutations.
ModelSpec xlnet_like(const Config& c, const std::string& prefix) {
  Sizes n;
  n.hidden = c.needed("d_model|hidden_size", 1024);
  n.layers = c.layers("n_layer|num_hidden_layers", 24);
  n.heads = n.kv_heads = c.needed("n_head|num_attention_heads", 16);
  n.head_dim = c.size("d_head", c.divided("d_model", n.hidden, "n_head", n.heads));
  n.width = c.needed("d_inner", 4096);
  n.vocab = c.needed("vocab_size|n_token", 32000);
  n.activation = c.activation("ff_activation", "gelu");
  if (c.text("attn_type", "bi") != "bi") c.fail("attn_type", "only \"bi\" is supported");
  if (c.flag("bi_data", false)) c.fail("bi_data", "only false is supported");
  if (c.flag("use_mems_train", false)) c.fail("use_mems_train", "only false is supported");
  c.pass_over({"mem_len", "reuse_len", "use_mems_eval", "clamp_len", "same_length", "untie_r",
               "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout",
               "start_n_top", "end_n_top"});
  const double dropout = c.rate("dropout", 0.1);
  Mlp mlp = plain_mlp(n, "layer_1", "layer_2");
  mlp.name = "ff";
  mlp.inner_dropout = mlp.dropout = dropout;
  const Mixer attention{
      RelativeAttention{.heads = n.heads, .head_dim = n.head_dim, .dropout = dropout}};
  ModelSpec spec = decoder(
      n, {.name = "encoder",
          .branches = {
              {.body = attention, .joined = layer_norm("rel_attn.layer_norm"), .dropout = dropout},
              {.body = mlp, .joined = layer_norm("ff.layer_norm")}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "layer";
  stack.norm = {};
  stack.dropout = dropout;
  stack.input = TokenEmbedding{.name = prefix + "word_embedding",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .dropout = dropout,
                               .tokens_first = true};
  spec.apart.push_back({prefix + "mask_emb", {1, 1, n.hidden}});
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec xlnet(const Config& c) { return xlnet_like(c, ""); }

ModelSpec xlnet_language(const Config& c) {
  ModelSpec spec = with_masked_head(xlnet_like(c, "transformer."), c, "lm_loss", "", "", "");
  spec.head.transform_norm = {};
  return spec;
}

// The last token, through a product and tanh.
ModelSpec xlnet_sequences(const Config& c) {
  ModelSpec spec = xlnet_like(c, "transformer.");
  if (c.text("summary_type", "last") != "last" || !c.flag("summary_use_proj", true)) {
    c.fail("summary_type", "only the class's own summary is supported");
  }
  spec.stacks[0].picks_last = true;
  spec.head = {.kind = HeadKind::classification,
               .name = "logits_proj",
               .vocab = labels_of(c),
               .bias = true,
               .transform = "sequence_summary.summary",
               .activation = c.text("summary_activation", "tanh"),
               .rows = HeadRows::each,
               .dropout = c.rate("summary_last_dropout", 0.1)};
  return spec;
}

}  // namespace

std::vector<Family> permuted_encoder_families() {
  return {{"XLMWithLMHeadModel", "xlm", xlm_masked},
          {"XLMModel", "xlm", xlm},
          {"XLMForSequenceClassification", "xlm", xlm_sequences},
          {"FlaubertWithLMHeadModel", "flaubert", xlm_masked},
          {"FlaubertModel", "flaubert", xlm},
          {"FlaubertForSequenceClassification", "flaubert", xlm_sequences},
          {"XLNetLMHeadModel", "xlnet", xlnet_language},
          {"XLNetModel", "xlnet", xlnet},
          {"XLNetForSequenceClassification", "xlnet", xlnet_sequences}};
}

}  // namespace shardsim::models
