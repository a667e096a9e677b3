#include "reports/format/figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "reports/format/known_error.hpp"
#include "strategies/compile/kernel_lists.hpp"

namespace shardsim {
namespace {

std::string mesh_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  }
  return text;
}

std::string extent_of(const Machine& machine) {
  std::string text = counted(machine.devices, "device");
  if (std::holds_alternative<NetworkDescription>(machine.profile.network)) return text;
  if (!machine.torus) return text + ", " + counted(machine.nodes, "node");
  return fmt::format("{}, {}", text, machine.topology());
}

// ", placed tp-cp-dp-pp"; empty where the experiment leaves it open.
std::string placement_text(const Experiment& experiment) {
  using Kind = DeviceOrder::Kind;
  if (experiment.order.kind == Kind::automatic) return "";
  const Json& written = experiment.resolved->at("placement");
  if (written.is_string()) return ", placed " + written.get<std::string>();
  if (experiment.order.kind == Kind::listed) return ", placed as listed";
  return fmt::format(", placed {}", fmt::join(experiment.order.axes, "-"));
}

// ", calibrated by my-network", where the experiment and not the machine says by what.
std::string calibrated_by(const Experiment& experiment) {
  if (!experiment.calibrations) return "";
  if (experiment.calibrations->empty()) return ", not calibrated";
  std::vector<std::string> names;
  for (const Calibration& calibration : *experiment.calibrations) names.push_back(calibration.name);
  return fmt::format(", calibrated by {}", fmt::join(names, ", "));
}

std::vector<std::pair<std::string, std::string>> workload_of(const Json& experiment) {
  std::vector<std::pair<std::string, std::string>> parts;
  if (!experiment.is_object() || !experiment.contains("workload")) return parts;
  const Json& workload = experiment["workload"];
  for (const char* key : {"batch", "sequence", "microbatches", "rematerialization"}) {
    const auto found = workload.find(key);
    if (found == workload.end()) continue;
    if (found->is_number_integer()) {
      parts.emplace_back(key, format_count(found->get<std::int64_t>()));
    } else {
      parts.emplace_back(key, found->is_string() ? found->get<std::string>() : found->dump());
    }
  }
  return parts;
}

ClassFigures class_of(const ProgramResult& program) {
  return {.name = program.name,
          .devices = program.devices,
          .peak = program.peak,
          .allocated = program.allocated,
          .reserved = program.reserved,
          .process = program.process(),
          .by_category = program.peak_by_category,
          .compute = program.compute_time,
          .contention = program.contention_time,
          .communication = program.communication_time,
          .exposed = program.exposed_time,
          .idle = program.idle_time,
          .parts = program.parts,
          .links = program.links};
}

void add_times(Figures& figures, const Result& result) {
  figures.step = result.step_time;
  const auto busiest = std::max_element(
      result.programs.begin(), result.programs.end(),
      [](const auto& a, const auto& b) { return a.compute_time < b.compute_time; });
  if (busiest == result.programs.end()) return;
  figures.compute = busiest->compute_time;
  figures.contention = busiest->contention_time;
  figures.communication = busiest->communication_time;
  figures.exposed = busiest->exposed_time;
  figures.idle = busiest->idle_time;
  figures.parts = busiest->parts;
}

// Stages are programs that send each other messages.
void add_bubble(Figures& figures, const Plan& plan, const Result& result) {
  if (plan.transfers.empty()) return;
  std::int64_t devices = 0;
  std::int64_t idle = 0;
  for (const ProgramResult& program : result.programs) {
    devices += program.devices;
    idle += program.devices * program.idle_time.count();
  }
  figures.bubble = SimTime(idle / devices);
}

void add_memory(Figures& figures, const Result& result) {
  figures.capacity = result.capacity;
  const auto fullest =
      std::max_element(result.programs.begin(), result.programs.end(),
                       [](const auto& a, const auto& b) { return a.peak < b.peak; });
  if (fullest != result.programs.end()) {
    figures.peak = fullest->peak;
    figures.by_category = fullest->peak_by_category;
    figures.peak_time = fullest->peak_time;
    figures.peak_task = fullest->peak_task;
    figures.peak_buffers = fullest->peak_buffers;
  }
  for (const ProgramResult& program : result.programs) {
    figures.allocated = std::max(figures.allocated, program.allocated);
    figures.reserved = std::max(figures.reserved, program.reserved);
  }
  figures.process = result.process();
  figures.fits = result.fits();
  figures.on_a_host = result.on_a_host;
  figures.host_capacity = result.host_capacity;
}

bool has_experts(const Plan& plan) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [](const Kernel& kernel) { return kernel.op.starts_with("grouped"); });
}

// Of sizes and kind, which are there already.
void add_known_error(Figures& figures, const ModelStep& model, const Plan& plan) {
  const OwnedJson& kernels = model.partitioning.strategy.kernels;
  if (kernels.is_null()) {
    if (figures.step_kind == "train") figures.known_error = known_error();
    return;
  }
  const auto devices = static_cast<double>(figures.devices);
  const auto work =
      static_cast<double>(figures.tokens_per_step > 0 ? figures.tokens_per_step : model.step.batch);
  const std::int64_t sequence = model.step.sequence.value_or(1);
  figures.situation = {
      .stack = kernel_choice(*kernels).stack,
      .device = figures.device,
      .step = figures.step_kind,
      .has_experts = has_experts(plan),
      .parameters = static_cast<double>(std::max<std::int64_t>(figures.parameters, 1)),
      .devices = devices,
      .tokens = std::max(work / devices, 1.0),
      .sequence = static_cast<double>(std::max<std::int64_t>(sequence, 1))};
  StepEvidence evidence = evidence_for(*figures.situation);
  if (evidence.steps > 0) figures.known_error = std::move(evidence);
}

