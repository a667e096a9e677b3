// More encoders of text: ALBERT, MPNet, GTE, Nomic BERT, ESM, RoFormer, RemBERT.
#include "base/json.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

LayerKind albert_layer(const Config& c, const Sizes& n) {
  const double dropout = c.rate("hidden_dropout_prob", 0);
  Attention attention = encoder_attention(n, c.rate("attention_probs_dropout_prob", 0));
  attention.q = "query";
  attention.k = "key";
  attention.v = "value";
  attention.o = "dense";
  Mlp mlp = plain_mlp(n, "ffn", "ffn_output");
  mlp.name = "";
  return {.name = "encoder",
          .branches = {
              {.body = attention, .joined = layer_norm("attention.LayerNorm"), .dropout = dropout},
              {.body = mlp, .joined = layer_norm("full_layer_layer_norm")}}};
}

// A few groups of layers, each gone through again and again; embeddings are narrower.
ModelSpec albert_like(const Config& c, const std::string& prefix) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = "gelu_new"});
  const std::int64_t groups = c.size("num_hidden_groups", 1);
  const std::int64_t inner = c.size("inner_group_num", 1);
  c.pass_over({"classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type",
               "num_memory_blocks", "layers_to_keep"});
  Sizes all = n;
  all.layers = n.layers * inner;
  ModelSpec spec = decoder(all, albert_layer(c, n));
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "encoder.albert_layer_groups";
  for (std::int64_t i = 0; i < n.layers; ++i) {
    for (std::int64_t k = 0; k < inner; ++k) {
      stack.modules.push_back(stack.prefix + "." + std::to_string(i * groups / n.layers) +
                              ".albert_layers." + std::to_string(k));
    }
  }
  stack.norm = {};
  const std::string at = prefix + "embeddings.";
  TokenEmbedding input = bert_words(c, n, at, c.rate("hidden_dropout_prob", 0));
  input.width = c.size("embedding_size", 128);
  input.types = at + "token_type_embeddings";
  input.type_rows = c.size("type_vocab_size", 2);
  input.project = prefix + "encoder.embedding_hidden_mapping_in";
  input.project_last = true;
  stack.input = input;
  spec.head = {.kind = HeadKind::pooler, .name = prefix + "pooler"};
  return spec;
}

ModelSpec albert(const Config& c) { return albert_like(c, ""); }

ModelSpec albert_masked(const Config& c) {
  ModelSpec spec = albert_like(c, "albert.");
  const std::int64_t width = std::get<TokenEmbedding>(spec.stacks[0].input).width;
  spec = with_masked_head(std::move(spec), c, "predictions.decoder", "predictions.bias",
                          "predictions.dense", "predictions.LayerNorm");
  spec.head.transform_width = width;
  spec.head.activation = c.activation("hidden_act", "gelu_new");
  return spec;
}

// A bias of distances that all layers share; scores multiplied out.
ModelSpec mpnet_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/true, /*may_lack_types=*/true);
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.types.clear();
  input.position_offset = 2;  // the class's padding_idx is 1
  c.pass_over({"type_vocab_size"});
  Attention& attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  attention.name = "attention.attn";
  attention.q = "q";
  attention.k = "k";
  attention.v = "v";
  attention.o = "o";
  attention.plain_only = true;
  attention.mask = ScoreMask::relative;
  stack.kinds[0].branches[0].joined.name = "attention.LayerNorm";
  stack.distances = DistanceTable{prefix + "encoder.relative_attention_bias",
                                  c.size("relative_attention_num_buckets", 32), attention.heads};
  return spec;
}

ModelSpec mpnet(const Config& c) { return mpnet_like(c, ""); }
ModelSpec mpnet_masked(const Config& c) { return with_roberta_head(mpnet_like(c, "mpnet."), c); }

