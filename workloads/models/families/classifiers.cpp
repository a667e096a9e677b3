// Classes that have a masked model's layers and sort sequences or tokens, or find an answer.
//
//   BertForSequenceClassification    BertForMaskedLM's layers, the pooler and a classifier
//   BertForTokenClassification       a classifier of every token's states
//   BertForQuestionAnswering         "qa_outputs": where an answer starts and where it ends
//   BartForSequenceClassification    a classifier of the state of the last end of a sentence
//
// Names and rates as in transformers 5.23, modeling_X.py of each.
#include "workloads/models/families/classifiers.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

constexpr std::string_view usual = "classifier_dropout|hidden_dropout_prob";

constexpr std::array sequences = std::to_array<SequenceClassifier>(
    {{"Bert", "bert.pooler.dense", "classifier", "tanh", usual, 0.1, false},
     {"Ernie", "ernie.pooler.dense", "classifier", "tanh", usual, 0.1, false},
     {"MegatronBert", "bert.pooler.dense", "classifier", "tanh", "hidden_dropout_prob", 0.1, false},
     {"RemBert", "rembert.pooler.dense", "classifier", "tanh", "classifier_dropout_prob", 0.1,
      false},
     {"Gte", "gte.pooler.dense", "classifier", "tanh", usual, 0.1, false},
     {"NomicBert", "nomic_bert.pooler.dense", "classifier", "tanh", usual, 0, false},
     {"Albert", "albert.pooler", "classifier", "tanh", "classifier_dropout_prob", 0.1, false},
     {"DistilBert", "pre_classifier", "classifier", "relu", "seq_classif_dropout", 0.2, false},
     {"Deberta", "pooler.dense", "classifier", "gelu", "cls_dropout|hidden_dropout_prob", 0.1,
      false},
     {"DebertaV2", "pooler.dense", "classifier", "gelu", "cls_dropout|hidden_dropout_prob", 0.1,
      false},
     {"ModernBert", "head.dense", "classifier", "gelu", "classifier_dropout", 0, false},
     {"MPNet", "classifier.dense", "classifier.out_proj", "tanh", "hidden_dropout_prob"},
     {"Electra", "classifier.dense", "classifier.out_proj", "gelu"},
     {"RoFormer", "classifier.dense", "classifier.out_proj", "", "hidden_dropout_prob"},
     {"Esm", "classifier.dense", "classifier.out_proj", "tanh", "hidden_dropout_prob"},
     {"LayoutLM", "layoutlm.pooler.dense", "classifier", "tanh", "hidden_dropout_prob", 0.1, false},
     {"SqueezeBert", "transformer.pooler.dense", "classifier", "tanh", "hidden_dropout_prob", 0.1,
      false},
     {"MobileBert", "mobilebert.pooler.dense", "classifier", "tanh", usual, 0, false},
     {"RoCBert", "roc_bert.pooler.dense", "classifier", "tanh", usual, 0.1, false},
     {"ConvBert", "classifier.dense", "classifier.out_proj", ""},
     {"BigBird", "classifier.dense", "classifier.out_proj", ""},
     {"Roberta"},
     {"XLMRoberta"},
     {"Camembert"},
     {"Data2VecText"},
     {"RobertaPreLayerNorm"},
     {"XLMRobertaXL"},
     {"JinaEmbeddingsV3"},
     {"Xmod"},
     {"Nystromformer", "classifier.dense", "classifier.out_proj", "", "hidden_dropout_prob"},
     {"IBert", "classifier.dense", "classifier.out_proj", "tanh", "hidden_dropout_prob"},
     {"Tapas", "tapas.pooler.dense", "classifier", "tanh", "hidden_dropout_prob", 0.1, false}});

// Of each token, behind the masked model's dense module and norm where it has its name.
struct TokenClassifier {
  std::string_view stem;
  std::string_view dropout_keys = usual;
  double dropout = 0.1;
  std::string_view transform{};
};

