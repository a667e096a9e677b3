#include "checks/measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "base/gzip.hpp"
#include "base/json.hpp"
#include "base/overloaded.hpp"
#include "base/version.hpp"
#include "checks/digest.hpp"
#include "checks/metric.hpp"
#include "experiments/program.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "reports/format/figures.hpp"
#include "spmd/propagation/prepare.hpp"
#include "stablehlo/module.hpp"
#include "strategies/specs/coverage.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

constexpr std::size_t collectives_kept = 100;
constexpr std::size_t buffers_kept = 8;
constexpr std::size_t arguments_kept = 400;
constexpr std::size_t longest_section = 2000;  // characters, about a screen's line wrapped

Json shortened(const Json& resolved) {
  Json settings = Json::object();
  for (const auto& [section, value] : resolved.items()) {
    if (section == "name") continue;
    const bool is_long =
        value.dump(-1, ' ', false, Json::error_handler_t::replace).size() > longest_section;
    settings[section] = is_long ? Json(digest_of(value)) : value;
  }
  return settings;
}

std::string model_digest(const Experiment& experiment) {
  const std::string& directory = experiment.directory;
  const Place& place = experiment.written.subject;
  return std::visit(
      Overloaded{
          [&](const ModelStep& model) {
            return digest_of(*load_model_config(JsonReader(*model.model, place), directory).json);
          },
          [](const ProgramStep& program) { return text_digest(read_maybe_gzip(program.path)); },
          [&](const TreeSubject& subject) {
            const JsonReader tree(*subject.tree, place);
            return digest_of(placed_tree_to_json(read_placed_tree(tree, directory)));
          }},
      experiment.subject);
}

// As explanation.hpp names them, for what has no axes.
std::string over_of(const CommunicationRow& row) {
  if (!row.axes.empty()) return fmt::format("{}", fmt::join(row.axes, ","));
  if (row.kind == name_of(TaskKind::to_host) || row.kind == name_of(TaskKind::from_host)) {
    return "host link";
  }
  return row.kind == name_of(CollectiveKind::collective_permute) ? "pairs" : "groups";
}

void add_traffic(Recorded& recorded, const std::string& name, std::int64_t calls, Bytes wire) {
  Traffic& traffic = recorded.communication[name];
  traffic.calls += calls;
  traffic.wire += wire;
}

// "model.layers.{}, backward, 32 layers" -> "model.layers.{}, backward": how many there are is told
// by the calls.
std::string place_of(const ExplainedCollective& row) {
  if (row.where.empty()) return {};
  std::string place = row.where.front();
  for (std::size_t at = place.find(", "); at != std::string::npos; at = place.find(", ", at + 1)) {
    const bool counts =
        at + 2 < place.size() && std::isdigit(static_cast<unsigned char>(place[at + 2])) != 0;
    if (!counts) continue;
    place.resize(at);
    break;
  }
  return place;
}

void record_collectives(const Explanation& explanation, Recorded& recorded) {
  std::vector<const ExplainedCollective*> rows;
  for (const ExplainedCollective& row : explanation.collectives) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->total_wire_bytes() > b->total_wire_bytes();
  });
  if (rows.size() > collectives_kept) rows.resize(collectives_kept);
  const auto fields = [](const RecordedCollective& one) {
    return std::tie(one.kind, one.over, one.where, one.dtype, one.payload);
  };
  std::vector<RecordedCollective>& list = recorded.collectives;
  for (const ExplainedCollective* row : rows) {
    RecordedCollective one = recorded_of(*row);
    const auto same = std::find_if(list.begin(), list.end(), [&](const RecordedCollective& other) {
      return fields(other) == fields(one);
    });
    if (same == list.end()) {
      list.push_back(std::move(one));
    } else {
      same->calls += one.calls;
    }
  }
  std::sort(list.begin(), list.end(),
            [&](const auto& a, const auto& b) { return fields(a) < fields(b); });
}

