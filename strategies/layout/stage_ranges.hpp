// Which part of the model each stage of a pipeline is: ranges of Workload::order, in its order.
//
//   order     embedding, 8 layers, head             2 stages of 4 layers
//   stage 0   embedding, layers 0 to 3              carries go from layer 3 to layer 4
//   stage 1   layers 4 to 7, head
//
// What comes before the first layer is the embedding, what comes after the last one the loss.
// A step without a pipeline is one stage.
#pragma once

#include <cstddef>
#include <vector>

#include "strategies/pipeline.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct StageRange {
  std::size_t first = 0;  // of Workload::order
  std::size_t count = 0;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};

[[nodiscard]] std::vector<StageRange> one_stage(const Workload& workload);

// Throws InputError for what cannot be cut: a model with something between its layers (an encoder
// and a decoder), a value that another stage makes and that is not carried from layer to layer, a
// parameter that two stages share, a stage with nothing in it.
[[nodiscard]] std::vector<StageRange> stage_ranges(const Workload& workload,
                                                   const Pipeline& pipeline);

}  // namespace shardsim
