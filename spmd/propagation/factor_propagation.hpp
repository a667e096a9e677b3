// One op's share of propagation: axes travel between its tensors along the factors they have in
// common, as far as nothing is in the way.
//
//   C[i, j] = A[i, k] B[k, j], A sharded i: x, B sharded j: x
//     both i and j of C could get x, but not both: the factor whose source is the larger tensor
//     wins, as the smaller one is cheaper to reshard
//
// 1. For each factor: the axes on which all tensors agree, the longest list where one is a prefix
//    of the other; a conflict cuts the list there.
// 2. Factors are put in order: larger source tensor first; in elementwise ops the one split
//    further; then the earlier tensor, the earlier factor.
// 3. Each tensor, results before operands, takes for each factor in that order what it can: not
//    what it replicates or leaves unreduced, not past a closed dimension, not axes that another of
//    its factors has. Operands of an elementwise op take no more than its result has room for.
// Source: openxla/shardy aggressive_factor_propagation.h, basic_factor_propagation.cc.
#pragma once

#include <vector>

#include "spmd/propagation/projection.hpp"

namespace shardsim::spmd {

enum class Direction { none, forward, backward, both };

// The directions that either, or both, allow.
[[nodiscard]] Direction either(Direction a, Direction b);
[[nodiscard]] Direction both_of(Direction a, Direction b);

struct Updated {
  std::vector<char> operands;  // by index: got axes
  std::vector<char> results;
  bool any = false;
};

// `directions` by factor.
[[nodiscard]] Updated propagate_factors(Projection& projection,
                                        const std::vector<stablehlo::Factor>& factors,
                                        const std::vector<Direction>& directions, bool elementwise);

}  // namespace shardsim::spmd
