// Layers dealt out to stages by what they cost, the last product of the model with them, as
// nanotron does ("layers": "by-cost"):
//
//   a layer      4 * heads * head_dim * hidden of its attention (of the query's heads, however many
//                keys have) and the elements of its feed-forward matrices
//   the head     vocabulary * hidden; embedding, norms and the loss: nothing
//
// Stages are filled in the model's order, each to its share of the whole: the block with which the
// sum goes beyond (stage + 1) / stages is the stage's last one.
//
// Example: 16 layers of 67 million and a head of 268 million, 4 layers' worth, over 2 stages: 10
// layers are half of it, the 11th goes beyond: 11 layers, and 5 with the head.
//
// Source: nanotron, src/nanotron/models/base.py, build_model (@01de8d9), models/llama.py,
// get_block_compute_costs.
#pragma once

#include "strategies/pipeline.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// A pipeline that deals layers out by cost, with those of each stage filled in. Throws InputError
// where a rank has several stages, and where a stage is left with nothing, as nanotron does.
[[nodiscard]] Pipeline dealt_by_cost(const Workload& workload, Pipeline pipeline);

}  // namespace shardsim
