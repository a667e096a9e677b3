// Which of an example's texts each row of its image shows (OWL-ViT, arXiv:2205.06230): products of
// both at length one, shifted and scaled by two numbers of the row.
//
// FLOPs of P rows of width h, one text of width w, forward: 2 P h w + 2 P w + 4 P h.
//
// Source: transformers 5.23, modeling_owlvit.py, OwlViTClassPredictionHead.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct GroundedClasses {
  bool operator==(const GroundedClasses&) const = default;
};

// Products of what one side of a pair is with all of the other's, [batch, batch], whose result
// nobody reads: counted, and no op of a step.
struct UnreadProducts {
  std::int64_t width = 0;

  bool operator==(const UnreadProducts&) const = default;
};

Node draw(Sketch& s, const UnreadProducts& u, Node x);

// `rows` [batch, sequence, hidden], `text` [batch, w].
Node draw(Sketch& s, const GroundedClasses& g, Node rows, Node text);

}  // namespace shardsim::models
