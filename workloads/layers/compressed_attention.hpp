// DeepSeek-V4's attention: one head of keys, which are the values, too, seen by all heads of
// queries, of a window and, in two of three kinds of layers, of entries that a compressor makes of
// every m tokens.
//
//   queries   down to q_rank, a norm, up to heads of d, normed without a weight
//   keys      one product, normed; the last rotary_dims of queries and keys are turned, and those
//             of the result turned back
//   entries   softmax over m tokens of (gate + position_bias), times a second product of them,
//             summed, normed, turned. `overlaps`: of 2 m tokens, the m before among them, each
//             with products of its own (compressed sparse attention; m = 4); otherwise of m
//             (heavily compressed attention; m = 128)
//   index     of overlapping entries: smaller entries of its own, scores of index heads with them
//             times a weight of each head, and the `chosen` largest of each query
//   out       heads in groups, each through a matrix of its own to out_rank, then all to h
//
// FLOPs of T tokens, E = T / m entries: projections, and attention of T queries with T + E keys;
// the index without a backward pass. Plans compute the window, and of the entries what a query may
// see (causally, and chosen), as kernels for sparse attention do.
//
// Kept for tokens to come: d numbers of each token of the window and of each entry, the index' d_i
// of each entry, and as a state the products of tokens that are no entry yet.
//
// Source: transformers 5.23.0, modeling_deepseek_v4.py.
#pragma once

#include <optional>
#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct EntryIndex {
  std::int64_t heads = 64;
  std::int64_t head_dim = 128;
  std::int64_t chosen = 512;

  bool operator==(const EntryIndex&) const = default;
};

struct Compressor {
  std::int64_t tokens = 128;  // of an entry
  std::optional<EntryIndex> index{};

  // Entries that are picked lie over the tokens of two.
  [[nodiscard]] bool overlaps() const { return index.has_value(); }
  bool operator==(const Compressor&) const = default;
};

struct CompressedAttention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t q_rank = 0;
  std::int64_t rotary_dims = 0;
  std::int64_t window = 0;
  std::int64_t groups = 1;  // of heads, on the way out
  std::int64_t out_rank = 0;
  double dropout = 0;
  std::optional<Compressor> compressor{};

  bool operator==(const CompressedAttention&) const = default;
};

Node draw(Sketch& s, const CompressedAttention& a, Node x);
[[nodiscard]] std::string to_text(const CompressedAttention& a);

}  // namespace shardsim::models
