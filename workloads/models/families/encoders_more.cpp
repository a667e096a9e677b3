// LayoutLM, LUKE, DPR, RemBERT, and BERT's kin that write: causal masks, losses of the next token.
//
// Source: transformers 5.23.0, modeling_layoutlm.py, modeling_bert.py and those of its kin.
#include <algorithm>
#include <array>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

ModelSpec layoutlm_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  const std::string at = prefix + "embeddings.";
  input.boxes = BoxTables{.x = at + "x_position_embeddings",
                          .y = at + "y_position_embeddings",
                          .height = at + "h_position_embeddings",
                          .width = at + "w_position_embeddings",
                          .rows = c.size("max_2d_position_embeddings", 1024)};
  input.types_per_example = true;  // made for the batch, not stored
  std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body).fp32_softmax = true;
  return spec;
}

ModelSpec layoutlm(const Config& c) { return layoutlm_like(c, ""); }
ModelSpec layoutlm_masked(const Config& c) {
  ModelSpec spec = with_bert_head(layoutlm_like(c, "layoutlm."), c);
  spec.head.idle_pooler = "layoutlm.pooler.dense";  // which the class runs in any case
  return spec;
}

// Embeddings are narrower than the layers, what makes logits is wider.
ModelSpec rembert_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.width = c.size("input_embedding_size", 256);
  input.project = prefix + "encoder.embedding_hidden_mapping_in";
  input.project_last = true;
  input.types_per_example = true;
  LayerKind& layer = spec.stacks[0].kinds[0];
  Attention& attention = std::get<Attention>(layer.branches[0].body);
  attention.plain_only = true;
  attention.dropout = c.rate("attention_probs_dropout_prob", 0);
  input.dropout = c.rate("hidden_dropout_prob", 0);
  for (Branch& branch : layer.branches) branch.dropout = input.dropout;
  c.pass_over({"classifier_dropout_prob", "output_embedding_size"});
  return spec;
}

ModelSpec rembert(const Config& c) { return rembert_like(c, ""); }
ModelSpec rembert_masked(const Config& c) {
  ModelSpec spec = with_masked_head(rembert_like(c, "rembert."), c, "cls.predictions.decoder", "",
                                    "cls.predictions.dense", "cls.predictions.LayerNorm");
  spec.head.tied_to.clear();  // of another width
  spec.head.transform_width = c.size("output_embedding_size", 1664);
  spec.head.activation = c.activation("hidden_act", "gelu");
  return spec;
}

// LUKE (arXiv:2010.01057): RoBERTa, and entities beside the words, with queries of their own. A
// step reads words alone.
ModelSpec luke_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/true);
  Stack& stack = spec.stacks[0];
  LayerKind& layer = stack.kinds[0];
  auto& attention = std::get<Attention>(layer.branches[0].body);
  attention.plain_only = true;
  if (c.flag("use_entity_aware_attention", true)) {
    Attention entities = attention;  // its three products
    entities.q = "self.w2e_query";
    entities.k = "self.e2w_query";
    entities.v = "self.e2e_query";
    entities.o.clear();
    layer.branches.insert(layer.branches.begin() + 1, Branch{.body = entities, .silent = true});
  }
  const std::int64_t rows = c.size("entity_vocab_size", 500000);
  const std::int64_t width = c.size("entity_emb_size", 256);
  const std::string at = prefix + "entity_embeddings.";
  spec.apart.push_back({at + "entity_embeddings.weight", {rows, width}, /*embedding=*/true});
  if (width != stack.hidden) {
    spec.apart.push_back({at + "entity_embedding_dense.weight", {stack.hidden, width}});
  }
  const auto& input = std::get<TokenEmbedding>(stack.input);
  spec.apart.push_back(
      {at + "position_embeddings.weight", {input.position_rows, stack.hidden}, true});
  spec.apart.push_back(
      {at + "token_type_embeddings.weight", {input.type_rows, stack.hidden}, true});
  for (const char* name : {"LayerNorm.weight", "LayerNorm.bias"}) {
    spec.apart.push_back({at + name, {stack.hidden}});
  }
  return spec;
}

ModelSpec luke(const Config& c) { return luke_like(c, ""); }

// Logits of entities beside those of words; no matrix of words is tied, whatever the file says.
ModelSpec luke_masked(const Config& c) {
  ModelSpec spec = with_roberta_head(luke_like(c, "luke."), c);
  spec.head.tied_to.clear();
  spec.head.idle_pooler = "luke.pooler.dense";  // which the class runs in any case
  NamedParameter& entities = spec.apart.front();
  const std::int64_t rows = entities.shape[0];
  const std::int64_t width = entities.shape[1];
  const std::string at = "entity_predictions.";
  if (!spec.head.tied_bias.empty()) entities.other_name = at + "decoder.weight";
  spec.apart.push_back({at + "transform.dense.weight", {width, spec.stacks[0].hidden}});
  for (const char* name :
       {"transform.dense.bias", "transform.LayerNorm.weight", "transform.LayerNorm.bias"}) {
    spec.apart.push_back({at + name, {width}});
  }
  spec.apart.push_back({at + "bias", {rows}});
  if (spec.head.tied_bias.empty()) spec.apart.push_back({at + "decoder.weight", {rows, width}});
  return spec;
}

// Sorted: each word or, behind a pooler, the first; or which words an answer starts and ends with.
double luke_rate(const Config& c) {
  return first_rate(c, "classifier_dropout|hidden_dropout_prob", 0.1);
}

