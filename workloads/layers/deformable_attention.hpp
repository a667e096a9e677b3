// Deformable attention over pictures of several sizes (arXiv:2010.04159): each query's heads look
// at a few points of each picture, around the query's own box or place; where, and how much each
// counts, products of the query say. Values between places are sampled.
//
// FLOPs of Q queries, S places in all, width h, n heads, L pictures, P points, forward: 2 S h^2 + 2
// Q h (3 n L P) + 2 Q h^2; sampling is no product, and counts in no total.
//
// Source: transformers 5.23, modeling_rt_detr.py, RTDetrMultiscaleDeformableAttention, and
// MultiScaleDeformableAttention, which classes with the same names have alike.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct DeformableAttention {
  std::int64_t heads = 0;
  std::int64_t levels = 0;
  std::int64_t points = 0;
  bool scaled_points = false;  // offsets times a buffer's number of each point (RT-DETR v2)
  bool of_boxes = true;        // offsets are parts of the box' sides, which the module reads

  bool operator==(const DeformableAttention&) const = default;
};

// Rows of a value with the largest scores: of `scores` [batch, sequence, classes] the largest class
// of each row counts.
struct ChosenRows {
  std::int64_t count = 0;
  bool of_scores = false;  // the scores themselves, of which the choice is made

  bool operator==(const ChosenRows&) const = default;
};

// `x`: queries with their positions; `memory` [batch, places, hidden]; `boxes` [batch, queries, 4].
Node draw(Sketch& s, const DeformableAttention& a, Node x, Node memory, Node boxes);
Node draw(Sketch& s, const ChosenRows& c, Node value);

}  // namespace shardsim::models
