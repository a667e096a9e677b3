// Encoders of text: BERT and its kin. Norms follow the sums; attention sees both ways.
#include "workloads/models/families/encoders.hpp"

#include "workloads/models/families/families.hpp"

namespace shardsim::models {

Attention encoder_attention(const Sizes& n, double dropout) {
  Attention attention;
  attention.name = "attention";
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.head_dim;
  set_biases(attention, true, true);
  attention.dropout = dropout;
  attention.bidirectional = true;
  attention.fp32_softmax = false;
  return attention;
}

LayerKind bert_layer(const Config& c, const Sizes& n) {
  const double dropout = c.rate("hidden_dropout_prob", 0.1);
  Attention attention = encoder_attention(n, c.rate("attention_probs_dropout_prob", 0.1));
  attention.q = "self.query";
  attention.k = "self.key";
  attention.v = "self.value";
  attention.o = "output.dense";
  Mlp mlp;
  mlp.name = "";
  mlp.width = n.width;
  mlp.form = MlpForm::plain;
  mlp.activation = n.activation;
  mlp.bias = true;
  mlp.up = "intermediate.dense";
  mlp.down = "output.dense";
  return {
      .name = "encoder",
      .branches = {{.body = attention,
                    .joined = layer_norm("attention.output.LayerNorm"),
                    .dropout = dropout},
                   {.body = mlp, .joined = layer_norm("output.LayerNorm"), .dropout = dropout}}};
}

TokenEmbedding bert_words(const Config& c, const Sizes& n, const std::string& at, double dropout) {
  return {.name = at + "word_embeddings",
          .vocab = n.vocab,
          .width = n.hidden,
          .positions = at + "position_embeddings",
          .position_rows = c.size("max_position_embeddings", 512),
          .position_numbers = PositionNumbers::stored,
          .norm = layer_norm(at + "LayerNorm"),
          .dropout_name = at + "dropout",
          .dropout = dropout};
}

ModelSpec bert_like(const Config& c, const std::string& prefix, bool roberta, bool may_lack_types) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = "gelu"});
  const LayerKind layer = bert_layer(c, n);
  ModelSpec spec = decoder(n, layer);
  const std::string at = prefix + "embeddings.";
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "encoder.layer";
  stack.norm = {};
  TokenEmbedding input = bert_words(c, n, at, c.rate("hidden_dropout_prob", 0.1));
  input.types = at + "token_type_embeddings";
  input.type_rows = may_lack_types ? c.count("type_vocab_size", 2) : c.size("type_vocab_size", 2);
  if (roberta) {
    input.position_offset = c.count("pad_token_id", 1) + 1;
    input.position_numbers = PositionNumbers::per_example;
    input.types_per_example = true;
  }
  stack.input = input;
  spec.head = {.kind = HeadKind::pooler, .name = prefix + "pooler.dense"};
  return spec;
}

ModelSpec with_masked_head(ModelSpec spec, const Config& c, const std::string& name,
                           const std::string& bias, const std::string& transform,
                           const std::string& norm) {
  const auto& embedding = std::get<TokenEmbedding>(spec.stacks[0].input);
  const bool tied = c.flag("tie_word_embeddings", true);
  spec.head = {.kind = HeadKind::masked,
               .name = name,
               .vocab = embedding.vocab,
               .bias = true,
               .tied_to = tied ? embedding.name + ".weight" : "",
               .transform = transform,
               .activation = "gelu",
               .transform_norm = layer_norm(norm),
               .tied_bias = tied ? bias : ""};
  if (!tied && !bias.empty()) spec.apart.push_back({bias, {embedding.vocab}});  // is not added
  return spec;
}

ModelSpec with_bert_head(ModelSpec spec, const Config& c) {
  spec = with_masked_head(std::move(spec), c, "cls.predictions.decoder", "cls.predictions.bias",
                          "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm");
  spec.head.activation = c.activation("hidden_act", "gelu");
  return spec;
}

ModelSpec with_roberta_head(ModelSpec spec, const Config& c) {
  return with_masked_head(std::move(spec), c, "lm_head.decoder", "lm_head.bias", "lm_head.dense",
                          "lm_head.layer_norm");
}

