// The pieces of a concatenation are brought to one sharding before they are joined, where they and
// the result do not all lie alike: one sdy.reshard for each that differs.
//
//   concatenate([{"x"}, {}], [{}, {}]) over dimension 1 -> [{}, {}]
//     both pieces as [{"x"}, {}]; the result too, and gathered once
//   concatenate([{}, {"x"}], [{}, {"x"}]) over dimension 1 -> [{}, {}]
//     a dimension that is joined cannot stay split: "x" goes to dimension 0
//
// What a dimension is split over is voted for by elements: all prefixes of what it is split over
// anywhere stand for election, with the sizes of the tensors that agree; dimensions that are not
// joined win ties, then the larger split. The winner's axes are taken from the others, and so on.
// Source: openxla/shardy shardy/dialect/sdy/transforms/export/explicit_reshards_util.cc.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// `program` is what propagate() left. Throws InputError: shardings that do not fit their tensors.
void align_pieces(stablehlo::Module& program);

}  // namespace shardsim::spmd