std::string as_key(std::string words) {
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return words;
}

}  // namespace

double Figures::share(SimTime time) const {
  if (step.count() == 0) return 0;
  return static_cast<double>(time.count()) / static_cast<double>(step.count());
}

std::string known_error_text(const std::vector<Figures>& all) {
  std::vector<std::pair<std::string, std::string>> sentences;  // and whose they are
  for (const Figures& figures : all) {
    if (!figures.known_error) continue;
    const std::string sentence = evidence_sentence(*figures.known_error);
    const auto same = std::find_if(sentences.begin(), sentences.end(),
                                   [&](const auto& one) { return one.first == sentence; });
    if (same == sentences.end()) {
      sentences.emplace_back(sentence, figures.name);
    } else {
      same->second += ", " + figures.name;
    }
  }
  if (sentences.size() == 1) return sentences.front().first;
  std::string text;
  for (const auto& [sentence, names] : sentences) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", names, sentence);
  }
  return text;
}

Figures figures_of(const Prediction& prediction) {
  const auto& [experiment, machine, compiled, result, suggestions] = prediction;
  const PlanSubject& subject = compiled.plan.subject;
  Figures figures;
  figures.name = experiment.name;
  figures.model = subject.model;
  figures.strategy = subject.strategy;
  figures.mesh = mesh_text(compiled.plan.mesh);
  figures.machine = machine.profile.name;
  figures.device = machine.profile.device.name;
  figures.extent = extent_of(machine) + placement_text(experiment) + calibrated_by(experiment);
  figures.devices = machine.devices;
  figures.parameters = subject.parameters;
  figures.tokens_per_step = subject.tokens_per_step;
  if (const auto* model = std::get_if<ModelStep>(&experiment.subject)) {
    figures.step_kind = name_of(model->step.kind);
    add_known_error(figures, *model, compiled.plan);
    if (subject.tokens_per_step == 0) figures.images_per_step = model->step.batch;
  } else {
    figures.step_kind = "program";
  }
  add_times(figures, result);
  add_memory(figures, result);
  add_bubble(figures, compiled.plan, result);
  figures.not_counted = not_counted(machine.profile, result, figures.process);
  if (result.tokens_per_second_per_device > 0) {
    figures.tokens_per_second_per_device = result.tokens_per_second_per_device;
  }
  figures.model_flops = subject.model_flops;
  if (result.mfu > 0) figures.mfu = result.mfu;
  if (result.mfu_full_attention > 0) figures.mfu_full_attention = result.mfu_full_attention;
  figures.memory_balance = result.memory_balance;
  figures.compute_balance = result.compute_balance;
  figures.link_balance = result.link_balance;
  figures.communication_rows = result.communication;
  for (const CommunicationRow& row : result.communication) {
    figures.wire_bytes_per_device += row.wire_bytes_per_device;
  }
  for (const ProgramResult& program : result.programs) {
    figures.classes.push_back(class_of(program));
    figures.on_host = std::max(figures.on_host, program.on_host);
  }
  figures.padding = compiled.plan.padding;
  for (const Padding& padding : figures.padding) {
    figures.padding_per_device += padding.wasted_per_device;
  }
  figures.warnings = compiled.warnings;
  figures.notes = compiled.plan.notes;
  figures.notes.insert(figures.notes.end(), result.notes.begin(), result.notes.end());
  figures.experiment = experiment.resolved;
  if (!compiled.layout.is_null()) {
    (*figures.experiment)["strategy"]["layout"] = *compiled.layout;
  }
  figures.workload = workload_of(*experiment.resolved);
  for (const Suggestion& change : suggestions) {
    const Bytes beside = not_counted(machine.profile, result, change.peak).high;
    figures.suggestions.push_back({change, change.peak + beside > figures.capacity});
  }
  return figures;
}

std::vector<Figures> figures_of(const std::vector<Prediction>& predictions) {
  std::vector<Figures> all;
  all.reserve(predictions.size());
  for (const Prediction& prediction : predictions) all.push_back(figures_of(prediction));
  return all;
}

std::string label_of(const TimePartRow& row) {
  return row.name.empty() ? std::string(row.of) : fmt::format("{}: {}", row.of, row.name);
}

std::string key_of(const TimePartRow& row) {
  return row.name.empty() ? fmt::format("{}_s", row.of)
                          : as_key(fmt::format("{}_{}_s", row.of, row.name));
}

std::string category_key(BufferCategory category) { return as_key(std::string(name_of(category))); }

std::string category_label(BufferCategory category) {
  std::string label = category_key(category);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string largest_categories(const Figures& figures) {
  auto order = categories_in_reports;
  std::stable_sort(order.begin(), order.end(), [&](BufferCategory a, BufferCategory b) {
    return figures.of(a) > figures.of(b);
  });
  std::string text;
  for (BufferCategory category : order) {
    if (figures.of(category).count() == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_bytes(figures.of(category)),
                        category_label(category));
  }
  return text;
}

std::string workload_line(const Figures& figures) {
  std::string line;
  for (const auto& [name, value] : figures.workload) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, value);
  }
  return line;
}

std::string plain_number(double value) { return fmt::format("{}", value); }

}  // namespace shardsim
