// eformer's analyze_sharding_strategy, as it behaves. What its docstring promises, memory per
// device, balance and communication, is summarize_specs of strategies/specs/spec_summary.hpp.
//
// Only the two counts of its answer are ever filled in; memory_per_device and partition_stats stay
// empty and balance_score 0, as the size that it computes for each leaf is thrown away. "Sharded"
// is every leaf whose spec is not P(), P(None, None) and axes of one device included.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition/constraints.py at 5c877a3.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

struct EformerAnalysis {
  std::int64_t total_parameters = 0;
  std::int64_t sharded_parameters = 0;
};

// `specs` has one spec per leaf. Throws RuleError (KeyError) for an axis that the mesh lacks and, a
// defect of the original kept here, for a tuple of axes.
[[nodiscard]] EformerAnalysis eformer_analysis(const ParameterTree& tree,
                                               const std::vector<PartitionSpec>& specs,
                                               const Mesh& mesh);

}  // namespace shardsim
