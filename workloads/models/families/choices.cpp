// Classes that choose one of several texts: BertForMultipleChoice and its kin.
//
//   BertForMultipleChoice   BertForMaskedLM's layers, the pooler and one logit of each text
//
// A batch counts texts: with four choices 16 of them are four examples. Their logits lie one behind
// another, so that the cross entropy over an example's choices keeps as many numbers as there are
// texts, however many choices an example has.
//
// Names and rates as in transformers 5.23, modeling_X.py of each. Longformer's is left out: it
// attends from everywhere to the tokens behind the separator, which are data.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

constexpr std::string_view choice_rates = "classifier_dropout|hidden_dropout_prob";
constexpr std::string_view hidden_rate = "hidden_dropout_prob";

// Behind a masked model's layers.
constexpr std::array pooled_choices = std::to_array<SequenceClassifier>(
    {{"Albert", "albert.pooler", "classifier", "tanh", "classifier_dropout_prob", 0.1, false},
     {"Bert", "bert.pooler.dense", "classifier", "tanh", choice_rates, 0.1, false},
     {"BigBird", "bert.pooler", "classifier", "tanh", hidden_rate, 0.1, false},
     {"Camembert", "roberta.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"Data2VecText", "data2vec_text.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"DebertaV2", "pooler.dense", "classifier", "gelu", "cls_dropout|hidden_dropout_prob", 0.1,
      false},
     {"DistilBert", "pre_classifier", "classifier", "relu", "seq_classif_dropout", 0.2, false},
     {"Electra", "sequence_summary.summary", "classifier", "gelu", "summary_last_dropout", 0.1,
      false},
     {"Ernie", "ernie.pooler.dense", "classifier", "tanh", choice_rates, 0.1, false},
     {"MPNet", "mpnet.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"MegatronBert", "bert.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"MobileBert", "mobilebert.pooler.dense", "classifier", "tanh", choice_rates, 0, false},
     {"ModernBert", "head.dense", "classifier", "gelu", "classifier_dropout", 0, false},
     {"RemBert", "rembert.pooler.dense", "classifier", "tanh", "classifier_dropout_prob", 0.1,
      false},
     {"RoCBert", "roc_bert.pooler.dense", "classifier", "tanh", choice_rates, 0.1, false},
     {"Roberta", "roberta.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"RobertaPreLayerNorm", "roberta_prelayernorm.pooler.dense", "classifier", "tanh", hidden_rate,
      0.1, false},
     {"SqueezeBert", "transformer.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"Nystromformer", "pre_classifier", "classifier", "relu", "", 0, false},
     {"IBert", "ibert.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"Xmod", "roberta.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"XLMRoberta", "roberta.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false},
     {"XLMRobertaXL", "roberta.pooler.dense", "classifier", "tanh", hidden_rate, 0.1, false}});

// Whose summary of a sequence is its last row: their files say of summaries nothing.
constexpr std::array choices_of_last_rows =
    std::to_array<std::string_view>({"ConvBert", "RoFormer"});

// One logit of what the class that sorts sequences makes labels of; of XLM and FlauBERT of the
// labels.
constexpr std::array choices_of_labels = std::to_array<std::string_view>({"Luke", "XLNet"});
constexpr std::array choices_of_summaries = std::to_array<std::string_view>({"XLM", "Flaubert"});

ModelSpec of_last_row(ModelSpec spec) {
  spec.stacks[0].picks_last = true;
  spec.head = {.kind = HeadKind::classification,
               .name = "classifier",
               .vocab = 1,
               .bias = true,
               .rows = HeadRows::each};  // the one of each text
  return spec;
}

ModelSpec of_summary(ModelSpec spec) {
  spec.head.transform = spec.head.name;
  spec.head.transform_width = spec.head.vocab;
  spec.head.activation = "linear";
  spec.head.input_dropout = spec.head.dropout;
  spec.head.dropout = 0;
  spec.head.name = "logits_proj";
  spec.head.vocab = 1;
  return spec;
}

}  // namespace

std::vector<Family> choice_families(const std::vector<Family>& known) {
  std::vector<Family> all;
  const auto add = [&](std::string_view stem, std::string_view beside, const auto& with_head) {
    const std::string name = std::string(stem) + std::string(beside);
    const auto layers = std::find_if(known.begin(), known.end(),
                                     [&](const Family& f) { return f.architecture == name; });
    all.push_back({std::string(stem) + "ForMultipleChoice", layers->model_type,
                   [read = layers->read, with_head](const Config& c) {
                     ModelSpec spec = with_head(c, read(c));
                     drop_bias_of_words(spec);
                     return spec;
                   }});
  };
  for (const SequenceClassifier& kind : pooled_choices) {
    add(kind.stem, "ForMaskedLM", [&kind](const Config& c, ModelSpec spec) {
      spec = sequence_classifier(c, std::move(spec), kind);
      spec.head.vocab = 1;
      return spec;
    });
  }
  for (const std::string_view stem : choices_of_last_rows) {
    add(stem, "ForMaskedLM",
        [](const Config& /*c*/, ModelSpec spec) { return of_last_row(std::move(spec)); });
  }
  for (const std::string_view stem : choices_of_labels) {
    add(stem, "ForSequenceClassification", [](const Config& /*c*/, ModelSpec spec) {
      spec.head.vocab = 1;
      return spec;
    });
  }
  for (const std::string_view stem : choices_of_summaries) {
    add(stem, "ForSequenceClassification",
        [](const Config& /*c*/, ModelSpec spec) { return of_summary(std::move(spec)); });
  }
  return all;
}

}  // namespace shardsim::models