void record_parameters(const SpecTable& specs, Recorded& recorded) {
  std::int64_t replicated = 0;
  for (const ParameterSharding& row : specs.parameters) {
    if (is_replicated(row)) replicated += row.instances;
  }
  recorded.values["replicated_parameters"] = static_cast<double>(replicated);
  for (const ParameterSharding& row : specs.parameters) {
    recorded.shardings[row.name] = to_string(row.spec);
  }
  for (const RuleUse& rule : specs.rules) {
    if (rule.matches == 0 && !rule.built_in) recorded.unmatched_rules.push_back(rule.text);
  }
}

std::string axis_text(const stablehlo::AxisPart& part) {
  return part.size == 0 ? part.axis : fmt::format("{}:({}){}", part.axis, part.pre_size, part.size);
}

// "P(x, None)", as parameters' specs are written.
std::string spec_text(const stablehlo::Value& value) {
  std::vector<std::string> entries(value.type.dims.size(), "None");
  if (value.sharding.axes) {
    const auto& dimensions = value.sharding.axes->dimensions;
    for (std::size_t d = 0; d < dimensions.size() && d < entries.size(); ++d) {
      std::vector<std::string> axes;
      for (const stablehlo::AxisPart& part : dimensions[d].axes) axes.push_back(axis_text(part));
      if (axes.size() == 1) entries[d] = axes.front();
      if (axes.size() > 1) entries[d] = fmt::format("({})", fmt::join(axes, ", "));
    }
  }
  return fmt::format("P({})", fmt::join(entries, ", "));
}

// How the arguments of a StableHLO program lie; compiled HLO is left out.
void record_arguments(const std::string& path, Recorded& recorded) {
  const std::string text = read_maybe_gzip(path);
  if (is_hlo(text)) return;
  const stablehlo::Module program = spmd::prepare(stablehlo::parse_module(text, path));
  const stablehlo::Function& main = *program.find_function("main");
  const std::vector<stablehlo::ValueId>& arguments = main.body().arguments;
  for (std::size_t i = 0; i < arguments.size() && i < arguments_kept; ++i) {
    const stablehlo::Value& value = main.values[static_cast<std::size_t>(arguments[i])];
    if (value.type.is_tensor) recorded.shardings[fmt::format("argument {}", i)] = spec_text(value);
  }
}

SpecTable specs_of(const CompiledStep& step) {
  SpecTable specs;
  specs.subject = step.plan.subject.model;
  specs.mesh = step.plan.mesh;
  specs.of_a_step = true;
  specs.parameters = step.parameters;
  specs.rules = step.rules;
  return specs;
}

void record_step(const Prediction& prediction, Recorded& recorded) {
  const Figures figures = figures_of(prediction);
  recorded.values["step_time_s"] = seconds(figures.step);
  recorded.values["compute_time_s"] = seconds(figures.compute);
  recorded.values["contention_time_s"] = seconds(figures.contention);
  recorded.values["exposed_communication_s"] = seconds(figures.exposed);
  recorded.values["idle_time_s"] = seconds(figures.idle);
  recorded.values["fits"] = figures.fits ? 1 : 0;
  recorded.values["capacity_bytes"] = static_cast<double>(figures.capacity.count());
  recorded.values["peak_bytes"] = static_cast<double>(figures.peak.count());
  for (const BufferCategory category : categories_in_reports) {
    const std::int64_t bytes = figures.of(category).count();
    if (bytes > 0) recorded.by_category[category_key(category)] = bytes;
  }
  for (const CommunicationRow& row : figures.communication_rows) {
    add_traffic(recorded, traffic_part(row.kind, over_of(row)), row.count,
                row.wire_bytes_per_device);
  }
  for (const PeakBuffer& buffer : figures.peak_buffers) {
    if (recorded.peak_buffers.size() == buffers_kept) break;
    recorded.peak_buffers[buffer.name] += buffer.bytes.count();
  }
}

}  // namespace

bool is_replicated(const ParameterSharding& row) { return split_axes(row.stored).empty(); }

RecordedCollective recorded_of(const ExplainedCollective& row) {
  return {.kind = std::string(name_of(row.kind)),
          .over = row.over,
          .dtype = std::string(name_of(row.dtype)),
          .payload = row.payload,
          .where = place_of(row),
          .calls = row.count};
}

