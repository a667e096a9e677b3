// Megatron's string for which stage has what (pipeline_model_parallel_layout).
//
//   E embedding   t layer   m layer of multi-token prediction   L loss   | next stage   , nothing
//   x*n  x n times         (...)*n  what is in brackets n times, stages with it
//
//   "Et*3|(tt|)*2,m|L"  ->  Ettt|tt|tt|m|L         5 stages, of 7 layers
//
// The stages are dealt to ranks one after another, chunk by chunk; a stage may be empty. Brackets
// do not nest. Refused, as Megatron does: stages that the ranks do not divide, another number of
// virtual stages or of layers than told, an E that is not first, an L that is not last, a t after
// an m, an m that is not in the last stage of its rank, m in two stages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "strategies/layout/stages.hpp"

namespace shardsim {

// "Ettt", "tt", "tt", "m", "L".
[[nodiscard]] std::vector<std::string> expand_layout(std::string_view layout, const Place& place);

// Of a request that has a layout.
[[nodiscard]] std::vector<StageLayers> stages_of_layout(const StagesRequest& request,
                                                        const Place& place);

}  // namespace shardsim
