// compile(workload, mesh, strategy) -> plan: shardings are assigned, propagated, and what must be
// communicated is inserted.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "strategies/strategy.hpp"
#include "workloads/build.hpp"
#include "workloads/op_graph.hpp"

namespace shardsim {

// How one parameter lies on the mesh: what `shardsim specs` prints.
struct ParameterSharding {
  std::string name;  // with "{}" for the layer
  std::vector<std::int64_t> shape;
  std::int64_t instances = 1;
  std::string assigned_by;     // "rule 2: .*kernel", "fsdp: dimension 0", ...
  PartitionSpec spec;          // as stored, between steps
  PartitionSpec compute_spec;  // as ops read it
  PartitionSpec gradient_spec;
  PartitionSpec optimizer_spec;
  std::vector<std::int64_t> shard_shape;  // padded
  Bytes bytes_per_device{0};              // of the stored shard, one instance
  Bytes padding_per_device{0};            // of that, padding
};

struct CompiledStep {
  Plan plan;
  std::vector<ParameterSharding> parameters;
  std::vector<std::string> warnings;  // e.g. "rule 3 is shadowed", "large tensor replicated"
};

// `workload` has its backward pass and optimizer. Throws InputError: a rule that matches nothing,
// an axis used twice in a spec, a spec longer than the tensor's rank.
[[nodiscard]] CompiledStep compile(const Workload& workload, const OptimizerOptions& optimizer,
                                   const Mesh& mesh, const StrategyOptions& strategy);

}  // namespace shardsim
