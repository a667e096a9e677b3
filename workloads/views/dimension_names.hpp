// Names of the dimensions of a parameter's leaves, by what their labels are for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// flax' and t5x': "embed", "mlp", "heads", "kv", "vocab", "expert"; nothing: none of these.
[[nodiscard]] std::optional<std::string> flax_axis(const Workload& workload, const Dim& dim);
// levanter's; `in_of_heads`: what an output projection reads.
[[nodiscard]] std::optional<std::string> haliax_axis(const Workload& workload, const Dim& dim,
                                                     bool in_of_heads);
// A name is of one dimension: of square matrices the first has it, of heads behind what lies
// between them and their groups (gated delta rule) the groups.
void name_once(std::vector<std::optional<std::string>>& axes);

}  // namespace shardsim