constexpr std::array tokens =
    std::to_array<TokenClassifier>({{"Albert", "classifier_dropout_prob|hidden_dropout_prob"},
                                    {"Bert"},
                                    {"Camembert"},
                                    {"Data2VecText"},
                                    {"Deberta", "hidden_dropout_prob"},
                                    {"DebertaV2", "hidden_dropout_prob"},
                                    {"DistilBert", "dropout"},
                                    {"Electra"},
                                    {"Ernie"},
                                    {"ConvBert"},
                                    {"MobileBert", usual, 0},
                                    {"RoCBert"},
                                    {"Longformer", "hidden_dropout_prob"},
                                    {"SqueezeBert", "hidden_dropout_prob"},
                                    {"BigBird"},
                                    {"ModernBert", "classifier_dropout", 0, "head.dense"},
                                    {"EuroBert", "", 0},
                                    {"Esm", "hidden_dropout_prob"},
                                    {"Gte"},
                                    {"JinaEmbeddingsV3"},
                                    {"LayoutLM", "hidden_dropout_prob"},
                                    {"MPNet", "hidden_dropout_prob"},
                                    {"MegatronBert", "hidden_dropout_prob"},
                                    {"NomicBert", usual, 0},
                                    {"RemBert", "classifier_dropout_prob"},
                                    {"RoFormer", "hidden_dropout_prob"},
                                    {"Roberta"},
                                    {"RobertaPreLayerNorm"},
                                    {"XLMRoberta"},
                                    {"XLMRobertaXL"},
                                    {"Xmod"},
                                    {"Nystromformer", "hidden_dropout_prob"},
                                    {"IBert", "hidden_dropout_prob"}});

// Where an answer starts and ends; DistilBERT alone drops before.
constexpr std::array answers = std::to_array<std::string_view>({"Albert",
                                                                "Bert",
                                                                "Camembert",
                                                                "ConvBert",
                                                                "Data2VecText",
                                                                "Deberta",
                                                                "DebertaV2",
                                                                "DistilBert",
                                                                "Electra",
                                                                "Ernie",
                                                                "JinaEmbeddingsV3",
                                                                "MPNet",
                                                                "MegatronBert",
                                                                "MobileBert",
                                                                "RemBert",
                                                                "RoCBert",
                                                                "RoFormer",
                                                                "Roberta",
                                                                "RobertaPreLayerNorm",
                                                                "SqueezeBert",
                                                                "XLMRoberta",
                                                                "XLMRobertaXL",
                                                                "IBert",
                                                                "Nystromformer",
                                                                "Xmod"});

// BERT's pretraining: whether two sentences follow each other, beside masked words or alone.
struct SentencePairs {
  std::string_view stem;
  std::string_view pooler;
  std::string_view name = "cls.seq_relationship";
  bool alone = true;  // has a class for it alone
};

constexpr std::array sentence_pairs =
    std::to_array<SentencePairs>({{"Bert", "bert.pooler.dense"},
                                  {"Ernie", "ernie.pooler.dense"},
                                  {"MegatronBert", "bert.pooler.dense"},
                                  {"MobileBert", "mobilebert.pooler.dense"},
                                  {"BigBird", "bert.pooler", "cls.seq_relationship", false},
                                  {"Albert", "albert.pooler", "sop_classifier.classifier", false}});

// Encoders with decoders that find an answer, in the decoder's states.
constexpr std::array answering_decoders = std::to_array<std::string_view>(
    {"Bart", "MBart", "Mvp", "BigBirdPegasus", "LED", "T5", "MT5", "UMT5"});

// Encoders with decoders whose classifier reads the decoder's states.
struct StopClassifier {
  std::string_view stem;
  std::string_view dropout_key;
  std::int64_t labels;      // where a file names none
  std::string_view root{};  // of the layers
};

constexpr std::array stops =
    std::to_array<StopClassifier>({{"Bart", "classifier_dropout", 3},
                                   {"MBart", "classifier_dropout", 2},
                                   {"Mvp", "classifier_dropout", 2},
                                   {"PLBart", "classifier_dropout", 2},
                                   {"BigBirdPegasus", "classifier_dropout", 2},
                                   {"T5", "classifier_dropout", 2, "transformer."},
                                   {"MT5", "classifier_dropout", 2, "transformer."},
                                   {"UMT5", "classifier_dropout", 2, "transformer."}});

