#include "reports/step/json_report.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "base/version.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/known_error.hpp"

namespace shardsim {
namespace {

Json categories(const CategoryBytes& sizes) {
  Json json = Json::object();
  for (BufferCategory category : categories_in_reports) {
    json[category_key(category)] = sizes[static_cast<std::size_t>(category)].count();
  }
  return json;
}

// By cause; they add up to the step.
Json breakdown(const TimeByPart& parts) {
  Json json = Json::object();
  for (const TimePartRow& row : time_part_rows()) {
    json[key_of(row)] = seconds(parts.at(static_cast<std::size_t>(row.part)));
  }
  return json;
}

constexpr double millionths = 1e6;

Json device_classes(const Figures& figures) {
  Json list = Json::array();
  for (const ClassFigures& one : figures.classes) {
    list.push_back({{"name", one.name},
                    {"devices", one.devices},
                    {"peak_bytes", one.peak.count()},
                    {"allocated_bytes", one.allocated.count()},
                    {"reserved_bytes", one.reserved.count()},
                    {"process_bytes", one.process.count()},
                    {"by_category", categories(one.by_category)},
                    {"compute_time_s", seconds(one.compute)},
                    {"contention_time_s", seconds(one.contention)},
                    {"communication_time_s", seconds(one.communication)},
                    {"exposed_communication_s", seconds(one.exposed)},
                    {"idle_time_s", seconds(one.idle)},
                    {"breakdown", breakdown(one.parts)}});
  }
  return list;
}

// Of a pipeline: busy while a kernel runs, idle while neither a kernel nor a collective does.
Json stages(const Figures& figures) {
  Json list = Json::array();
  for (const ClassFigures& one : figures.classes) {
    list.push_back({{"name", one.name},
                    {"devices", one.devices},
                    {"busy_s", seconds(one.compute + one.contention)},
                    {"idle_s", seconds(one.idle)},
                    {"peak_bytes", one.peak.count()},
                    {"breakdown", breakdown(one.parts)}});
  }
  return list;
}

Json memory(const Figures& figures) {
  Json json = {
      {"capacity_bytes", figures.capacity.count()},
      {"peak_bytes", figures.peak.count()},
      {"allocated_bytes", figures.allocated.count()},
      {"reserved_bytes", figures.reserved.count()},
      {"process_bytes", figures.process.count()},
      {"fits", figures.fits},
      {"not_counted_bytes", {figures.not_counted.low.count(), figures.not_counted.high.count()}},
      {"by_category", categories(figures.by_category)},
      {"per_device_class", device_classes(figures)},
      {"peak_at_s", seconds(figures.peak_time)},
      {"peak_task", figures.peak_task}};
  if (figures.on_host.count() > 0) {
    json["host_bytes"] = figures.on_host.count();
    if (figures.host_capacity) json["host_capacity_bytes"] = figures.host_capacity->count();
  }
  return json;
}

// Bins of a step that make one of a report, which has no more than default_bins where they divide.
std::size_t bins_in_one(std::size_t bins) {
  const bool divides = bins > 0 && bins % network::default_bins == 0;
  return divides ? bins / network::default_bins : 1;
}

Json coarser(const std::vector<double>& fine) {
  Json means = Json::array();
  const std::size_t together = bins_in_one(fine.size());
  for (std::size_t begin = 0; begin + together <= fine.size(); begin += together) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + together; ++i) sum += fine[i];
    means.push_back(std::round(sum / static_cast<double>(together) * millionths) / millionths);
  }
  return means;
}

Json links(const Figures& figures) {
  Json classes = Json::array();
  std::size_t bins = 1;
  for (const ClassFigures& one : figures.classes) {
    Json levels = Json::array();
    for (const LinkUsage& usage : one.links) {
      bins = usage.taken.size() / bins_in_one(usage.taken.size());
      Json level{{"level", name_of(usage.level)}, {"direction", name_of(usage.direction)}};
      if (!usage.link.empty()) {
        level["link"] = usage.link;
        level["links"] = usage.links;
      }
      level["utilisation"] = coarser(usage.taken);
      levels.push_back(std::move(level));
    }
    classes.push_back({{"name", one.name}, {"levels", std::move(levels)}});
  }
  return {{"count", bins},
          {"start_s", 0},
          {"duration_s", seconds(figures.step) / static_cast<double>(bins)},
          {"per_device_class", std::move(classes)}};
}

Json communication(const Figures& figures) {
  Json list = Json::array();
  for (const CommunicationRow& row : figures.communication_rows) {
    list.push_back({{"kind", row.kind},
                    {"axes", row.axes},
                    {"group_size", row.group_size},
                    {"count", row.count},
                    {"payload_bytes", row.payload.count()},
                    {"wire_bytes_per_device", row.wire_bytes_per_device.count()},
                    {"time_s", seconds(row.time)},
                    {"exposed_s", seconds(row.exposed)},
                    {"algorithms", row.algorithms},
                    {"what", row.what}});
  }
  return list;
}

