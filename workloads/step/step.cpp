#include "workloads/step/step.hpp"

#include <fmt/format.h>

#include "workloads/step/backward.hpp"
#include "workloads/step/outputs.hpp"
#include "workloads/step/shared_parameters.hpp"

namespace shardsim {

std::string_view name_of(StepKind kind) { return kind == StepKind::train ? "train" : "forward"; }

Workload build_step(const ModelConfig& config, const Step& step, const Place& place,
                    SharedParameters shared, const std::vector<std::size_t>& chunks) {
  WorkloadOptions part{.batch = step.batch,
                       .sequence = step.sequence,
                       .compute_dtype = step.precision.compute,
                       .weights = step.precision.weights,
                       .index_dtype = step.precision.indices,
                       .place = place};
  check_entering(config, part);
  if (step.batch % step.microbatches != 0) {
    throw InputError(place.file.empty() ? Place{config.path, ""}
                                        : Place{place.file, place.pointer + "/microbatches"},
                     fmt::format("a batch of {} does not divide into {} microbatches", step.batch,
                                 step.microbatches));
  }
  part.batch = step.batch / step.microbatches;
  Workload workload = build_workload(config, part);
  if (shared == SharedParameters::copies) copy_shared_parameters(workload);
  const Place outputs{place.file, place.pointer + "/outputs"};
  if (!step.outputs.empty() && step.microbatches > 1) {
    throw InputError(outputs, "outputs of a step of several microbatches are not supported");
  }
  add_outputs(workload, step.outputs, outputs);
  if (step.kind == StepKind::train) {
    add_backward(workload, step.rematerialization, chunks);
    add_optimizer(workload, step.optimizer);
  }
  return workload;
}

}  // namespace shardsim
