// What a step can leave of every example, beside its loss and the new state:
//
//   logits   before the loss, in fp32                  [batch, sequence, vocabulary]
//   labels   as they entered                           [batch, sequence]
//   losses   the cross entropy of each token or image  [batch, sequence]
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

[[nodiscard]] std::vector<std::string> output_names();

// Fills Workload::outputs; the workload has its forward pass alone. Throws InputError at `place`:
// an unknown output, one that is there twice.
void add_outputs(Workload& workload, const std::vector<std::string>& outputs, const Place& place);

// Those, and of a step of inference what its last op makes.
[[nodiscard]] std::vector<TensorId> outputs_of(const Workload& workload);

}  // namespace shardsim
