// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): keys and values come from a latent
// of kv_rank, expanded before attention; a part of each key, with rotary positions, is common to
// all heads. Only latent and that part are cached: (kv_rank + rope) values per token and layer; the
// keys of an index, too.
//
// Example: DeepSeek-V3: 128 heads, nope 128 + rope 64, v 128, ranks 1536 and 512: 187 M parameters
// a layer, a cache of 1,152 bytes per token.
#pragma once

#include <optional>
#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/attention.hpp"

namespace shardsim::models {

// Which keys a query sees (DeepSeek-V3.2's): scores of small heads of their own, of q's latent and
// of the stream, without gradient; attention is of those with the largest.
struct KeyIndex {
  std::string name = "indexer";
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::string q = "wq_b", k = "wk", k_norm = "k_norm", weights = "weights_proj";
  std::string input_norm{};     // a layer norm of the stream that queries are made of, not a latent
  std::string learned_scale{};  // as attention's

  bool operator==(const KeyIndex&) const = default;
};

struct LatentAttention {
  std::string name = "self_attn";
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;  // 0: one matrix, q_proj
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  bool bias = false;  // of the down-projections and the output
  Norm norm{NormKind::rms, ""};
  bool turned = true;              // the common part has positions; Kimi Linear's has none
  bool scaled = false;             // latents times numbers (LongCat-Flash)
  bool complex_rotary = false;     // DeepSeek-V2's; V3 multiplies by cos and sin
  bool scale_by_position = false;  // queries times a number for each position (Mistral 4)
  // A module of two numbers for each head: queries times scale log(position) + bias (Mistral Large
  // 4). Its layers without positions have a rope_dim of 0.
  std::string learned_scale{};
  std::string gate{};          // a projection of x whose sigmoid multiplies the result; empty: none
  bool gate_per_head = false;  // one number for each head, in fp32 (Ling 3)
  bool narrow_gate = false;    // not in fp32 (dots 3 Note)
  // Queries and a gate of the result, in fp32, by one product "q_gate_proj" of the queries' latent
  // before and behind its norm (A.X K2).
  bool gated_queries = false;
  Norm rope_norm{};              // of the turned part of keys (dots 3 Note)
  bool fp32_rotary = false;      // its tables
  std::string table = "rotary";  // layers that have tables in common
  bool sinks = false;            // one more score for each head
  double dropout = 0;
  std::optional<KeyIndex> index{};
  std::int64_t chosen = 0;  // keys that a query sees, by the index of this layer or of one before

  bool operator==(const LatentAttention&) const = default;
};

Value run(Eager& e, const LatentAttention& attention, const Value& x, Context& context);

}  // namespace shardsim::models
