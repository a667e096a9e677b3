// What the descriptions of BERT and its kin share. `prefix`: "bert." under a head, nothing for the
// encoder alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/models/families/decoder.hpp"

namespace shardsim::models {

// Both ways, with biases.
[[nodiscard]] Attention encoder_attention(const Sizes& n, double dropout);
// Norms of the sums, BERT's names; the head is a pooler.
[[nodiscard]] LayerKind bert_layer(const Config& c, const Sizes& n);
// Words and places under `at`, normed, of which a part is dropped; without types of tokens.
[[nodiscard]] TokenEmbedding bert_words(const Config& c, const Sizes& n, const std::string& at,
                                        double dropout);
// `may_lack_types`: of a class without a table of token types, or where the file has none of them.
[[nodiscard]] ModelSpec bert_like(const Config& c, const std::string& prefix, bool roberta,
                                  bool may_lack_types = false);
// Logits of every token, of the embedding's matrix where the file ties them.
[[nodiscard]] ModelSpec with_masked_head(ModelSpec spec, const Config& c, const std::string& name,
                                         const std::string& bias, const std::string& transform,
                                         const std::string& norm);
[[nodiscard]] ModelSpec with_bert_head(ModelSpec spec, const Config& c);
[[nodiscard]] ModelSpec with_roberta_head(ModelSpec spec, const Config& c);

// Longformer's, an even number of tokens: one for all layers, or one of each
// (encoder_decoders_kin.cpp).
[[nodiscard]] std::vector<std::int64_t> windows_of(const Config& c, std::int64_t layers);

}  // namespace shardsim::models
