#include <filesystem>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "experiments/missing_key.hpp"
#include "experiments/program.hpp"
#include "hardware_profiles/plausibility.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "strategies/specs/uneven_shards.hpp"
#include "workloads/models/model_tree.hpp"

namespace shardsim {
namespace {

// A profile's name as it is, a path relative to the experiment.
std::string machine_of(const Experiment& experiment) {
  const std::filesystem::path path(experiment.machine);
  if (path.extension() != ".json" || path.is_absolute()) return experiment.machine;
  return (std::filesystem::path(experiment.directory) / path).string();
}

Profile profile_of(const Experiment& experiment) {
  Profile profile = load_profile(machine_of(experiment), experiment.machine_place);
  if (experiment.calibrations) {
    set_calibrations(profile, *experiment.calibrations, experiment.calibration_place);
  }
  return profile;
}

// XLA compiles for tori of TPUs and for clusters of GPUs.
spmd::MemoryTarget target_of(const Profile& profile) {
  return std::holds_alternative<TorusProfile>(profile.network) ? spmd::MemoryTarget::tpu
                                                               : spmd::MemoryTarget::gpu;
}

// `profile`: of the machine, null where none is given.
CompiledStep compile_program(const Experiment& experiment, const Profile* profile) {
  ProgramOptions options;
  options.mesh = experiment.mesh;
  options.like_xla = experiment.like_xla;
  if (profile != nullptr) {
    options.target = target_of(*profile);
    options.capacity = profile->device.memory_capacity.value;
  }
  CompiledStep step;
  step.plan = program_plan(program_path(experiment), options);
  return step;
}

void note_assumed(const Profile& profile, Result& result) {
  const std::string assumed = assumed_numbers(profile);
  if (!assumed.empty()) result.notes.push_back(assumed);
}

Machine machine_for(const Experiment& experiment, const Profile& profile, const Mesh& mesh) {
  const Place& place =
      experiment.slices == 1 ? experiment.machine_place : experiment.order.slices_place;
  return make_machine(profile, mesh.devices(), experiment.topology, place, experiment.slices);
}

// Parameters that JAX refuses are an error or, where the experiment allows them, a warning.
void warn_of_uneven(const Experiment& experiment, const std::vector<ParameterSharding>& parameters,
                    const std::vector<RuleUse>& rules, std::vector<std::string>& warnings) {
  for (std::string& warning :
       check_even_parameters(parameters, rules, experiment.strategy, experiment.allow_uneven)) {
    warnings.push_back(std::move(warning));
  }
}

// The tree that it names, or the parameters of its model as they are stored.
ParameterTree tree_of(const Experiment& experiment) {
  if (!experiment.tree.is_null()) {
    return read_placed_tree(JsonReader(*experiment.tree, experiment.model_place),
                            experiment.directory)
        .tree;
  }
  ParameterTree tree =
      model_tree(load_model_config(experiment.model, experiment.directory, experiment.model_place));
  for (ParameterLeaf& leaf : tree.leaves) leaf.dtype = experiment.step.optimizer.parameters;
  return tree;
}

// As the step of a model keeps them; a tree does not say.
StateTypes state_types_of(const Experiment& experiment) {
  if (!experiment.tree.is_null()) return {};
  return {experiment.step.optimizer.moments, experiment.step.optimizer.master};
}

}  // namespace

std::string program_path(const Experiment& experiment) {
  const std::filesystem::path path(experiment.program);
  if (path.empty() || path.is_absolute()) return path.string();
  return (std::filesystem::path(experiment.directory) / path).string();
}

CompiledStep compile_experiment(const Experiment& experiment) {
  if (!experiment.program.empty()) {
    if (experiment.machine.empty()) return compile_program(experiment, nullptr);
    const Profile profile = profile_of(experiment);
    return compile_program(experiment, &profile);
  }
  if (!experiment.tree.is_null()) {
    throw InputError(experiment.model_place,
                     "a parameter tree has no operations: its specs can be shown, its step cannot "
                     "be planned; name a \"model\"");
  }
  const ModelConfig config =
      load_model_config(experiment.model, experiment.directory, experiment.model_place);
  EnteringBatch entering =
      entering_batch(experiment.step, experiment.step_place, experiment.strategy, experiment.mesh,
                     experiment.allow_uneven);
  Step entered = experiment.step;
  entered.batch = entering.examples;
  const Workload workload = build_step(config, entered, experiment.step_place);
  CompiledStep step = compile(workload, entered, experiment.mesh, experiment.strategy);
  verify(step.plan);
  step.warnings.insert(step.warnings.begin(), entering.warnings.begin(), entering.warnings.end());
  warn_of_uneven(experiment, step.parameters, step.rules, step.warnings);
  return step;
}

SpecTable experiment_specs(const Experiment& experiment,
                           const std::optional<StateOptimizer>& state) {
  if (!experiment.program.empty()) {
    throw InputError(experiment.model_place,
                     "a program has no parameters by name: name a \"model\" or a \"tree\"");
  }
  if (!experiment.tree.is_null() || state) {
    const ParameterTree tree = tree_of(experiment);
    SpecTable table = state ? train_state_specs(tree, experiment.mesh, experiment.strategy, *state,
                                                state_types_of(experiment))
                            : tree_specs(tree, experiment.mesh, experiment.strategy);
    warn_of_uneven(experiment, table.parameters, table.rules, table.warnings);
    if (!experiment.step.outputs.empty()) table.outputs = compile_experiment(experiment).outputs;
    return table;
  }
  CompiledStep step = compile_experiment(experiment);
  SpecTable table;
  table.subject = step.plan.subject.model;
  table.mesh = experiment.mesh;
  table.of_a_step = true;
  table.trains = experiment.step.kind == StepKind::train;
  table.data_axes = data_axes(experiment.strategy, experiment.mesh);
  table.parameters = std::move(step.parameters);
  table.outputs = std::move(step.outputs);
  table.rules = std::move(step.rules);
  table.warnings = std::move(step.warnings);
  return table;
}

SimulationOptions simulation_options(const Experiment& experiment, const SimulationOptions& given) {
  SimulationOptions options = given;
  options.collectives = experiment.collectives;
  options.order = experiment.order;
  options.costs.told = experiment.told;
  return options;
}

Prediction predict(const Experiment& experiment, const SimulationOptions& given) {
  const SimulationOptions options = simulation_options(experiment, given);
  if (experiment.machine.empty()) {
    throw InputError({experiment.file, ""}, missing_key("machine"));
  }
  // The machine first: reading it takes less than making the plan.
  const Profile profile = profile_of(experiment);
  if (profile.device.name.empty()) {
    throw InputError(experiment.machine_place,
                     "nothing is known of the network's devices; name one, as in device=h100");
  }
  if (!experiment.program.empty()) {
    CompiledStep step = compile_program(experiment, &profile);
    Machine machine = machine_for(experiment, profile, step.plan.mesh);
    Result result = simulate(step.plan, machine, options);
    note_assumed(profile, result);
    return {experiment, std::move(machine), std::move(step), std::move(result)};
  }
  Machine machine = machine_for(experiment, profile, experiment.mesh);
  CompiledStep step = compile_experiment(experiment);
  Result result = simulate(step.plan, machine, options);
  note_assumed(profile, result);
  return {experiment, std::move(machine), std::move(step), std::move(result)};
}

}  // namespace shardsim
