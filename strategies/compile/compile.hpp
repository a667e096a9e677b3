// compile(workload, step, mesh, strategy) -> plan: shardings are assigned, propagated, and what must
// be communicated is inserted.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "strategies/specs/spec_table.hpp"
#include "strategies/strategy.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

struct CompiledStep {
  Plan plan;
  std::vector<ParameterSharding> parameters;
  std::vector<ParameterSharding> outputs;  // Workload::outputs, as they leave the step
  std::vector<RuleUse> rules;              // for parameters
  std::vector<std::string> warnings;       // e.g. "rule 3 is shadowed", "large tensor replicated"
};

// `workload` is the step's (build_step): with its backward pass and optimizer, or neither. Throws
// InputError: a rule that matches nothing, an axis used twice in a spec, a spec longer than the
// tensor's rank.
[[nodiscard]] CompiledStep compile(const Workload& workload, const Step& step, const Mesh& mesh,
                                   const Strategy& strategy);

}  // namespace shardsim
