// What the forms of a reshard's report share.
#pragma once

#include <string>
#include <vector>

#include "experiments/reshard_experiment.hpp"

namespace shardsim {

struct NamedPlan {
  std::string name;
  const ReshardPlan& plan;
  bool chosen;
};

// Direct, the best other way and Pathways', as far as they are there.
[[nodiscard]] std::vector<NamedPlan> plans_of(const ReshardedGroup& group);
// "source", "transfer", "target".
[[nodiscard]] std::string part_name(ReshardPart part);
// In whose axes the sharding after the step is.
[[nodiscard]] const Mesh& mesh_after(const ReshardExperiment& experiment,
                                     const PlannedReshardStep& step);
// Without a machine nothing is.
[[nodiscard]] bool is_timed(const ReshardExperiment& experiment);
// "all-gather", "transfer".
[[nodiscard]] std::string kind_of(const PlannedReshardStep& step);

}  // namespace shardsim