// Rotary positions and gated MLPs, norms of the sums; `biases` of all but gate and up.
ModelSpec rotary_encoder(const Config& c, const std::string& prefix, bool biases, double dropout,
                         std::string_view activation, std::int64_t types) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = activation});
  dropout = c.rate("hidden_dropout_prob", dropout);
  Attention attention = encoder_attention(n, c.rate("attention_probs_dropout_prob", 0));
  attention.name = "self_attn";
  set_biases(attention, biases, biases);
  attention.rotary.dims = n.head_dim;
  Mlp mlp = llama_mlp(n);
  mlp.down_bias = biases;
  mlp.inner_dropout = biases ? dropout : 0;
  ModelSpec spec = decoder(
      n, {.name = "encoder",
          .branches = {
              {.body = attention,
               .joined = layer_norm("post_attention_layernorm"),
               .dropout = dropout},
              {.body = mlp, .joined = layer_norm("post_mlp_layernorm"), .dropout = dropout}}});
  const std::string at = prefix + "embeddings.";
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "layers";
  stack.norm = {};
  // GTE alone has no table where there are none.
  const std::int64_t type_rows =
      biases ? c.count("type_vocab_size", types) : c.size("type_vocab_size", types);
  stack.input = TokenEmbedding{.name = at + "word_embeddings",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .types = type_rows > 0 ? at + "token_type_embeddings" : "",
                               .type_rows = type_rows,
                               .types_per_example = true,
                               .norm = layer_norm(at + "LayerNorm"),
                               .dropout_name = at + "dropout",
                               .dropout = dropout};
  spec.head = {.kind = HeadKind::pooler, .name = prefix + "pooler.dense"};
  return spec;
}

ModelSpec gte_like(const Config& c, const std::string& prefix) {
  return rotary_encoder(c, prefix, /*biases=*/true, 0.1, "gelu", 1);
}
ModelSpec without_head(ModelSpec spec) {
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec gte(const Config& c) { return without_head(gte_like(c, "")); }
ModelSpec gte_masked(const Config& c) {
  return with_masked_head(gte_like(c, "gte."), c, "lm_head.decoder", "", "lm_head.dense",
                          "lm_head.layer_norm");
}

ModelSpec nomic_like(const Config& c, const std::string& prefix) {
  return rotary_encoder(c, prefix, /*biases=*/false, 0, "silu", 2);
}
ModelSpec nomic_bert(const Config& c) { return without_head(nomic_like(c, "")); }
ModelSpec nomic_bert_masked(const Config& c) {
  ModelSpec spec = with_bert_head(nomic_like(c, "nomic_bert."), c);
  spec.head.transform_norm.name = "cls.predictions.transform.layer_norm";
  spec.head.activation = c.activation("hidden_act", "silu");
  return spec;
}

// XLM-RoBERTa with rotary positions, under newer names.
ModelSpec jina_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = rotary_encoder(c, prefix, /*biases=*/true, 0.1, "gelu", 1);
  const Sizes n = read_sizes(c, {.activation = "gelu"});
  LayerKind& layer = spec.stacks[0].kinds[0];
  std::get<Attention>(layer.branches[0].body).dropout = c.rate("attention_probs_dropout_prob", 0.1);
  layer.branches[1].body = plain_mlp(n, "fc1", "fc2");
  return spec;
}
ModelSpec jina_embeddings_v3(const Config& c) { return jina_like(c, ""); }
ModelSpec jina_embeddings_v3_masked(const Config& c) {
  ModelSpec spec = with_roberta_head(jina_like(c, "roberta."), c);
  spec.head.stands_first = true;
  return spec;
}

// BERT with norms before; a head for contacts is there and does not run.
ModelSpec esm_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/true, /*may_lack_types=*/true);
  c.pass_over({"mask_token_id", "token_dropout", "is_folding_model", "esmfold_config", "vocab_list",
               "type_vocab_size", "hidden_act"});
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.types.clear();
  input.norm = {};
  input.dropout = 0;
  if (c.flag("emb_layer_norm_before", false)) {
    input.norm = layer_norm(prefix + "embeddings.layer_norm");
  }
  const bool turned = c.text("position_embedding_type", "absolute") == "rotary";
  LayerKind& layer = stack.kinds[0];
  Attention& attention = std::get<Attention>(layer.branches[0].body);
  if (turned) {
    input.positions.clear();
    attention.rotary.dims = attention.head_dim;
  }
  for (Branch& branch : layer.branches) branch.joined = {};
  layer.branches[0].before = layer_norm("attention.LayerNorm");
  layer.branches[1].before = layer_norm("LayerNorm");
  std::get<Mlp>(layer.branches[1].body).activation = "gelu_python";
  stack.norm = layer_norm(prefix + "encoder.emb_layer_norm_after");
  const auto scores = static_cast<std::int64_t>(stack.order.size()) * attention.heads;
  spec.apart = {{prefix + "contact_head.regression.weight", {1, scores}},
                {prefix + "contact_head.regression.bias", {1}}};
  return spec;
}

