#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/overloaded.hpp"
#include "experiments/experiment.hpp"
#include "experiments/experiment_profile.hpp"
#include "experiments/program.hpp"
#include "plan/repeat_plan.hpp"
#include "strategies/compile/kernel_lists.hpp"
#include "strategies/compile/passes.hpp"
#include "strategies/layout/stage_ranges.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "strategies/specs/uneven_shards.hpp"
#include "workloads/graph/graph_json.hpp"
#include "workloads/models/model_tree.hpp"
#include "workloads/views/tree_leaves.hpp"

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
  return load_model_config(JsonReader(*model.model, experiment.written.subject),
                           experiment.directory);
}

// The op graph of a model's step.
struct StepGraph {
  Step step;  // as it is computed, of the batch that enters
  Workload workload;
  std::vector<std::string> warnings;  // of that batch, and of what is not modelled
  Seconds time{0};                    // that it took to make
};

// Where in the order of the model's blocks each chunk of a pipeline begins, for what counts layers
// from there.
std::vector<std::size_t> chunks_of(const ModelConfig& config, Step step, const Strategy& strategy) {
  using Layers = Rematerialization::Layers;
  const Layers layers = step.rematerialization.layers;
  if (!strategy.pipeline || (layers != Layers::every && layers != Layers::block)) return {};
  step.kind = StepKind::forward;
  const Workload workload = build_step(config, step, {}, SharedParameters::copies);
  std::vector<std::size_t> begins;
  for (const StageRange& stage : stage_ranges(workload, *strategy.pipeline)) {
    begins.push_back(stage.first);
  }
  return begins;
}

// Documents in a sequence are told apart by kernels that go from one to the next, and over devices
// by splitting each (Transformer Engine's "thd").
void check_documents(const Step& step, const Strategy& strategy) {
  if (!step.documents) return;
  if (!strategy.kernels.is_null() && kernel_choice(*strategy.kernels).attention == "unfused") {
    throw InputError(
        {strategy.place.file, strategy.place.pointer + "/kernels"},
        "unfused attention computes the scores of a whole sequence, whatever documents "
        "it is of: leave \"documents\" out, or name another \"attention\"");
  }
  if (!strategy.sequence_axes.empty() && !strategy.context.balanced) {
    throw InputError({strategy.place.file, strategy.place.pointer + "/context"},
                     "\"documents\" over parts of a sequence in order are not supported: what each "
                     "device computes is not known; \"balanced\": true splits every document");
  }
}

StepGraph make_graph(const ModelStep& model, const Experiment& experiment) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto& [mesh, roles, strategy, allow_uneven] = model.partitioning;
  const Place& place = experiment.written.step;
  const ModelConfig config = config_of(model, experiment);
  EnteringBatch entering = entering_batch(model.step, place, strategy, mesh, allow_uneven);
  Step step = model.step;
  check_documents(step, strategy);
  step.batch = entering.examples;
  if (strategy.experts) {
    step.exchange = strategy.experts->exchange;
    step.exchange->splits_sequence = strategy.sequence_parallel;
  }
  step.rematerialization.to_end = strategy.runtime.repeats == RepeatForward::to_end;
  step.latents_first = strategy.latents_first;
  step.split_predictors = strategy.latents_first && !strategy.model_axis.empty();
  step.split_latents = strategy.split_latents && !strategy.model_axis.empty();
  const SharedParameters shared =
      strategy.pipeline ? SharedParameters::copies : SharedParameters::one;
  Workload workload = build_step(config, step, place, shared, chunks_of(config, step, strategy));
  pad_vocabulary(workload, strategy.vocabulary_multiple);
  const Seconds time(std::chrono::duration<double>(Clock::now() - begin).count());
  std::vector<std::string> warnings = warnings_of(step);
  warnings.insert(warnings.begin(), entering.warnings.begin(), entering.warnings.end());
  return {std::move(step), std::move(workload), std::move(warnings), time};
}

constexpr std::string_view graph_pass = "graph";

CompiledStep compile_model(const ModelStep& model, const Experiment& experiment);

