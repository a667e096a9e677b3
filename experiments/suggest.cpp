#include "experiments/suggest.hpp"

#include <algorithm>
#include <optional>

#include "base/json.hpp"

namespace shardsim {
namespace {

std::int64_t devices_over(const Mesh& mesh, const std::vector<std::string>& axes) {
  std::int64_t devices = 1;
  for (const MeshAxis& axis : mesh.axes()) {
    if (std::find(axes.begin(), axes.end(), axis.name) != axes.end()) devices *= axis.size;
  }
  return devices;
}

void add_strategy_changes(const ModelStep& model, std::vector<Setting>& changes) {
  const auto& [mesh, roles, strategy, allow_uneven] = model.partitioning;
  if (strategy.splits_model && !strategy.sequence_parallel && model.step.sequence) {
    changes.push_back({"strategy.sequence_parallel", "true"});
  }
  const bool several = devices_over(mesh, strategy.batch_axes) > 1;
  if (several && !strategy.shards_parameters && model.step.kind == StepKind::train) {
    for (int stage = strategy.zero_stage + 1; stage <= 2; ++stage) {
      changes.push_back({"strategy.zero_stage", std::to_string(stage)});
    }
  }
  const bool one_axis = strategy.batch_axes.size() == 1 && strategy.zero_stage == 0;
  if (several && one_axis && (strategy.name == "dp" || strategy.name == "replicate")) {
    changes.push_back({"strategy.name", "fsdp"});
  }
  if (several && one_axis && strategy.name == "tp") {
    changes.push_back({"strategy.name", "fsdp+tp"});
  }
  const Gathers& gathers = strategy.runtime.gathers;
  const bool keeps = gathers.kept == Kept::backward || gathers.slices;
  if (strategy.shards_parameters && keeps) {
    changes.push_back({"strategy.reshard_after_forward", "true"});
  }
}

void add_step_changes(const ModelStep& model, std::vector<Setting>& changes) {
  const Step& step = model.step;
  const std::int64_t most =
      step.batch / devices_over(model.partitioning.mesh, model.partitioning.strategy.batch_axes);
  std::vector<std::int64_t> counts = {2 * step.microbatches, 4 * step.microbatches, most};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const std::int64_t count : counts) {
    if (count <= step.microbatches || count > most || step.batch % count != 0) continue;
    changes.push_back({"workload.microbatches", std::to_string(count)});
  }
  if (step.kind == StepKind::forward) return;  // there is no backward pass to compute again for
  using Policy = Rematerialization::Policy;
  const Policy policy = step.rematerialization.policy;
  if (policy == Policy::none) changes.push_back({"workload.rematerialization", "selective"});
  if (policy != Policy::full) changes.push_back({"workload.rematerialization", "full"});
}

// Of a program nothing: its text says all.
std::vector<Setting> changes_of(const Experiment& experiment) {
  std::vector<Setting> changes;
  if (const auto* model = std::get_if<ModelStep>(&experiment.subject)) {
    add_strategy_changes(*model, changes);
    add_step_changes(*model, changes);
  }
  return changes;
}

// Nothing where the change is no valid experiment: sizes that do not divide, say.
std::optional<Prediction> tried(const Experiment& experiment, const Setting& change) {
  try {
    Json document = *experiment.resolved;
    apply_override(document, change.path, change.value);
    std::vector<Experiment> changed = read_experiments(document, experiment.file);
    return predict(changed.at(0), {});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Suggestion suggestion_of(std::vector<Setting> settings, const Prediction& prediction) {
  return {.settings = std::move(settings),
          .step = prediction.result.step_time,
          .peak = prediction.result.peak(),
          .fits = prediction.result.fits()};
}

bool is_shorter(const Suggestion& a, const Suggestion& b) { return a.step < b.step; }

}  // namespace

std::vector<Suggestion> suggest_to_fit(const Prediction& prediction) {
  if (prediction.result.fits()) return {};
  std::vector<Suggestion> fitting;
  Suggestion nearest = suggestion_of({}, prediction);
  Experiment from = prediction.experiment;
  for (int round = 0; round < most_rounds && fitting.empty(); ++round) {
    const std::vector<Setting> kept = nearest.settings;
    std::optional<Experiment> next;
    for (const Setting& change : changes_of(from)) {
      const std::optional<Prediction> after = tried(from, change);
      if (!after) continue;
      std::vector<Setting> settings = kept;
      std::erase_if(settings, [&](const Setting& one) { return one.path == change.path; });
      settings.push_back(change);
      Suggestion suggestion = suggestion_of(std::move(settings), *after);
      if (suggestion.fits) fitting.push_back(suggestion);
      if (suggestion.peak >= nearest.peak) continue;
      nearest = std::move(suggestion);
      next = after->experiment;
    }
    if (!next) break;
    from = std::move(*next);
  }
  if (fitting.empty() && !nearest.settings.empty()) return {nearest};
  std::stable_sort(fitting.begin(), fitting.end(), is_shorter);
  if (fitting.size() > most_suggestions) fitting.resize(most_suggestions);
  return fitting;
}

}  // namespace shardsim
