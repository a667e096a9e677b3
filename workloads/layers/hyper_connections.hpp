// Hyper-connections (arXiv:2409.19606), on a manifold (arXiv:2512.24880), as DeepSeek-V4 has them:
// the stream is n streams of the model's width h. Around each branch,
//
//   maps    [pre, post, comb] = split(x32 / rms(x32) F^T), x32 all n h numbers of a token in fp32,
//           F [2n + n^2, n h]; times `scale`, plus `base`
//   read    sum_i (sigmoid(pre_i) + eps) x_i                what the branch reads
//   write   x_i <- 2 sigmoid(post_i) branch(read) + sum_j C_ji x_j
//
// with C the softmax of comb's rows, made doubly stochastic by dividing by the sums of columns and
// rows in turn (Sinkhorn). At the end the streams are read once more, by maps of their own.
//
// Kept of T tokens in eager PyTorch: x32 and what is normed of it (8Tnh), F in fp32, and numbers of
// maps, 4 n (n + 1) T for each of the 2 k - 1 divisions; the streams, bf16 (2Tnh).
// FLOPs: 2 T n h (2n + n^2) of maps and 2 T n^2 h of streams.
//
// Source: transformers 5.23.0, modeling_deepseek_v4.py.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct HyperConnections {
  std::int64_t streams = 4;
  std::int64_t balancings = 20;        // k
  std::string head = "model.hc_head";  // full name
  // Streams are not mixed: what a branch gives is added to each of them, in fp32, and maps are
  // products of the numbers of a token before these are divided by their length (HunYuan 4).
  bool independent = false;

  bool operator==(const HyperConnections&) const = default;
};

// What a branch reads, and what is left to do with what it gives.
struct HyperMaps {
  Node read = no_node;   // [batch, sequence, hidden]
  Node post = no_node;   // [batch, sequence, streams]
  Node mixed = no_node;  // [batch, sequence, streams, hidden]
};

[[nodiscard]] Axes stream_axes(const Sketch& s, const HyperConnections& h, std::int64_t hidden);
// Of `streams`, in the module that the branch's maps are of.
HyperMaps read_streams(Sketch& s, const HyperConnections& h, const std::string& module,
                       Node streams);
// [batch, sequence, streams, hidden] behind the branch.
Node write_streams(Sketch& s, const HyperConnections& h, const HyperMaps& maps, Node given);
// [batch, sequence, hidden] of what leaves the stack.
Node leave_streams(Sketch& s, const HyperConnections& h, Node streams);

}  // namespace shardsim::models
