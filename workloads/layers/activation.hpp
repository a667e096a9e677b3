// Activations by the names of transformers' ACT2FN, as the operators that they are made of: GELU is
// one kernel, "gelu_new" a line of Python that keeps four tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

[[nodiscard]] const std::vector<std::string>& known_activations();
// Whether it has parameters of its own, in a module "act_fn" beside the projections: xIELU's two
// numbers (arXiv:2411.13010), with two more that are buffers.
[[nodiscard]] bool learns(std::string_view activation);
// Asserts that the name is known.
Value activate(Eager& e, std::string_view name, const Value& x);

}  // namespace shardsim::models