namespace {

ModelSpec bert(const Config& c) { return bert_like(c, "", /*roberta=*/false); }

ModelSpec bert_masked(const Config& c) {
  return with_bert_head(bert_like(c, "bert.", /*roberta=*/false), c);
}

// BERT with a table of tasks beside that of token types, if a file says so.
ModelSpec ernie_masked(const Config& c) {
  ModelSpec spec = bert_like(c, "ernie.", /*roberta=*/false);
  c.pass_over({"task_type_vocab_size"});
  if (c.flag("use_task_id", false)) {
    auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
    input.tasks = "ernie.embeddings.task_type_embeddings";
    input.task_rows = c.size("task_type_vocab_size", 3);
  }
  return with_bert_head(std::move(spec), c);
}

ModelSpec roberta(const Config& c) { return bert_like(c, "", /*roberta=*/true); }

ModelSpec roberta_masked(const Config& c) {
  return with_roberta_head(bert_like(c, "roberta.", /*roberta=*/true), c);
}

ModelSpec data2vec_masked(const Config& c) {
  return with_roberta_head(bert_like(c, "data2vec_text.", /*roberta=*/true), c);
}

// Norms of what the branches read, in place of those of the sums.
void norm_before(ModelSpec& spec, const std::string& attention, const std::string& mlp,
                 const std::string& last) {
  for (LayerKind& kind : spec.stacks[0].kinds) {
    for (Branch& branch : kind.branches) branch.joined = {};
    kind.branches[0].before = layer_norm(attention);
    kind.branches[1].before = layer_norm(mlp);
  }
  spec.stacks[0].norm = layer_norm(last);
}

ModelSpec roberta_prelayernorm_masked(const Config& c) {
  ModelSpec spec = bert_like(c, "roberta_prelayernorm.", /*roberta=*/true);
  norm_before(spec, "attention.LayerNorm", "intermediate.LayerNorm",
              "roberta_prelayernorm.LayerNorm");
  return with_roberta_head(std::move(spec), c);
}

ModelSpec xlm_roberta_xl_masked(const Config& c) {
  ModelSpec spec = bert_like(c, "roberta.", /*roberta=*/true);
  norm_before(spec, "attention.self_attn_layer_norm", "LayerNorm", "roberta.encoder.LayerNorm");
  spec.stacks[0].kinds[0].branches[1].dropout = 0;  // the class has one behind attention alone
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.norm = {};
  input.type_rows = c.size("type_vocab_size", 1);
  return with_roberta_head(std::move(spec), c);
}

ModelSpec megatron_bert_masked(const Config& c) {
  ModelSpec spec = bert_like(c, "bert.", /*roberta=*/false);
  norm_before(spec, "attention.ln", "ln", "bert.encoder.ln");
  std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body).plain_only = true;
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.norm = {};
  input.types_per_example = true;
  return with_bert_head(std::move(spec), c);
}

// Embeddings may be narrower than the layers; what was replaced is found for each token.
ModelSpec electra_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.width = c.size("embedding_size", 128);
  if (input.width != stack.hidden) {
    input.project = prefix + "embeddings_project";
    input.project_last = true;
  }
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec electra(const Config& c) { return electra_like(c, ""); }

ModelSpec electra_masked(const Config& c) {
  ModelSpec spec = electra_like(c, "electra.");
  const std::int64_t width = std::get<TokenEmbedding>(spec.stacks[0].input).width;
  spec = with_masked_head(std::move(spec), c, "generator_lm_head", "",
                          "generator_predictions.dense", "generator_predictions.LayerNorm");
  spec.head.transform_width = width;
  return spec;
}

ModelSpec electra_pretraining(const Config& c) {
  ModelSpec spec = electra_like(c, "electra.");
  spec.head = {.kind = HeadKind::detection,
               .name = "discriminator_predictions.dense_prediction",
               .vocab = 1,
               .bias = true,
               .transform = "discriminator_predictions.dense",
               .activation = c.activation("hidden_act", "gelu")};
  return spec;
}

// Llama's layers that see both ways.
ModelSpec eurobert_masked(const Config& c) {
  const Sizes n = read_sizes(c, {});
  Attention attention = llama_attention(c, n);
  attention.bidirectional = true;
  Mlp mlp = llama_mlp(n);
  mlp.bias = c.flag("mlp_bias", false);
  c.pass_over({"mask_token_id", "classifier_pooling"});
  ModelSpec spec = decoder(n, llama_layer(n, "full", attention, mlp));
  spec.head.kind = HeadKind::masked;
  spec.head.bias = mlp.bias;
  spec.head.fp32_loss = true;
  return spec;
}