ModelSpec luke_tokens(const Config& c) {
  ModelSpec spec = luke_like(c, "luke.");
  spec.head = classifier_of(c, "classifier", HeadRows::each, luke_rate(c));
  return spec;
}

ModelSpec luke_sequences(const Config& c) {
  ModelSpec spec = luke_like(c, "luke.");
  spec.head = classifier_of(c, "classifier", HeadRows::first, luke_rate(c));
  spec.head.transform = "luke.pooler.dense";
  spec.head.activation = "tanh";
  return spec;
}

ModelSpec luke_answers(const Config& c) {
  ModelSpec spec = luke_like(c, "luke.");
  if (labels_of(c) != 2) c.fail("num_labels", "an answer has two ends");
  spec.head = classifier_of(c, "qa_outputs", HeadRows::span, 0);
  return spec;
}

// DPR (arXiv:2004.04906): BERT's first row, of a question or of a passage.
ModelSpec passage_encoder(const Config& c, const std::string& module) {
  const std::string root = module + ".";
  ModelSpec spec = bert_like(c, root + "bert_model.", /*roberta=*/false);
  Stack& stack = spec.stacks[0];
  stack.picks_last = true;  // one row, the first, as a view
  if (const std::int64_t width = c.count("projection_dim", 0); width > 0) {
    stack.project = root + "encode_proj";
    stack.project_width = width;
    stack.project_bias = true;
  }
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec dpr_context(const Config& c) { return passage_encoder(c, "ctx_encoder"); }
ModelSpec dpr_question(const Config& c) { return passage_encoder(c, "question_encoder"); }

// BERT; an answer is looked for with the row of the text's question token.
ModelSpec splinter_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/false);
  std::get<TokenEmbedding>(spec.stacks[0].input).types_per_example = true;
  c.pass_over({"question_token_id"});
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec splinter(const Config& c) { return splinter_like(c, ""); }

ModelSpec splinter_answers(const Config& c) {
  ModelSpec spec = splinter_like(c, "splinter.");
  spec.head = {
      .kind = HeadKind::classification, .rows = HeadRows::span, .question = "splinter_qass"};
  return spec;
}

// The class that writes, and the one whose layers and head it has.
struct Writer {
  std::string_view architecture, masked;
};

constexpr std::array writers =
    std::to_array<Writer>({{"BertLMHeadModel", "BertForMaskedLM"},
                           {"BigBirdForCausalLM", "BigBirdForMaskedLM"},
                           {"CamembertForCausalLM", "CamembertForMaskedLM"},
                           {"Data2VecTextForCausalLM", "Data2VecTextForMaskedLM"},
                           {"ElectraForCausalLM", "ElectraForMaskedLM"},
                           {"ErnieForCausalLM", "ErnieForMaskedLM"},
                           {"MegatronBertForCausalLM", "MegatronBertForMaskedLM"},
                           {"RemBertForCausalLM", "RemBertForMaskedLM"},
                           {"RoCBertForCausalLM", "RoCBertForMaskedLM"},
                           {"RoFormerForCausalLM", "RoFormerForMaskedLM"},
                           {"RobertaForCausalLM", "RobertaForMaskedLM"},
                           {"RobertaPreLayerNormForCausalLM", "RobertaPreLayerNormForMaskedLM"},
                           {"XLMRobertaForCausalLM", "XLMRobertaForMaskedLM"},
                           {"XLMRobertaXLForCausalLM", "XLMRobertaXLForMaskedLM"},
                           {"XmodForCausalLM", "XmodForMaskedLM"}});

// Tokens see those before them where the file calls it a decoder; the loss is of the next in any
// case.
ModelSpec writes(const Config& c, ModelSpec spec) {
  if (c.flag("is_decoder", false)) {
    for (LayerKind& kind : spec.stacks[0].kinds) {
      for (Branch& branch : kind.branches) {
        if (auto* attention = std::get_if<Attention>(&branch.body)) {
          attention->bidirectional = false;
        } else if (std::holds_alternative<Mixer>(branch.body)) {
          c.fail("is_decoder", "true is supported with attention to all tokens alone");
        }
      }
    }
  }
  spec.head.shifted = true;
  spec.head.fp32_loss = true;
  return spec;
}

}  // namespace

std::vector<Family> writing_encoder_families(const std::vector<Family>& known) {
  std::vector<Family> all;
  for (const Writer& writer : writers) {
    const auto masked = std::find_if(known.begin(), known.end(), [&](const Family& f) {
      return f.architecture == writer.masked;
    });
    all.push_back({std::string(writer.architecture), masked->model_type,
                   [read = masked->read](const Config& c) { return writes(c, read(c)); }});
  }
  return all;
}

std::vector<Family> more_encoder_families() {
  return {{"LayoutLMForMaskedLM", "layoutlm", layoutlm_masked},
          {"LayoutLMModel", "layoutlm", layoutlm},
          {"LukeForMaskedLM", "luke", luke_masked},
          {"LukeModel", "luke", luke},
          {"LukeForTokenClassification", "luke", luke_tokens},
          {"LukeForSequenceClassification", "luke", luke_sequences},
          {"LukeForQuestionAnswering", "luke", luke_answers},
          {"SplinterModel", "splinter", splinter},
          {"SplinterForQuestionAnswering", "splinter", splinter_answers},
          {"DPRContextEncoder", "dpr", dpr_context},
          {"DPRQuestionEncoder", "dpr", dpr_question},
          {"RemBertForMaskedLM", "rembert", rembert_masked},
          {"RemBertModel", "rembert", rembert}};
}

}  // namespace shardsim::models
