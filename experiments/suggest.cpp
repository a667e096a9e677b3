#include "experiments/suggest.hpp"

#include <algorithm>
#include <optional>

#include "base/for_each_index.hpp"
#include "base/json.hpp"
#include "experiments/experiment_profile.hpp"

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
  if (several && !strategy.shards_parameters && has_gradients(model.step)) {
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
  if (is_inference(step.kind)) return;
  const std::int64_t most =
      step.batch / devices_over(model.partitioning.mesh, model.partitioning.strategy.batch_axes);
  std::vector<std::int64_t> counts = {2 * step.microbatches, 4 * step.microbatches, most};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const std::int64_t count : counts) {
    if (count <= step.microbatches || count > most || step.batch % count != 0) continue;
    changes.push_back({"workload.microbatches", std::to_string(count)});
  }
  if (!has_gradients(step)) return;  // there is no backward pass to compute again for
  using Policy = Rematerialization::Policy;
  const Policy policy = step.rematerialization.policy;
  if (policy == Policy::none) changes.push_back({"workload.rematerialization", "selective"});
  if (policy != Policy::full) changes.push_back({"workload.rematerialization", "full"});
}

// What of a cache there is place for: fewer sequences, or shorter ones.
std::vector<Setting> cache_changes(const Prediction& prediction) {
  const auto* model = std::get_if<ModelStep>(&prediction.experiment.subject);
  if (model == nullptr || !is_inference(model->step.kind)) return {};
  const Step& step = model->step;
  std::int64_t cache = 0;
  for (const Buffer& buffer : prediction.step.plan.programs.front().buffers) {
    if (buffer.category == BufferCategory::cache) cache += buffer.bytes.count();
  }
  const std::int64_t place =
      prediction.result.capacity.count() - (prediction.result.process().count() - cache);
  if (cache == 0 || place <= 0 || place >= cache) return {};
  const double share = static_cast<double>(place) / static_cast<double>(cache);
  const auto part_of = [&](std::int64_t all, std::int64_t multiple) {
    return static_cast<std::int64_t>(share * static_cast<double>(all)) / multiple * multiple;
  };
  std::vector<Setting> changes;
  const std::int64_t fewer = part_of(
      step.batch, devices_over(model->partitioning.mesh, model->partitioning.strategy.batch_axes));
  if (fewer > 0) changes.push_back({"workload.batch", std::to_string(fewer)});
  const bool decodes = step.kind == StepKind::decode;
  const std::int64_t own = decodes ? 1 + step.generate : step.generate;
  const std::int64_t before = decodes ? step.context : step.sequence.value_or(0);
  const std::int64_t shorter = part_of(before + own, step.block_size) - own;
  if (shorter > 0) {
    changes.push_back(
        {decodes ? "workload.context" : "workload.sequence", std::to_string(shorter)});
  }
  if (bits_of(step.precision.kv_cache.value_or(step.precision.compute)) > 8) {
    changes.push_back({"workload.precision.kv_cache", "fp8"});
  }
  return changes;
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

Suggestion suggestion_of(const Result& result) {
  return {
      .settings = {}, .step = result.step_time, .peak = result.process(), .fits = result.fits()};
}

struct Tried {
  Experiment experiment;
  Suggestion suggestion;
};

// Nothing where the change is no valid experiment: sizes that do not divide, say.
std::optional<Tried> tried(const Profile& profile, const Experiment& experiment,
                           const Setting& change) {
  try {
    Json document = *experiment.resolved;
    apply_override(document, change.path, change.value);
    Experiment changed = read_experiments(document, experiment.file).at(0);
    const Prediction prediction = predict_on(profile, changed, {});
    return Tried{std::move(changed), suggestion_of(prediction.result)};
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool is_shorter(const Suggestion& a, const Suggestion& b) { return a.step < b.step; }

}  // namespace

std::vector<Suggestion> suggest_to_fit(const Prediction& prediction) {
  if (prediction.result.fits()) return {};
  std::vector<Suggestion> fitting;
  Suggestion nearest = suggestion_of(prediction.result);
  Experiment from = prediction.experiment;
  const Profile profile = profile_of(from);  // no change is one of the machine
  for (int round = 0; round < most_rounds && fitting.empty(); ++round) {
    const std::vector<Setting> kept = nearest.settings;
    std::optional<Experiment> next;
    std::vector<Setting> changes = changes_of(from);
    if (round == 0) {
      for (Setting& change : cache_changes(prediction)) changes.push_back(std::move(change));
    }
    std::vector<std::optional<Tried>> outcomes(changes.size());
    for_each_index(changes.size(),
                   [&](std::size_t i) { outcomes[i] = tried(profile, from, changes[i]); });
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (!outcomes[i]) continue;
      auto& [experiment, suggestion] = *outcomes[i];
      suggestion.settings = kept;
      std::erase_if(suggestion.settings,
                    [&](const Setting& one) { return one.path == changes[i].path; });
      suggestion.settings.push_back(changes[i]);
      if (suggestion.fits) fitting.push_back(suggestion);
      if (suggestion.peak >= nearest.peak) continue;
      nearest = std::move(suggestion);
      next = std::move(experiment);
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
