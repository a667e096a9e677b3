// What reads the last layer's states, and the loss of it. Names are full names.
//
//   language        logits of every token; a causal model's loss is taken in fp32 of shifted labels
//   masked          dense, activation, norm, then logits with a bias of their own (BERT)
//   detection       dense, activation, then for each token whether it was replaced (ELECTRA)
//   classification  logits of one token's or the mean's states, behind a dense module or not, or of
//                   every token's
//   pooler          dense and tanh of the first token: no loss but the sum
//   contrastive     two projections, each to length one, and a scale (CLIP)
//   pairs           the same of features as they are, each pair a yes or no of its own (SigLIP)
//   embeddings      every row projected, of length one: no loss but the sum (ColPali)
//   pixels          a patch's pixels for each row, the mean square of what is missing (MAE)
//   none            the states themselves
//
// A cross entropy keeps the log-softmax of the logits in their type and a number; labels that are
// moved are a copy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/context.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class HeadKind : std::uint8_t {
  language,
  masked,
  detection,
  classification,
  pooler,
  contrastive,
  pairs,
  pixels,
  embeddings,
  none
};

// Of a classifier.
enum class HeadRows : std::uint8_t {
  first,            // a row of each example, the first
  each,             // all of them, each with a label
  picked,           // logits of all, of which one of each example has a label
  mean,             // the mean of all
  mean_of_further,  // or of all but the first
  averaged,         // logits of all, of which the mean is taken (EuroBERT)
  span,             // two logits of each: which token is the first of an answer, which the last
};

// Whether two sentences follow each other, read of the first row behind a pooler; its loss is added
// to that of the head (BERT's pretraining).
struct SentencePair {
  std::string pooler, name;  // full names
  double dropout = 0;        // of what the pooler gives

  bool operator==(const SentencePair&) const = default;
};

struct Head {
  HeadKind kind = HeadKind::language;
  std::string name = "lm_head";
  std::int64_t vocab = 0;  // or classes, or the width of projections
  bool bias = false;
  std::string tied_to{};       // the full name of the weight; empty: its own
  bool stands_first = false;   // its module, so that tied tensors go by its names
  double soft_cap = 0;         // tanh(logits / cap) * cap
  bool fp32_cap = false;       // of logits cast to fp32 (xLSTM)
  bool scaled = false;         // logits times a number: Cohere's and Granite's
  bool states_scaled = false;  // or the states before (MiniCPM 3)
  bool causal_loss = true;     // of shifted labels, in fp32
  std::string transform{};     // masked, detection, classification: the dense module before
  bool transform_bias = true;
  std::int64_t transform_width = 0;  // of its result; 0: of its input
  std::string activation{};
  Norm transform_norm{};
  // masked: another behind the activation, back to the rows' width, and the activation again.
  std::string second_transform{};
  std::string tied_bias{};    // masked: the full name of the bias that is the decoder's, too
  std::string apart_bias{};   // masked: the full name of one that is added behind the decoder (ESM)
  std::string more_rows{};    // masked: rows of the matrix beside the tied ones, [rest, vocab]
  std::string idle_pooler{};  // a pooler that runs and that nobody reads: its dense module
  bool shifted = false;       // labels are the next tokens', without a causal_loss, too
  bool fp32_loss = false;     // masked, classification: of logits cast to fp32
  Norm idle_norm{};           // of the first row, whose result nobody reads (CLIP's classifier)
  bool beside_mean = false;   // classification: of the first row and the others' mean, side by side
  HeadRows rows = HeadRows::first;
  // span: the module that looks for both ends with what it makes of the question's row (Splinter,
  // arXiv:2101.00438).
  std::string question{};
  double input_dropout = 0;                // classification: of what the transform reads
  double dropout = 0;                      // and of its result
  std::vector<std::string> projections{};  // contrastive
  std::optional<SentencePair> sentences{};

  bool operator==(const Head&) const = default;
};

// `outputs` of the stacks, in order; most heads read the last.
void run(Eager& e, const Head& head, const std::vector<Value>& outputs);

}  // namespace shardsim::models