ModelSpec token_classifier(const Config& c, ModelSpec spec, const TokenClassifier& kind) {
  const Head own = spec.head;
  spec.head = {.kind = HeadKind::classification,
               .name = "classifier",
               .vocab = labels_of(c),
               .bias = true,
               .rows = HeadRows::each,
               .dropout = first_rate(c, kind.dropout_keys, kind.dropout)};
  spec.head.idle_pooler = own.idle_pooler;
  if (!kind.transform.empty() && kind.transform == own.transform) {
    spec.head.transform = own.transform;
    spec.head.transform_bias = own.transform_bias;
    spec.head.activation = own.activation;
    spec.head.transform_norm = own.transform_norm;
  }
  return spec;
}

// ModernBERT's, behind what its masked model's head has.
ModelSpec transformed_answer_finder(const Config& c, ModelSpec spec) {
  static constexpr TokenClassifier behind{"ModernBert", "classifier_dropout", 0, "head.dense"};
  spec = token_classifier(c, std::move(spec), behind);
  if (labels_of(c) != 2) c.fail("num_labels", "an answer has two ends");
  spec.head.rows = HeadRows::span;
  return spec;
}

ModelSpec answer_finder(const Config& c, ModelSpec spec, bool drops) {
  const std::string pooler = spec.head.idle_pooler;
  spec.head = head_of_answers(drops ? c.rate("qa_dropout", 0.1) : 0);
  if (pooler.starts_with("transformer.")) spec.head.idle_pooler = pooler;  // SqueezeBERT's
  return spec;
}

ModelSpec with_sentence_pair(const Config& c, ModelSpec spec, const SentencePairs& kind,
                             bool alone) {
  const double dropout = kind.stem == "Albert" ? c.rate("classifier_dropout_prob", 0.1) : 0;
  spec.head.idle_pooler.clear();
  if (!alone) {
    spec.head.sentences = {std::string(kind.pooler), std::string(kind.name), dropout};
    return spec;
  }
  constexpr std::int64_t follows_or_not = 2;
  spec.head = {.kind = HeadKind::classification,
               .name = std::string(kind.name),
               .vocab = follows_or_not,
               .bias = true,
               .transform = std::string(kind.pooler),
               .activation = "tanh"};
  return spec;
}

ModelSpec stop_classifier(const Config& c, ModelSpec spec, const StopClassifier& kind) {
  const double rate = c.rate(kind.dropout_key, 0);
  const bool named = c.given("num_labels") || c.given("id2label");
  spec.stacks.back().picks_row = true;
  spec.buffers.clear();  // of logits of tokens
  if (!kind.root.empty()) replace_root(spec, "", std::string(kind.root));
  spec.head = {.kind = HeadKind::classification,
               .name = "classification_head.out_proj",
               .vocab = named ? labels_of(c) : kind.labels,
               .bias = true,
               .transform = "classification_head.dense",
               .activation = "tanh",
               .rows = HeadRows::each,  // the one row of each example
               .input_dropout = rate,
               .dropout = rate};
  return spec;
}

}  // namespace

Head head_of_answers(double dropout) {
  constexpr std::int64_t start_and_end = 2;
  return {.kind = HeadKind::classification,
          .name = "qa_outputs",
          .vocab = start_and_end,
          .bias = true,
          .rows = HeadRows::span,
          .dropout = dropout};
}

Head classifier_of(const Config& c, const std::string& name, HeadRows rows, double dropout) {
  return {.kind = HeadKind::classification,
          .name = name,
          .vocab = labels_of(c),
          .bias = true,
          .rows = rows,
          .dropout = dropout};
}

