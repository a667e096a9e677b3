// xLSTM's matrix memory (mLSTM, arXiv:2405.04517; in chunks arXiv:2503.14376): each head has a
// matrix C of keys by values and a vector n,
//
//   C <- f C + i k v^T,  n <- f n + i k,  h = C^T q / max(|n.q|, exp(-m))
//
// with gates i and f of each token and head, capped before their exponential and sigmoid; then a
// layer norm of each head, a sigmoid gate of the input and the product out.
//
// It runs as one kernel in chunks of c tokens, as the mlstm_kernels package has it, which keeps q,
// k and v head after head, the gates, n.q and m in fp32. Of T tokens, H heads of K and V these are
// T H (2 c (K + V) + 4 K V) operations, in no total. transformers' own class multiplies the chunks
// out, for want of the package. Kept of a sequence: C, n and m.
//
// Source: transformers 5.23.0, modeling_xlstm.py.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct MatrixMemory {
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t chunk = 64;
  bool bias = false;  // of all but the gates, which have one

  bool operator==(const MatrixMemory&) const = default;
};

Node draw(Sketch& s, const MatrixMemory& m, Node x);
[[nodiscard]] std::string to_text(const MatrixMemory& m);

}  // namespace shardsim::models
