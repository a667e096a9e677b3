// What an op is on one device: its operations, and the product that it is.
//
//   einsum      [b m k] x [b k n] -> [b m n], each letter the labels that lie so: b in all three, m
//               in the first operand and the result, n in the second and the result, k in both
//               operands
//   attention   queries m, keys n, the numbers of a head k, everything else of the queries b
//
// Example: x[batch 8, sequence 4096, hidden 4096] w[ffn 14336, hidden 4096], batch over 8 devices
// and ffn over 2: b = 1, m = 4096, n = 7168, k = 4096.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.hpp"
#include "strategies/layout/projection.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Points of the space of `labels` on one device, padding included.
[[nodiscard]] std::int64_t local_points(const Workload& workload,
                                        const std::vector<LabelId>& labels,
                                        const FactorAxes& factors);

// Operations of one device.
[[nodiscard]] double local_operations(const Workload& workload, const Op& op,
                                      const FactorAxes& factors);

[[nodiscard]] KernelClass class_of(const Op& op);

// None of other kinds of ops.
[[nodiscard]] std::optional<Product> product_of(const Workload& workload, const Op& op,
                                                const FactorAxes& factors);

}  // namespace shardsim
