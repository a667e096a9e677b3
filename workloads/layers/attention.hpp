// Attention of many heads: projections, norms of queries and keys, rotary positions, the kernel,
// the output. Grouped heads have `kv_heads` below `heads`; windows, masks and soft caps change
// what the kernel computes, not its full-attention FLOPs.
//
// Example: Llama 3.1 8B, T = 4096, h = 4096, 8 of 32 key heads of 128: kept per layer are the
// projections' common input (2Th), q and out (2Th each), k and v (2T * 1024 each), logsumexp.
// The tables of rotary positions are kept once, by the first layer that reads them.
#pragma once

#include <optional>
#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/adapters.hpp"
#include "workloads/layers/context.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class QkvForm : std::uint8_t {
  separate,
  fused,         // one matrix; queries, keys and values are views of its result
  fused_conv1d,  // the same, weights [in, out]
};

// Rotary positions of the first `dims` of each head; none where dims is 0.
struct Rotary {
  std::int64_t dims = 0;
  std::string table = "rotary";  // layers that have one table in common
  bool half_table = false;       // cos and sin of half the dims
  bool complex = false;          // one table of complex numbers, products in fp32
  bool fp32 = false;             // tables in fp32
  // Turned halves or the turned part and the rest are put together: heads lie one after another
  // then, as the kernel's result does, of which the output projection needs a copy.
  bool concatenated = false;
  bool each_layer = false;  // tables are made anew in every layer
  bool by_example = false;  // tables of each example: [b, s, dims]
  bool apart = false;       // made for queries and for keys each (GPT-J)

  bool operator==(const Rotary&) const = default;
};

// What the module itself adds to the scores, which takes flash's place.
enum class ScoreMask : std::uint8_t {
  none,
  each_layer,         // a causal mask, made in every layer: [b, 1, s, s]
  alibi,              // with distances, made once: [b, heads, s, s]
  blanks,             // booleans of what scores are blanked, made once and kept: [b, 1, s, s] (MPT)
  blanks_each_layer,  // the same, made in every layer (DeBERTa 1)
  relative,  // a learned bias of distances, of the stack's first layer (T5); copied in each
};

// Scores of contents with places and of places with contents, beside those of contents (DeBERTa,
// arXiv:2006.03654): the stack's rows of distances are projected to keys and queries, by matrices
// of their own or the contents'.
struct PlaceScores {
  bool of_queries = false;  // queries with places
  bool of_keys = false;
  bool shared = false;
  bool key_bias = true;
  std::string key = "pos_key_proj", query = "pos_query_proj";

  bool operator==(const PlaceScores&) const = default;
};

struct Attention {
  std::string name = "self_attn";
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  QkvForm form = QkvForm::separate;
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj";
  std::string qkv = "qkv_proj";
  std::int64_t out_width = 0;  // of the result, where it is not the input's
  Adapters adapters{};         // of separate q, k, v
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  bool bias_apart = false;           // added after the products, not in them
  std::string q_added{}, v_added{};  // parameters added to parts of a fused result (DeBERTa 1)
  std::string o_added{};             // or to what comes out (GPT-NeoX Japanese)
  Norm q_norm{}, k_norm{};           // per head, unless `norm_whole`
  Norm v_norm{};                     // of values, per head
  bool norm_whole = false;
  bool norm_by_head = false;  // each head has a norm of its own: NAME.norms.3
  bool norm_after_rotary = false;
  Norm o_norm{};  // of what the output projection reads
  Rotary rotary{};
  std::int64_t window = 0;  // 0: all positions
  double soft_cap = 0;
  bool sinks = false;
  bool cross = false;        // keys and values of the encoder's states
  bool fp32_softmax = true;  // plain attention's
  bool plain_only = false;   // no kernel: multiplied out by the model itself
  bool alibi = false;        // scores that start from a bias of distances; plain only
  bool fp32_scores = false;  // plain attention's, of queries and keys cast to fp32
  bool bounded = false;      // plain attention's scores are kept from below the least number (XGLM)
  ScoreMask mask = ScoreMask::none;
  std::int64_t relative_buckets = 0;  // of the table of distances that this layer has
  std::optional<PlaceScores> places{};
  bool causal = false;         // masks what the bias does not
  bool bidirectional = false;  // tokens see those behind them, too
  bool heads_first = false;    // queries are laid out head after head
  bool heads_apart = false;  // queries, keys and values are, by copies; keys are scaled (DeBERTa 2)
  bool tokens_first = false;  // plain attention copies nothing: tokens lie before examples (FSMT)
  bool kv_by_index = false;   // keys and values are picked from the fused result by index
  bool expand_kv = false;     // one key head is seen by all, not copied
  bool scale_by_position = false;    // queries times a number for each position
  bool fp32_position_scale = false;  // of fp32, and then cast back (Llama 4)
  bool position_scale_once = false;  // made once for all layers (Beam)
  bool scaled_queries = false;       // queries times a number
  bool gate = false;                 // sigmoid gate of the output, from twice as wide a q_proj
  std::string gate_name{};           // or from a projection of its own, without a bias
  std::string gate_bias{};           // a parameter of one number for each head, added to it (Beam)
  bool gate_per_head = false;        // one number for each head
  bool gate_softplus = false;        // through softplus, in fp32 (Laguna)
  std::int64_t value_dim = 0;        // of a head of values, where it is not head_dim
  bool scaled_values = false;        // times a number
  bool values_of_keys = false;       // values are the keys before their norm (Gemma 4)
  // Keys and values that later layers of the stack read under this name, or that are another's: no
  // projection of its own then, and no cache.
  std::string hands_on{}, reads{};
  bool clamped = false;    // queries, keys and values, to a range
  double dropout = 0;      // of probabilities
  double out_dropout = 0;  // of the result
  bool cached = true;      // keys and values are kept for tokens to come

  [[nodiscard]] std::int64_t values() const { return value_dim > 0 ? value_dim : head_dim; }
  bool operator==(const Attention&) const = default;
};

Value run(Eager& e, const Attention& attention, const Value& x, Context& context);

// Turns pairs of q's and k's dimensions; gives new tensors of their shapes.
void turn(Eager& e, const Rotary& rotary, Context& context, Value& q, Value& k);

}  // namespace shardsim::models