ModelSpec esm(const Config& c) { return esm_like(c, ""); }
ModelSpec esm_masked(const Config& c) {
  ModelSpec spec = with_masked_head(esm_like(c, "esm."), c, "lm_head.decoder", "", "lm_head.dense",
                                    "lm_head.layer_norm");
  spec.head.bias = false;
  spec.head.activation = "gelu_python";
  spec.head.apart_bias = "lm_head.bias";
  return spec;
}

// BERT with rotary positions, whose table is a parameter.
ModelSpec roformer_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  input.positions.clear();
  input.types_per_example = true;
  input.width = c.size("embedding_size", stack.hidden);
  if (input.width != stack.hidden) {
    input.project = prefix + "embeddings_project";
    input.project_last = true;
  }
  if (c.flag("rotary_value", false)) c.fail("rotary_value", "only false is supported");
  Attention& attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  attention.rotary.dims = attention.head_dim;
  attention.rotary.each_layer = true;
  attention.plain_only = true;
  spec.apart = {{.name = prefix + "encoder.embed_positions.weight",
                 .shape = {c.size("max_position_embeddings", 1536), attention.head_dim},
                 .embedding = true}};
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec roformer(const Config& c) { return roformer_like(c, ""); }
ModelSpec roformer_masked(const Config& c) {
  ModelSpec spec = with_bert_head(roformer_like(c, "roformer."), c);
  spec.head.transform_width = std::get<TokenEmbedding>(spec.stacks[0].input).width;
  return spec;
}

// "c2p|p2c", or a list of these.
std::string place_types(const Config& c) {
  const auto value = c.json().find("pos_att_type");
  c.pass_over({"pos_att_type"});
  if (!value || value->json().is_null()) return "";
  if (value->is_string()) return value->string();
  std::string all;
  for (const std::string& type : c.texts("pos_att_type")) all += type + "|";
  return all;
}

// Contents and places each have scores of their own.
ModelSpec deberta_v2_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false, /*may_lack_types=*/true);
  c.pass_over({"legacy", "pooler_dropout", "pooler_hidden_act", "pooler_hidden_size", "conv_act"});
  if (c.count("conv_kernel_size", 0) > 0) {
    c.fail("conv_kernel_size", "a convolution beside the first layer is not supported");
  }
  Stack& stack = spec.stacks[0];
  auto& input = std::get<TokenEmbedding>(stack.input);
  if (!c.flag("position_biased_input", true)) input.positions.clear();
  input.type_rows = c.count("type_vocab_size", 0);
  if (input.type_rows == 0) input.types.clear();
  input.masked = true;
  if (c.size("embedding_size", stack.hidden) != stack.hidden) {
    c.fail("embedding_size", "only the layers\' width is supported");
  }
  Attention& attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  attention.q = "self.query_proj";
  attention.k = "self.key_proj";
  attention.v = "self.value_proj";
  attention.plain_only = attention.heads_apart = true;
  attention.mask = ScoreMask::blanks_each_layer;
  const std::string types = place_types(c);
  const std::int64_t buckets = c.integer("position_buckets", -1);
  const std::int64_t farthest = c.integer("max_relative_positions", -1);
  const bool shared = c.flag("share_att_key", false);
  const bool normed = c.text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos;
  if (c.flag("relative_attention", false)) {
    const std::int64_t span = buckets > 0    ? buckets
                              : farthest > 0 ? farthest
                                             : c.size("max_position_embeddings", 512);
    stack.distances = DistanceTable{.name = prefix + "encoder.rel_embeddings",
                                    .buckets = 2 * span,
                                    .dropout = c.rate("hidden_dropout_prob", 0.1)};
    if (normed) stack.distances->norm = layer_norm(prefix + "encoder.LayerNorm");
    attention.places = PlaceScores{.of_queries = types.find("c2p") != std::string::npos,
                                   .of_keys = types.find("p2c") != std::string::npos,
                                   .shared = shared,
                                   .key = "self.pos_key_proj",
                                   .query = "self.pos_query_proj"};
    if (!attention.places->of_queries && !attention.places->of_keys) attention.places.reset();
  } else if (normed) {  // the class has it in any case
    spec.apart.push_back({prefix + "encoder.LayerNorm.weight", {stack.hidden}});
    spec.apart.push_back({prefix + "encoder.LayerNorm.bias", {stack.hidden}});
  }
  spec.head = {.kind = HeadKind::none};
  return spec;
}

