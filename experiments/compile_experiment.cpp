#include "base/json.hpp"
#include "base/overloaded.hpp"
#include "experiments/experiment.hpp"
#include "experiments/experiment_profile.hpp"
#include "experiments/program.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "strategies/specs/uneven_shards.hpp"
#include "workloads/models/model_tree.hpp"

namespace shardsim {
namespace {

// XLA compiles for tori of TPUs and for clusters of GPUs.
spmd::MemoryTarget target_of(const Profile& profile) {
  return std::holds_alternative<TorusProfile>(profile.network) ? spmd::MemoryTarget::tpu
                                                               : spmd::MemoryTarget::gpu;
}

// Parameters that JAX refuses are an error or, where the experiment allows them, a warning.
void warn_of_uneven(const Partitioning& partitioning,
                    const std::vector<ParameterSharding>& parameters,
                    const std::vector<RuleUse>& rules, std::vector<std::string>& warnings) {
  for (std::string& warning :
       check_even_parameters(parameters, rules, partitioning.strategy, partitioning.allow_uneven)) {
    warnings.push_back(std::move(warning));
  }
}

ModelConfig config_of(const ModelStep& model, const Experiment& experiment) {
  return load_model_config(model.model, experiment.directory, experiment.written.subject);
}

CompiledStep compile_model(const ModelStep& model, const Experiment& experiment) {
  const Partitioning& partitioning = model.partitioning;
  const Place& place = experiment.written.step;
  const ModelConfig config = config_of(model, experiment);
  const EnteringBatch entering = entering_batch(model.step, place, partitioning.strategy,
                                                partitioning.mesh, partitioning.allow_uneven);
  Step step = model.step;
  step.batch = entering.examples;
  const Workload workload = build_step(config, step, place);
  CompiledStep compiled = compile(workload, step, partitioning.mesh, partitioning.strategy);
  verify(compiled.plan);
  compiled.warnings.insert(compiled.warnings.begin(), entering.warnings.begin(),
                           entering.warnings.end());
  warn_of_uneven(partitioning, compiled.parameters, compiled.rules, compiled.warnings);
  return compiled;
}

SpecTable step_specs(const ModelStep& model, const Experiment& experiment) {
  CompiledStep step = compile_model(model, experiment);
  SpecTable table;
  table.subject = step.plan.subject.model;
  table.mesh = model.partitioning.mesh;
  table.of_a_step = true;
  table.trains = model.step.kind == StepKind::train;
  table.data_axes = data_axes(model.partitioning.strategy, model.partitioning.mesh);
  table.parameters = std::move(step.parameters);
  table.outputs = std::move(step.outputs);
  table.rules = std::move(step.rules);
  table.warnings = std::move(step.warnings);
  return table;
}

// Of a tree's parameters, and where it is asked for the rest of the train state.
SpecTable parameter_specs(const ParameterTree& tree, const Partitioning& partitioning,
                          const std::optional<StateOptimizer>& state, const StateTypes& types) {
  const auto& [mesh, roles, strategy, allow_uneven] = partitioning;
  SpecTable table = state ? train_state_specs(tree, mesh, strategy, *state, types)
                          : tree_specs(tree, mesh, strategy);
  warn_of_uneven(partitioning, table.parameters, table.rules, table.warnings);
  return table;
}

// The train state of a model's step, of its parameters as they are stored.
SpecTable state_specs(const ModelStep& model, const Experiment& experiment,
                      const StateOptimizer& state) {
  const OptimizerOptions& kept = model.step.optimizer;
  ParameterTree tree = model_tree(config_of(model, experiment));
  for (ParameterLeaf& leaf : tree.leaves) leaf.dtype = kept.parameters;
  SpecTable table = parameter_specs(tree, model.partitioning, state, {kept.moments, kept.master});
  if (!model.step.outputs.empty()) table.outputs = compile_model(model, experiment).outputs;
  return table;
}

}  // namespace

CompiledStep compile_program(const ProgramStep& program, const Profile* profile) {
  ProgramOptions options;
  options.mesh = program.mesh.value_or(Mesh());
  options.like_xla = program.like_xla;
  if (profile != nullptr) {
    options.target = target_of(*profile);
    options.capacity = profile->device.memory_capacity.value;
  }
  CompiledStep step;
  step.plan = program_plan(program.path, options);
  return step;
}

CompiledStep compile_experiment(const Experiment& experiment) {
  return std::visit(
      Overloaded{[&](const ModelStep& model) { return compile_model(model, experiment); },
                 [&](const ProgramStep& program) {
                   if (experiment.machine.empty()) return compile_program(program, nullptr);
                   const Profile profile = profile_of(experiment);
                   return compile_program(program, &profile);
                 },
                 [&](const TreeSubject&) -> CompiledStep {
                   throw InputError(experiment.written.subject,
                                    "a parameter tree has no operations: its specs can be shown, "
                                    "its step cannot be planned; name a \"model\"");
                 }},
      experiment.subject);
}

SpecTable experiment_specs(const Experiment& experiment,
                           const std::optional<StateOptimizer>& state) {
  const Place& place = experiment.written.subject;
  return std::visit(
      Overloaded{
          [&](const ModelStep& model) {
            return state ? state_specs(model, experiment, *state) : step_specs(model, experiment);
          },
          [&](const ProgramStep&) -> SpecTable {
            throw InputError(place,
                             "a program has no parameters by name: name a \"model\" or a \"tree\"");
          },
          [&](const TreeSubject& subject) {
            const PlacedTree placed =
                read_placed_tree(JsonReader(*subject.tree, place), experiment.directory);
            return parameter_specs(placed.tree, subject.partitioning, state, {});
          }},
      experiment.subject);
}

}  // namespace shardsim
