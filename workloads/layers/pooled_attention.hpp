// Hiera's attention in windows (arXiv:2306.00989), as SAM 2 has it: one product gives queries, keys
// and values of another width; where a stage begins, of each 2 x 2 queries the largest numbers are
// taken.
//
// transformers' module also multiplies out scores among each place's heads, of which nobody reads
// the result: n heads of d cost 2 n^2 d operations more a place, forward.
//
// Source: transformers 5.23, modeling_sam2.py, Sam2MultiScaleAttention.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct PooledAttention {
  std::int64_t heads = 0;
  std::int64_t width = 0;   // of the result
  std::int64_t stride = 1;  // of queries, a side

  bool operator==(const PooledAttention&) const = default;
};

// Positions of a table of few places a side, made as large as the picture, and of one window, which
// is repeated: parameters [1, hidden, side, side].
struct WindowPositions {
  std::int64_t rows = 0, columns = 0;
  std::int64_t window = 0;

  bool operator==(const WindowPositions&) const = default;
};

// x [batch, windows, sequence, hidden] or [batch, sequence, hidden].
Node draw(Sketch& s, const PooledAttention& a, Node x);
Node draw(Sketch& s, const WindowPositions& p, Node x);

}  // namespace shardsim::models
