// Attention of videos in two parts (TimeSformer, arXiv:2102.05095): every place of a picture
// attends to itself in the other frames, then the places of each frame to one another, with a row
// for the whole that every frame has. Multiplied out.
//
// FLOPs of P places in F frames, hidden h, forward, a multiply-add as 2: over frames   2 P F h (3 h
// + h + h) + 4 P F^2 h over places   2 F (P + 1) h (3 h + h) + 4 F (P + 1)^2 h
//
// Source: transformers 5.23, modeling_timesformer.py, TimesformerLayer, TimesformerEmbeddings.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

// Rows of a video, frame after frame, with positions of places and of frames, the whole's row
// first.
struct FramePositions {
  std::int64_t frames = 0;
  double dropout = 0;

  bool operator==(const FramePositions&) const = default;
};

// Both parts with their norms, onto what is read: the first row, then place after place.
struct DividedAttention {
  std::int64_t frames = 0;
  std::int64_t heads = 0;
  bool qkv_bias = true;
  double dropout = 0;      // of probabilities
  double out_dropout = 0;  // of what either gives

  bool operator==(const DividedAttention&) const = default;
};

Node draw(Sketch& s, const FramePositions& p, Node x);
Node draw(Sketch& s, const DividedAttention& a, Node x);

}  // namespace shardsim::models