// Projections of contents in one matrix without a bias, vectors added to queries and values.
ModelSpec deberta_like(const Config& c, const std::string& prefix) {
  for (const char* key :
       {"norm_rel_ebd", "position_buckets", "share_att_key", "conv_kernel_size"}) {
    if (c.given(key)) c.pass_over({key});  // of the second version
  }
  if (c.flag("talking_head", false)) c.fail("talking_head", "only false is supported");
  ModelSpec spec = deberta_v2_like(c, prefix);
  Stack& stack = spec.stacks[0];
  Attention& attention = std::get<Attention>(stack.kinds[0].branches[0].body);
  attention.heads_apart = false;
  attention.form = QkvForm::fused;
  attention.qkv = "self.in_proj";
  set_biases(attention, false, true);
  attention.q_added = "self.q_bias";
  attention.v_added = "self.v_bias";
  for (Branch& branch : stack.kinds[0].branches) branch.joined.kind = NormKind::layer_cast;
  std::get<TokenEmbedding>(stack.input).norm.kind = NormKind::layer_cast;
  if (attention.places) {
    attention.places->key_bias = false;
    attention.places->shared = false;
    attention.places->key = "self.pos_proj";
    attention.places->query = "self.pos_q_proj";
  }
  if (stack.distances) {
    const std::int64_t farthest = c.integer("max_relative_positions", -1);
    stack.distances->buckets =
        2 * (farthest > 0 ? farthest : c.size("max_position_embeddings", 512));
    stack.distances->norm = {};
    stack.distances->near_only = true;
  }
  return spec;
}

ModelSpec deberta(const Config& c) { return deberta_like(c, ""); }
ModelSpec deberta_masked(const Config& c) {
  if (!c.flag("legacy", true)) c.fail("legacy", "only true is supported");
  return with_bert_head(deberta_like(c, "deberta."), c);
}

ModelSpec deberta_v2(const Config& c) { return deberta_v2_like(c, ""); }
ModelSpec deberta_v2_masked(const Config& c) {
  if (!c.flag("legacy", true)) c.fail("legacy", "only true is supported");
  return with_bert_head(deberta_v2_like(c, "deberta."), c);
}

}  // namespace

std::vector<Family> encoder_kin_families() {
  return {{"AlbertForMaskedLM", "albert", albert_masked},
          {"AlbertModel", "albert", albert},
          {"MPNetForMaskedLM", "mpnet", mpnet_masked},
          {"MPNetModel", "mpnet", mpnet},
          {"GteForMaskedLM", "gte", gte_masked},
          {"GteModel", "gte", gte},
          {"NomicBertForMaskedLM", "nomic_bert", nomic_bert_masked},
          {"NomicBertModel", "nomic_bert", nomic_bert},
          {"JinaEmbeddingsV3ForMaskedLM", "jina_embeddings_v3", jina_embeddings_v3_masked},
          {"JinaEmbeddingsV3Model", "jina_embeddings_v3", jina_embeddings_v3},
          {"EsmForMaskedLM", "esm", esm_masked},
          {"EsmModel", "esm", esm},
          {"DebertaV2ForMaskedLM", "deberta-v2", deberta_v2_masked},
          {"DebertaV2Model", "deberta-v2", deberta_v2},
          {"DebertaForMaskedLM", "deberta", deberta_masked},
          {"DebertaModel", "deberta", deberta},
          {"RoFormerForMaskedLM", "roformer", roformer_masked},
          {"RoFormerModel", "roformer", roformer}};
}

}  // namespace shardsim::models