ModelSpec sequence_classifier(const Config& c, ModelSpec spec, const SequenceClassifier& kind) {
  const double rate = first_rate(c, kind.dropout_keys, kind.dropout);
  if (c.text("classifier_pooling", "cls") != "cls") {
    c.fail("classifier_pooling", "only \"cls\" is supported");
  }
  const std::string idle = spec.head.idle_pooler;
  Head own;
  if (kind.transform == spec.head.transform) own = spec.head;  // with its norm (ModernBERT)
  spec.head = {.kind = HeadKind::classification,
               .name = std::string(kind.name),
               .vocab = labels_of(c),
               .bias = true,
               .transform = std::string(kind.transform),
               .transform_bias = own.transform_bias,
               .activation = kind.activation.empty() ? c.activation("hidden_act", "gelu")
                                                     : std::string(kind.activation),
               .transform_norm = own.transform_norm,
               .input_dropout = kind.drops_first ? rate : 0,
               .dropout = rate};
  if (idle != kind.transform) spec.head.idle_pooler = idle;
  return spec;
}

double first_rate(const Config& c, std::string_view keys, double otherwise) {
  if (keys.empty()) return otherwise;
  const std::size_t bar = keys.find('|');
  const std::string_view first = keys.substr(0, bar);
  if (bar == std::string_view::npos || c.given(first)) return c.rate(first, otherwise);
  return c.rate(keys.substr(bar + 1), otherwise);
}

void drop_bias_of_words(ModelSpec& spec) {
  std::erase_if(spec.apart, [](const NamedParameter& one) {
    return one.name == "cls.predictions.bias" || one.name == "lm_head.bias";
  });
}

std::vector<Family> classifier_families(const std::vector<Family>& known) {
  std::vector<Family> all;
  const auto add = [&](std::string_view stem, std::string_view suffix, std::string_view beside,
                       const auto& with_head) {
    const std::string name = std::string(stem) + std::string(beside);
    const auto layers = std::find_if(known.begin(), known.end(),
                                     [&](const Family& f) { return f.architecture == name; });
    all.push_back({std::string(stem) + std::string(suffix), layers->model_type,
                   [read = layers->read, with_head](const Config& c) {
                     ModelSpec spec = with_head(c, read(c));
                     if (spec.head.kind == HeadKind::classification) drop_bias_of_words(spec);
                     return spec;
                   }});
  };
  for (const SequenceClassifier& kind : sequences) {
    add(kind.stem, "ForSequenceClassification", "ForMaskedLM",
        [&kind](const Config& c, ModelSpec spec) {
          return sequence_classifier(c, std::move(spec), kind);
        });
  }
  for (const TokenClassifier& kind : tokens) {
    add(kind.stem, "ForTokenClassification", "ForMaskedLM",
        [&kind](const Config& c, ModelSpec spec) {
          return token_classifier(c, std::move(spec), kind);
        });
  }
  for (const std::string_view stem : answers) {
    add(stem, "ForQuestionAnswering", "ForMaskedLM",
        [drops = stem == "DistilBert"](const Config& c, ModelSpec spec) {
          return answer_finder(c, std::move(spec), drops);
        });
  }
  add("ModernBert", "ForQuestionAnswering", "ForMaskedLM", [](const Config& c, ModelSpec spec) {
    return transformed_answer_finder(c, std::move(spec));
  });
  for (const SentencePairs& kind : sentence_pairs) {
    for (const bool alone : {false, true}) {
      if (alone && !kind.alone) continue;
      add(kind.stem, alone ? "ForNextSentencePrediction" : "ForPreTraining", "ForMaskedLM",
          [&kind, alone](const Config& c, ModelSpec spec) {
            return with_sentence_pair(c, std::move(spec), kind, alone);
          });
    }
  }
  for (const std::string_view stem : answering_decoders) {
    add(stem, "ForQuestionAnswering", "ForConditionalGeneration",
        [](const Config& c, ModelSpec spec) {
          spec.buffers.clear();  // of logits of tokens
          return answer_finder(c, std::move(spec), /*drops=*/false);
        });
  }
  for (const StopClassifier& kind : stops) {
    add(kind.stem, "ForSequenceClassification", "ForConditionalGeneration",
        [&kind](const Config& c, ModelSpec spec) {
          return stop_classifier(c, std::move(spec), kind);
        });
  }
  return all;
}

}  // namespace shardsim::models
