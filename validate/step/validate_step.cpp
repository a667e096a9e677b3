#include "validate/step/validate_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "validate/step/collectives_alone.hpp"
#include "validate/step/serialize_streams.hpp"
#include "validate/step/validate_memory.hpp"

namespace shardsim {
namespace {

ValidatedTask describe(const Plan& plan, const Program& program, const Task& task) {
  ValidatedTask described;
  described.program = program.name;
  described.name = plan.task_name(task);
  described.task_kind = task.kind;
  switch (task.kind) {
    case TaskKind::kernel: {
      const Kernel& kernel = plan.kernels[at(task.work)];
      described.kind = name_of(kernel.kernel_class);
      described.payload = kernel.bytes;
      break;
    }
    case TaskKind::to_host:
    case TaskKind::from_host:
      described.kind = name_of(task.kind);
      described.payload = plan.kernels[at(task.work)].bytes;
      break;
    case TaskKind::collective: {
      const Collective& collective = plan.collectives[at(task.work)];
      described.kind = name_of(collective.kind);
      described.axes = plan.mesh.names_of(collective.axes);
      described.group_size = group_size(plan, collective);
      described.payload = collective.payload;
      break;
    }
    case TaskKind::transfer:
      described.kind = "message";
      described.payload = plan.transfers[at(task.work)].payload;
      break;
  }
  return described;
}

// What any rank that takes part is told, by collective.
std::vector<std::optional<Seconds>> estimates_of(const Plan& plan, Backend& backend) {
  std::vector<double> mine(plan.collectives.size(), 0);
  const auto told = backend.estimates();
  for (std::size_t i = 0; i < told.size(); ++i) mine[i] = told[i].value_or(Seconds(0)).count();
  std::vector<std::optional<Seconds>> all(plan.collectives.size());
  for (const auto& given : exchange_numbers(backend.exchange(), mine)) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] > 0) all[i] = std::max(Seconds(given[i]), all[i].value_or(Seconds(0)));
    }
  }
  return all;
}

}  // namespace

Prediction predict_to_run(const Experiment& experiment, bool overlaps_streams, RunPart part) {
  if (experiment.order.kind != DeviceOrder::Kind::automatic) {
    throw InputError(
        experiment.order.place,
        "the rank of a process is its position in the mesh: where it runs is up to what "
        "starts it (mpirun --map-by, srun --distribution)");
  }
  const SimulationOptions options = simulation_options(experiment, {});
  Prediction prediction = predict(experiment, options);
  const auto take = [&](Plan plan) {
    prediction.step.plan = std::move(plan);
    prediction.result = simulate(prediction.step.plan, prediction.machine, options);
  };
  if (part == RunPart::collectives) take(collectives_alone(prediction.step.plan));
  if (!overlaps_streams) take(serialize_streams(prediction.step.plan, prediction.result));
  if (part == RunPart::collectives) {
    prediction.result.notes.emplace_back("of the step its collectives alone, without kernels");
  }
  return prediction;
}

RunOn run_on(Backend& backend) {
  const std::vector<std::string> hosts = backend.exchange().all_gather(backend.host());
  const std::set<std::string> distinct(hosts.begin(), hosts.end());
  return {backend.name(),
          backend.library(),
          backend.exchange().size(),
          {distinct.begin(), distinct.end()}};
}

StepValidation validate_step(const Prediction& prediction, Backend& backend, const Repeats& repeats,
                             const std::function<void(int)>& begun) {
  const Plan& plan = prediction.step.plan;
  StepValidation validation;
  validation.prediction = prediction;
  validation.on = run_on(backend);
  const MeasuredStep measured = execute(plan, backend, repeats, begun);
  validation.repeats = measured.repeats;
  validation.precision = measured.precision;
  validation.settled = measured.settled;
  validation.step = {to_seconds(prediction.result.step_time), measured.step.median};
  validation.step_low = measured.step.low;
  validation.step_high = measured.step.high;
  const std::vector<std::optional<Seconds>> estimates = estimates_of(plan, backend);
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (std::size_t i = 0; i < plan.programs[p].tasks.size(); ++i) {
      const TaskTimes& simulated = prediction.result.programs[p].tasks[i];
      const Spread& spread = measured.tasks[p][i];
      ValidatedTask task = describe(plan, plan.programs[p], plan.programs[p].tasks[i]);
      task.time = {to_seconds(simulated.end - simulated.start), spread.median};
      const Task& run = plan.programs[p].tasks[i];
      if (run.kind == TaskKind::collective) task.estimated = estimates[at(run.work)];
      task.low = spread.low;
      task.high = spread.high;
      validation.tasks.push_back(std::move(task));
    }
  }
  MemoryValidation memory = validate_memory(plan, prediction.result, backend);
  validation.memory = std::move(memory.programs);
  validation.notes = backend.notes();
  validation.notes.insert(validation.notes.end(), memory.notes.begin(), memory.notes.end());
  const auto& simulated = prediction.result.notes;
  validation.notes.insert(validation.notes.end(), simulated.begin(), simulated.end());
  return validation;
}

}  // namespace shardsim