const Meter::MachineDigests& Meter::digests_of(const Profile& profile, const std::string& name) {
  const auto [found, is_new] = machines_.try_emplace(name);
  if (!is_new) return found->second;
  Json described = profile_to_json(profile);
  described.erase("calibration");
  found->second.profile = digest_of(described);
  std::string all;
  for (const Calibration& calibration : profile.calibrations) all += calibration_text(calibration);
  if (!all.empty()) found->second.calibration = text_digest(all);
  return found->second;
}

Measured Meter::measure(const Experiment& experiment) {
  Measured measured;
  Recorded& recorded = measured.recorded;
  recorded.name = experiment.name;
  *recorded.settings = shortened(*experiment.resolved);
  Json resolved = *experiment.resolved;
  resolved.erase("name");
  recorded.made_from.experiment = digest_of(resolved);
  recorded.made_from.model = model_digest(experiment);
  recorded.made_from.shardsim = program_version;
  if (std::holds_alternative<TreeSubject>(experiment.subject)) {
    measured.specs = experiment_specs(experiment);
    recorded.values["parameter_bytes"] =
        static_cast<double>(summarize(measured.specs).max_bytes_per_device.count());
  } else if (experiment.machine.empty()) {
    const CompiledStep step = compile_experiment(experiment);
    measured.explanation = explain(step.plan, nullptr);
    measured.specs = specs_of(step);
    for (const ExplainedCollective& row : measured.explanation.collectives) {
      add_traffic(recorded, traffic_part(name_of(row.kind), row.over), row.count,
                  row.total_wire_bytes());
    }
  } else {
    const Prediction prediction = predict(experiment, {});
    record_step(prediction, recorded);
    measured.explanation = explain(prediction.step.plan, &prediction.result);
    measured.specs = specs_of(prediction.step);
    const Profile& profile = prediction.machine.profile;
    const std::string machine = fmt::format(
        "{}\n{}\n{}\n{}", profile.path, profile.name, experiment.directory,
        resolved.value("calibration", Json()).dump(-1, ' ', false, Json::error_handler_t::replace));
    const MachineDigests& digests = digests_of(profile, machine);
    recorded.made_from.machine = digests.profile;
    recorded.made_from.calibration = digests.calibration;
  }
  record_collectives(measured.explanation, recorded);
  if (const auto* program = std::get_if<ProgramStep>(&experiment.subject)) {
    record_arguments(program->path, recorded);
  } else {
    record_parameters(measured.specs, recorded);
  }
  return measured;
}

std::set<std::string> axes_of(const Measured& measured) {
  std::set<std::string> axes = {"groups", "pairs", "host link"};  // as over_of
  for (const MeshAxis& axis : measured.specs.mesh.axes()) axes.insert(axis.name);
  return axes;
}

std::set<std::string> axes_of(const Recorded& recorded) {
  const Json& settings = *recorded.settings;
  const bool has_mesh =
      settings.is_object() && settings.contains("mesh") && settings["mesh"].is_object();
  if (!has_mesh) return {};
  std::set<std::string> axes = {"groups", "pairs", "host link"};
  for (const auto& [axis, size] : settings["mesh"].items()) axes.insert(axis);
  return axes;
}

void forget_program_path(Recorded& recorded) {
  recorded.settings->erase("program");
  recorded.made_from.experiment = digest_of(*recorded.settings);
}

Explanation explain_with_remedies(const Experiment& experiment) {
  const auto with_remedies = [&](Plan& plan) {
    const auto* program = std::get_if<ProgramStep>(&experiment.subject);
    if (program != nullptr) try_remedies(program->path, plan);
  };
  if (experiment.machine.empty()) {
    CompiledStep step = compile_experiment(experiment);
    with_remedies(step.plan);
    return explain(step.plan, nullptr);
  }
  Prediction prediction = predict(experiment, {});
  with_remedies(prediction.step.plan);
  return explain(prediction.step.plan, &prediction.result);
}

}  // namespace shardsim