Json padding(const Figures& figures) {
  Json list = Json::array();
  for (const Padding& one : figures.padding) {
    list.push_back({{"tensor", one.tensor},
                    {"dimension", one.dimension},
                    {"size", one.size},
                    {"shards", one.shards},
                    {"padded_size", one.padded_size},
                    {"instances", one.instances},
                    {"wasted_bytes_per_device", one.wasted_per_device.count()}});
  }
  return list;
}

Json peak_buffers(const Figures& figures) {
  Json list = Json::array();
  for (const PeakBuffer& buffer : figures.peak_buffers) {
    list.push_back({{"name", buffer.name},
                    {"category", category_key(buffer.category)},
                    {"count", buffer.count},
                    {"bytes", buffer.bytes.count()}});
  }
  return list;
}

Json situation_json(const Situation& situation) {
  return {{"stack", situation.stack},
          {"device", situation.device},
          {"step", situation.step},
          {"experts", situation.has_experts},
          {"parameters", situation.parameters},
          {"devices", situation.devices},
          {"tokens", situation.tokens},
          {"sequence", situation.sequence}};
}

// Of step times: what was measured over what was predicted.
Json known_error_json(const StepEvidence& error) {
  Json json{
      {"measured_over_predicted",
       {{"percentile_10", error.low}, {"median", error.median}, {"percentile_90", error.high}}},
      {"steps", error.steps},
      {"of", error.of}};
  if (error.pairs > 0) json["between_two"] = error.between_two;
  for (const PublishedStep& step : error.nearest) {
    json["nearest"].push_back(
        {{"id", step.id}, {"measured_s", step.measured}, {"predicted_s", step.predicted}});
  }
  for (const std::string& size : error.outside) json["outside"].push_back(size);
  return json;
}

Json suggestions(const Figures& figures) {
  Json list = Json::array();
  for (const auto& [suggestion, narrowly] : figures.suggestions) {
    Json settings = Json::object();
    for (const auto& [path, value] : suggestion.settings) settings[path] = value;
    list.push_back({{"set", std::move(settings)},
                    {"step_time_s", seconds(suggestion.step)},
                    {"peak_bytes", suggestion.peak.count()},
                    {"fits", suggestion.fits},
                    {"fits_narrowly", suggestion.fits && narrowly}});
  }
  return list;
}

}  // namespace

Json result_to_json(const Figures& figures) {
  Json json = {{"schema", "shardsim/result/1"},
               {"shardsim", program_version},
               {"name", figures.name},
               {"experiment", *figures.experiment},
               {"step_time_s", seconds(figures.step)}};
  if (figures.situation) json["situation"] = situation_json(*figures.situation);
  if (figures.known_error) json["known_error"] = known_error_json(*figures.known_error);
  json["compute_time_s"] = seconds(figures.compute);
  json["contention_time_s"] = seconds(figures.contention);
  json["communication_time_s"] = seconds(figures.communication);
  json["exposed_communication_s"] = seconds(figures.exposed);
  json["idle_time_s"] = seconds(figures.idle);
  json["breakdown"] = breakdown(figures.parts);
  if (figures.bubble) {
    json["bubble_s"] = seconds(*figures.bubble);
    json["stages"] = stages(figures);
  }
  if (figures.tokens_per_second_per_device) {
    json["tokens_per_s_per_device"] = *figures.tokens_per_second_per_device;
  }
  if (figures.model_flops > Flops(0)) json["model_flops"] = figures.model_flops.count();
  if (figures.mfu) json["mfu"] = *figures.mfu;
  if (figures.mfu_full_attention) json["mfu_full_attention"] = *figures.mfu_full_attention;
  json["memory"] = memory(figures);
  if (!figures.suggestions.empty()) json["suggestions"] = suggestions(figures);
  json["balance"] = {{"memory", figures.memory_balance},
                     {"compute", figures.compute_balance},
                     {"links", figures.link_balance}};
  json["communication"] = communication(figures);
  const bool has_links = std::any_of(figures.classes.begin(), figures.classes.end(),
                                     [](const ClassFigures& one) { return !one.links.empty(); });
  if (has_links) json["links_over_time"] = links(figures);
  json["padding"] = padding(figures);
  json["peak_buffers"] = peak_buffers(figures);
  json["warnings"] = figures.warnings;
  json["notes"] = figures.notes;
  return json;
}

Json comparison_to_json(const std::vector<Figures>& all, const Choice& choice) {
  Json results = Json::array();
  for (const Figures& figures : all) results.push_back(result_to_json(figures));
  Json json = {{"schema", "shardsim/comparison/1"}, {"shardsim", program_version}};
  json["results"] = std::move(results);
  json["best"] = nullptr;
  if (choice.best >= 0) json["best"] = all[static_cast<std::size_t>(choice.best)].name;
  json["ties"] = Json::array();
  for (const int tie : choice.ties) json["ties"].push_back(all[static_cast<std::size_t>(tie)].name);
  json["why"] = choice.why;
  return json;
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardsim
