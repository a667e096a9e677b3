// Modules in the order in which transformers' attention runs them, for runtimes that follow modules
// (buckets by the order of gradients, gathers as modules are entered):
//
//   a plan's, as Megatron-Core and torchtitan    q_proj, k_proj, v_proj, q_norm, k_norm
//   transformers (models/qwen3/modeling_qwen3.py: q_norm(q_proj(x)), ...)
//                                                q_proj, q_norm, k_proj, k_norm, v_proj
#pragma once

#include <optional>

#include "strategies/runtime/runtime.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Does the runtime take gradients or parameters as modules are run?
[[nodiscard]] bool follows_modules(const Runtime& runtime);

// Norms directly behind the products that they read, in backward and where that computes again
// likewise. Nothing: no order changes.
[[nodiscard]] std::optional<Workload> with_norms_behind_products(const Workload& workload);

}  // namespace shardsim
