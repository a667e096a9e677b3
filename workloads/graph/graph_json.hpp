// An op graph as JSON, to look at: labels, and the ops of every kind of block with what they read
// and make.
//
//   {"labels": [{"name": "batch", "size": 8, "role": "batch"}, ...],
//    "blocks": [{"block": "model.layers.{}", "layers": "0-31",
//                "forward": [{"name": "model.layers.{}.mlp.up_proj", "op": "matmul",
//                             "reads": ["x [batch, sequence, hidden]", ...], "makes": [...]}]}]}
#pragma once

#include "base/json_reader.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

[[nodiscard]] Json graph_to_json(const Workload& workload);

}  // namespace shardsim
