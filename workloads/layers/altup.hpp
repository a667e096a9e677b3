// Alternating updates (AltUp, arXiv:2301.13310), as Gemma 3n has them: the stream is several
// streams of the model's width. A layer predicts all of them from all, runs on the active one, and
// corrects the predictions by what it made of that.
//
//   predict   coefficients [inputs, inputs] of each token, of the active stream through a router;
//             a product of the streams with them, added to the streams
//   correct   coefficients [inputs] of each token, of what the layer left; times the difference to
//             the prediction, added to the predictions
//
// Kept, of T tokens and n streams of width h: the streams (2nTh), and the differences (2nTh), twice
// a router's norm, and what a few numbers a token take.
//
// Laurel (arXiv:2411.07501): a low-rank product of what attention reads, normed, added to it and to
// the stream behind attention; the sum is scaled.
//
// Source: transformers 5.23.0, modeling_gemma3n.py.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

struct AltUp {
  std::string name = "altup";
  std::int64_t inputs = 4;
  bool scales_first = true;  // what the layer's own inputs read, by a factor of each channel
  bool clips = true;         // coefficients' weights, in training
  Norm router_norm{};

  bool operator==(const AltUp&) const = default;
};

// Around the layers; full names, a module for each stream but the first.
struct AltUpEnds {
  std::int64_t inputs = 4;
  std::string project = "model.altup_projections";
  std::string back = "model.altup_unembed_projections";

  bool operator==(const AltUpEnds&) const = default;
};

struct Laurel {
  std::string name = "laurel";
  std::int64_t rank = 64;
  Norm norm{};

  bool operator==(const Laurel&) const = default;
};

// [inputs, batch, sequence, hidden] of what enters the stack, and the mean of them all.
Value spread(Eager& e, const AltUpEnds& ends, const Value& x);
Value gather(Eager& e, const AltUpEnds& ends, const Value& streams);

Value predict(Eager& e, const AltUp& altup, const Value& streams);
Value correct(Eager& e, const AltUp& altup, const Value& predictions, const Value& activated);
// The active stream, [batch, sequence, hidden]: a view.
Value active(const Value& streams);
// Of the corrected streams, what the layer's own inputs read.
Value first_scaled(Eager& e, const AltUp& altup, const Value& corrected);

Value run(Eager& e, const Laurel& laurel, const Value& x);

}  // namespace shardsim::models
