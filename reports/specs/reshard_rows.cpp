#include "reports/specs/reshard_rows.hpp"

namespace shardsim {

std::vector<NamedPlan> plans_of(const ReshardedGroup& group) {
  const ReshardChoice& choice = group.choice;
  std::vector<NamedPlan> plans{{"direct", choice.direct, !choice.intermediate_is_better}};
  if (choice.intermediate) {
    plans.push_back({"intermediate", *choice.intermediate, choice.intermediate_is_better});
  }
  // Without an intermediate it is the direct way.
  if (group.pathways.intermediate && group.pathways.plan) {
    plans.push_back({"pathways", *group.pathways.plan, false});
  }
  return plans;
}

std::string part_name(ReshardPart part) {
  if (part == ReshardPart::transfer) return "transfer";
  return part == ReshardPart::source ? "source" : "target";
}

const Mesh& mesh_after(const ReshardExperiment& experiment, const PlannedReshardStep& step) {
  if (step.after_mesh) return *step.after_mesh;
  return step.part == ReshardPart::source ? experiment.source.mesh : experiment.target.mesh;
}

bool is_timed(const ReshardExperiment& experiment) { return !experiment.machine.empty(); }

std::string kind_of(const PlannedReshardStep& step) {
  switch (step.action) {
    case ReshardAction::collective:
      return std::string(name_of(step.kind));
    case ReshardAction::transfer:
      return "transfer";
    case ReshardAction::permute:
      return "permute";
    case ReshardAction::split:
      return "split";
    case ReshardAction::from_host:
      return "from-host";
    case ReshardAction::to_host:
      return "to-host";
  }
  return {};
}

}  // namespace shardsim