// A prefill, then the decoding of one further token so often, in one plan.
CompiledStep compile_generation(const ModelStep& model, const Experiment& experiment) {
  ModelStep part = model;
  part.step = prefill_of(model.step);
  CompiledStep step = compile_model(part, experiment);
  const std::int64_t further = model.step.generate - 1;
  if (further == 0) return step;
  part.step =
      decode_of(model.step, prompt_tokens(config_of(model, experiment), *model.step.sequence,
                                          model.step.target_sequence));
  step.warnings.push_back(
      fmt::format("each of {} decoding steps is planned behind {} tokens, as many as there are on "
                  "average",
                  further, part.step.context));
  const CompiledStep decoding = compile_model(part, experiment);
  std::size_t tasks = 0;
  for (const Program& program : decoding.plan.programs) tasks += program.tasks.size();
  const std::size_t most_tasks = std::size_t{1} << 24;
  if (tasks > most_tasks / static_cast<std::size_t>(further)) {
    throw InputError({experiment.written.step.file, experiment.written.step.pointer + "/generate"},
                     fmt::format("{} decoding steps of {} tasks are more than {}: plan one, "
                                 "\"step\": \"decode\"",
                                 further, tasks, most_tasks));
  }
  step.plan = followed_by(std::move(step.plan), decoding.plan, further);
  return step;
}

CompiledStep compile_model(const ModelStep& model, const Experiment& experiment) {
  if (model.step.kind == StepKind::generate) return compile_generation(model, experiment);
  const Partitioning& partitioning = model.partitioning;
  const StepGraph graph = make_graph(model, experiment);
  CompiledStep step = compile(graph.workload, graph.step, partitioning.mesh, partitioning.strategy);
  step.times.insert(step.times.begin(), {graph_pass, graph.time});
  step.warnings.insert(step.warnings.begin(), graph.warnings.begin(), graph.warnings.end());
  warn_of_uneven(partitioning, step.parameters, step.rules, step.warnings);
  return step;
}

[[noreturn]] void fail_without_operations(const Experiment& experiment) {
  throw InputError(experiment.written.subject,
                   "a parameter tree has no operations: its specs can be shown, its step cannot "
                   "be planned; name a \"model\"");
}

SpecTable step_specs(const ModelStep& model, const Experiment& experiment) {
  CompiledStep step = compile_model(model, experiment);
  SpecTable table;
  table.subject = step.plan.subject.model;
  table.mesh = model.partitioning.mesh;
  table.of_a_step = true;
  table.trains = has_gradients(model.step);
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

ParameterTree viewed_tree(const ModelConfig& config, const ModelStep& model) {
  Step step = model.step;
  step.kind = StepKind::forward;
  step.outputs.clear();
  return parameter_tree(build_step(config, step), step.optimizer.parameters, {config.path, ""});
}

// The train state of a model's step, of its parameters as they are stored.
SpecTable state_specs(const ModelStep& model, const Experiment& experiment,
                      const StateOptimizer& state) {
  const OptimizerOptions& kept = model.step.optimizer;
  const ModelConfig config = config_of(model, experiment);
  ParameterTree tree = model.step.view.empty() ? model_tree(config) : viewed_tree(config, model);
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

std::vector<NamedPass> compile_passes() {
  std::vector<NamedPass> all = {{graph_pass, "the ops of one step, unsharded"}};
  for (const Pass& pass : passes()) all.push_back({pass.name, pass.makes});
  return all;
}

Json compile_until(const Experiment& experiment, std::string_view pass) {
  return std::visit(
      Overloaded{[&](const ModelStep& model) {
                   const auto& [mesh, roles, strategy, allow_uneven] = model.partitioning;
                   const StepGraph graph = make_graph(model, experiment);
                   return pass == graph_pass
                              ? graph_to_json(graph.workload)
                              : compile_until(pass, graph.workload, graph.step, mesh, strategy);
                 },
                 [&](const ProgramStep&) -> Json {
                   throw InputError(experiment.written.subject,
                                    "a program is partitioned as XLA does it, without the passes "
                                    "of a strategy: name a \"model\"");
                 },
                 [&](const TreeSubject&) -> Json { fail_without_operations(experiment); }},
      experiment.subject);
}

CompiledStep compile_experiment(const Experiment& experiment) try {
  return std::visit(
      Overloaded{[&](const ModelStep& model) { return compile_model(model, experiment); },
                 [&](const ProgramStep& program) {
                   if (experiment.machine.empty()) return compile_program(program, nullptr);
                   const Profile profile = profile_of(experiment);
                   return compile_program(program, &profile);
                 },
                 [&](const TreeSubject&) -> CompiledStep { fail_without_operations(experiment); }},
      experiment.subject);
} catch (const InputError& error) {
  rethrow_in(experiment.file, error);
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
