// compile(workload, mesh, strategy) -> plan: shardings are assigned, propagated, and what must be
// communicated is inserted, pass by pass (passes.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "base/owned_json.hpp"
#include "plan/plan.hpp"
#include "strategies/specs/spec_table.hpp"
#include "strategies/strategy.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

struct PassTime {
  std::string_view pass;
  Seconds time{0};
};

struct CompiledStep {
  Plan plan;
  std::vector<ParameterSharding> parameters;
  std::vector<ParameterSharding> outputs;  // Workload::outputs, as they leave the step
  std::vector<RuleUse> rules;              // for parameters
  std::vector<std::string> warnings;       // e.g. "rule 3 is shadowed", "large tensor replicated"
  OwnedJson layout;                        // what lies where, as it may be written by hand
  std::vector<PassTime> times;             // of the passes, in order
};

// `workload` is the step's (build_step): with its backward pass and optimizer, or neither. Throws
// InputError: a rule that matches nothing, an axis used twice in a spec, a spec longer than the
// tensor's rank.
[[nodiscard]] CompiledStep compile(const Workload& workload, const Step& step, const Mesh& mesh,
                                   const Strategy& strategy);
// The station after the pass of the name `last`, one of passes().
[[nodiscard]] Json compile_until(std::string_view last, const Workload& workload, const Step& step,
                                 const Mesh& mesh, const Strategy& strategy);

}  // namespace shardsim
