// What a kernel reads and writes of memory, on one device: its operands and results, but for
//
//   a cache's append   the rows, read and written in the cache's type, as many as it has place for
//   experts            matrices of those that some token visits (Routing)
//   parts              what lies within another operand is read once: values of latent attention
//   look-ups           a row of the table for each that is made
//   in place           what a result takes the place of, where nothing reads what was there
#pragma once

#include <vector>

#include "strategies/layout/projection.hpp"
#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

[[nodiscard]] Bytes moved_bytes(const Workload& workload, const std::vector<Value>& values,
                                const Op& op, const FactorAxes& factors, const Item& item);

}  // namespace shardsim