// A product before the logits, of the first token or of all, whose mean counts.
ModelSpec eurobert_sequences(const Config& c) {
  ModelSpec spec = eurobert_masked(c);
  const std::string pooling = c.text("classifier_pooling", "late");
  if (pooling != "late" && pooling != "bos") {
    c.fail("classifier_pooling", "only \"late\" and \"bos\" are supported");
  }
  spec.head = {.kind = HeadKind::classification,
               .name = "classifier",
               .vocab = labels_of(c),
               .bias = true,
               .transform = "dense",
               .activation = "gelu",
               .rows = pooling == "late" ? HeadRows::averaged : HeadRows::first};
  return spec;
}

ModelSpec xlm_roberta_masked(const Config& c) {
  ModelSpec spec = roberta_masked(c);
  spec.head.stands_first = true;
  return spec;
}

// Half of BERT's layers, no token types, names of its own.
ModelSpec distilbert(const Config& c, const std::string& prefix) {
  Sizes n;
  n.hidden = c.needed("dim", 768);
  n.layers = c.layers("n_layers", 6);
  n.heads = n.kv_heads = c.needed("n_heads", 12);
  n.head_dim = c.divided("dim", n.hidden, "n_heads", n.heads);
  n.width = c.needed("hidden_dim", 3072);
  n.vocab = c.needed("vocab_size", 30522);
  n.activation = c.activation("activation", "gelu");
  n.tied = c.flag("tie_word_embeddings", true);
  const double dropout = c.rate("dropout", 0.1);
  c.pass_over({"sinusoidal_pos_embds",                 // how the table of positions starts
               "qa_dropout", "seq_classif_dropout"});  // of other heads
  Attention attention = encoder_attention(n, c.rate("attention_dropout", 0.1));
  attention.q = "q_lin";
  attention.k = "k_lin";
  attention.v = "v_lin";
  attention.o = "out_lin";
  Mlp mlp = plain_mlp(n, "lin1", "lin2");
  mlp.name = "ffn";
  mlp.dropout = dropout;
  ModelSpec spec =
      decoder(n, {.name = "encoder",
                  .branches = {{.body = attention, .joined = layer_norm("sa_layer_norm")},
                               {.body = mlp, .joined = layer_norm("output_layer_norm")}}});
  const std::string at = prefix + "embeddings.";
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "transformer.layer";
  stack.norm = {};
  stack.input = bert_words(c, n, at, dropout);
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec distilbert_alone(const Config& c) { return distilbert(c, ""); }

ModelSpec distilbert_masked(const Config& c) {
  ModelSpec spec = distilbert(c, "distilbert.");
  const auto& embedding = std::get<TokenEmbedding>(spec.stacks[0].input);
  const bool tied = c.flag("tie_word_embeddings", true);
  spec.head = {.kind = HeadKind::masked,
               .name = "vocab_projector",
               .vocab = embedding.vocab,
               .bias = true,
               .tied_to = tied ? embedding.name + ".weight" : "",
               .transform = "vocab_transform",
               .activation = c.activation("activation", "gelu"),
               .transform_norm = layer_norm("vocab_layer_norm")};
  return spec;
}

}  // namespace

std::vector<Family> encoder_families() {
  return {{"BertForMaskedLM", "bert", bert_masked},
          {"BertModel", "bert", bert},
          {"RobertaForMaskedLM", "roberta", roberta_masked},
          {"RobertaModel", "roberta", roberta},
          {"XLMRobertaForMaskedLM", "xlm-roberta", xlm_roberta_masked},
          {"XLMRobertaModel", "xlm-roberta", roberta},
          {"DistilBertForMaskedLM", "distilbert", distilbert_masked},
          {"DistilBertModel", "distilbert", distilbert_alone},
          {"CamembertForMaskedLM", "camembert", xlm_roberta_masked},
          {"Data2VecTextForMaskedLM", "data2vec-text", data2vec_masked},
          {"ElectraForMaskedLM", "electra", electra_masked},
          {"ElectraForPreTraining", "electra", electra_pretraining},
          {"ElectraModel", "electra", electra},
          {"ErnieForMaskedLM", "ernie", ernie_masked},
          {"EuroBertForMaskedLM", "eurobert", eurobert_masked},
          {"EuroBertForSequenceClassification", "eurobert", eurobert_sequences},
          {"MegatronBertForMaskedLM", "megatron-bert", megatron_bert_masked},
          {"RobertaPreLayerNormForMaskedLM", "roberta-prelayernorm", roberta_prelayernorm_masked},
          {"XLMRobertaXLForMaskedLM", "xlm-roberta-xl", xlm_roberta_xl_masked}};
}

}  // namespace shardsim::models
