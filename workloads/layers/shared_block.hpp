// A block of attention and an MLP that several layers share (Zamba2, arXiv:2411.15242): one set of
// parameters, which lie under the name of the first layer that uses it; the others' names are tied
// to it. It reads the residual stream and the tokens' embeddings side by side, 2h wide; what it
// gives goes through a matrix of the layer's own and is added to what the layer's mixer reads, not
// to the stream.
//
// Example: Zamba2 1.2B: six layers share a block of 32 heads of 128 over 4096 = 2h; each has its
// own pairs of adapters and a matrix [2048, 2048].
#pragma once

#include <string>

#include "workloads/layers/attention.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

struct SharedBlock {
  std::string name = "shared_transformer";
  std::string first{};  // full name of the module that holds its parameters; empty: this one
  Norm before{};
  Attention attention{};
  Norm between{};
  Mlp mlp{};
  std::string linear = "linear";  // the layer's own matrix

  bool operator==(const SharedBlock&) const = default;
};

// `embedded`: the tokens' embeddings, of x's shape.
Value run(Eager& e, const SharedBlock& block, const Value& x, const Value& embedded,
          Context& context);

}  // namespace shardsim::models
