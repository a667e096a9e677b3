// Classes that have a masked model's layers and sort sequences or tokens, or find an answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/models/families/families.hpp"

namespace shardsim::models {

// Of a sequence, by its first token: a dense module, an activation (none: hidden_act's) and the
// classifier, behind dropouts of the rate under the first of the keys that the file gives.
struct SequenceClassifier {
  std::string_view stem;
  std::string_view transform = "classifier.dense";
  std::string_view name = "classifier.out_proj";
  std::string_view activation = "tanh";
  std::string_view dropout_keys = "classifier_dropout|hidden_dropout_prob";
  double dropout = 0.1;
  bool drops_first = true;  // before the transform, too
};

[[nodiscard]] ModelSpec sequence_classifier(const Config& c, ModelSpec spec,
                                            const SequenceClassifier& kind);

// One product with a bias of the labels that the file names.
[[nodiscard]] Head classifier_of(const Config& c, const std::string& name, HeadRows rows,
                                 double dropout);

// Two logits of every token: which starts an answer, which ends it.
[[nodiscard]] Head head_of_answers(double dropout);

// Those that make the next token of such layers (BertLMHeadModel).
[[nodiscard]] std::vector<Family> writing_encoder_families(const std::vector<Family>& known);
[[nodiscard]] std::vector<Family> classifier_families(const std::vector<Family>& known);
// An untied bias of logits of words, which classes without them lack.
void drop_bias_of_words(ModelSpec& spec);
// The rate under the first of the keys, "a|b", that the file gives; of no keys the other.
[[nodiscard]] double first_rate(const Config& c, std::string_view keys, double otherwise);

}  // namespace shardsim::models
