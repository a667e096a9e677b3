#include "reports/collective/collective_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>

#include "base/json.hpp"
#include "base/version.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "reports/collective/collective_html.hpp"
#include "reports/collective/collective_tables.hpp"
#include "reports/collective/link_tables.hpp"
#include "reports/step/json_report.hpp"

namespace shardsim {
namespace {

std::string collective_text(const CollectivePrediction& prediction, std::size_t width) {
  std::string out = fmt::format("{} ({})\n", title_of(prediction), subject_of(prediction));
  const std::string what = measured_what(prediction);
  if (!what.empty()) out += fmt::format("beside {}\n", what);
  out += "\n" + to_text(collective_table(prediction), "  ", width);
  const std::string errors = error_sentence(prediction);
  if (!errors.empty()) out += "\n" + errors + "\n";
  if (prediction.links) {
    out += "\n" + to_text(link_table(*prediction.links, /*over_time=*/true), "  ", width);
    out += "\n" + wrapped(bottleneck_sentence(*prediction.links), 0, width) + "\n";
    const std::string when = full_bandwidth_sentence(*prediction.links);
    if (!when.empty()) out += when + "\n";
  }
  return out + text_remarks("Notes", prediction.notes, width);
}

std::string collective_markdown(const CollectivePrediction& prediction) {
  std::string out = fmt::format("## {}\n\n{}\n", markdown_escape(title_of(prediction)),
                                markdown_escape(subject_of(prediction)));
  const std::string what = measured_what(prediction);
  if (!what.empty()) out += fmt::format("\nBeside {}\n", markdown_escape(what));
  out += "\n" + to_markdown(collective_table(prediction));
  const std::string errors = error_sentence(prediction);
  if (!errors.empty()) out += fmt::format("\n**{}**\n", markdown_escape(errors));
  if (prediction.links) {
    out += "\n" + to_markdown(link_table(*prediction.links, /*over_time=*/false));
    out += fmt::format("\n{}\n", markdown_escape(bottleneck_sentence(*prediction.links)));
    const std::string when = full_bandwidth_sentence(*prediction.links);
    if (!when.empty()) out += fmt::format("\n{}\n", markdown_escape(when));
  }
  if (!prediction.notes.empty()) out += "\n### Notes\n\n";
  for (const std::string& note : prediction.notes) {
    out += fmt::format("- {}\n", markdown_escape(note));
  }
  return out;
}

// The cells' numbers with all their digits; words where a cell has no number.
std::string collective_csv(const CollectivePrediction& prediction) {
  std::string out = fmt::format("{}\n", fmt::join(collective_columns(prediction), ","));
  const Table table = collective_table(prediction);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> fields;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool words = table.columns[c].align == TextTable::Align::left;
      fields.push_back(csv_field(words ? row[c].text : row[c].value));
    }
    out += fmt::format("{}\n", fmt::join(fields, ","));
  }
  if (!prediction.links) return out;
  // A table of its own, behind an empty line.
  out += "\nfrom,to,bytes,utilisation\n";
  for (const LinkView::Link& link : prediction.links->links) {
    out += fmt::format("{},{},{},{}\n", csv_field(link.from), csv_field(link.to),
                       link.bytes.count(), plain_number(link.busy));
  }
  return out;
}

Json against_json(const CollectiveMeasurement& measured) {
  return {{"file", measured.file},
          {"id", measured.id},
          {"source", measured.source},
          {"healthy", measured.healthy ? Json(*measured.healthy) : Json(nullptr)},
          {"healthy_reason", measured.healthy_reason}};
}

Json row_json(const CollectiveFigures& row, bool beside_measured) {
  Json json = {{"bytes", row.bytes.count()},
               {"time_s", row.time.count()},
               {"algbw_Bps", row.algorithm_bandwidth.count()},
               {"busbw_Bps", row.bus_bandwidth.count()},
               {"algorithm", row.algorithm},
               {"protocol", row.protocol.empty() ? Json(nullptr) : Json(row.protocol)},
               {"launch_s", row.launch.count()},
               {"latency_s", row.latency.count()},
               {"transfer_s", row.transfer.count()},
               {"calibration_factor", row.factor}};
  if (row.nccl_estimate) json["nccl_estimate_s"] = row.nccl_estimate->count();
  if (row.tpu) {
    json["tpu"] = {{"choice", row.tpu_choice},
                   {"instruction", tpu::name_of(row.tpu->instruction)},
                   {"asynchronous", row.tpu->asynchronous},
                   {"emitter", tpu::name_of(row.tpu->emitter)},
                   {"strategy", tpu::name_of(row.tpu->strategy)},
                   {"colors", row.tpu->colors},
                   {"phases", row.tpu->phases},
                   {"scheduler_s", row.tpu->scheduler_latency.count()}};
  }
  if (!beside_measured) return json;
  json["measured_s"] = row.measured ? Json(row.measured->count()) : Json(nullptr);
  json["measured_busbw_Bps"] =
      row.measured_bus_bandwidth ? Json(row.measured_bus_bandwidth->count()) : Json(nullptr);
  json["relative_error"] = row.relative_error ? Json(*row.relative_error) : Json(nullptr);
  return json;
}

Json errors_json(const std::optional<ErrorSummary>& errors) {
  if (!errors) return nullptr;
  return {{"rows", errors->rows},
          {"median_absolute_relative_error", errors->median},
          {"percentile_90_absolute_relative_error", errors->percentile_90}};
}

Json bins_json(const LinkView& view) {
  Json histories = Json::array();
  for (const LinkView::History& history : view.histories) {
    const bool is_full = history.full > Seconds(0);
    histories.push_back(
        {{"links", history.links},
         {"full_s", history.full.count()},
         {"first_full_s", is_full ? Json(history.first_full.count()) : Json(nullptr)},
         {"last_full_s", is_full ? Json(history.last_full.count()) : Json(nullptr)},
         {"utilisation", history.utilisation}});
  }
  return {{"count", view.histories.front().utilisation.size()},
          {"start_s", 0},
          {"duration_s", view.bin.count()},
          {"histories", std::move(histories)}};
}

Json links_json(const LinkView& view) {
  Json links = Json::array();
  for (const LinkView::Link& link : view.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes", link.bytes.count()},
                     {"utilisation", link.busy}});
    if (!view.histories.empty()) links.back()["history"] = link.history;
  }
  Json json = {{"bytes", view.size.count()},
               {"time_s", view.time.count()},
               {"algorithm", view.algorithm},
               {"links", std::move(links)}};
  if (!view.histories.empty()) json["bins"] = bins_json(view);
  return json;
}

std::string collective_json(const CollectivePrediction& prediction) {
  const CollectiveExperiment& experiment = prediction.experiment;
  const bool beside_measured = experiment.measured.has_value();
  Json json;
  json["schema"] = "shardsim/collective/1";
  json["shardsim"] = program_version;
  json["machine"] = prediction.machine.profile.name;
  json["kind"] = name_of(experiment.kind);
  json["devices"] = experiment.devices;
  if (prediction.machine.torus) {
    json["topology"] = prediction.machine.torus->text();
    if (prediction.machine.slices > 1) json["slices"] = prediction.machine.slices;
  } else {
    json["nodes"] = prediction.nodes;
  }
  if (experiment.model != CollectiveModel()) json["model"] = name_of(experiment.model);
  if (beside_measured) json["against"] = against_json(*experiment.measured);
  json["rows"] = Json::array();
  for (const CollectiveFigures& row : figures_of(prediction)) {
    json["rows"].push_back(row_json(row, beside_measured));
  }
  if (beside_measured) json["errors"] = errors_json(prediction.errors);
  if (prediction.links) json["link_view"] = links_json(*prediction.links);
  json["notes"] = prediction.notes;
  return json_text(json);
}

}  // namespace

std::string report_collective(const CollectivePrediction& prediction, Format format,
                              std::size_t width) {
  switch (format) {
    case Format::text:
      return collective_text(prediction, width);
    case Format::json:
      return collective_json(prediction);
    case Format::csv:
      return collective_csv(prediction);
    case Format::html:
      return collective_html(prediction);
    case Format::markdown:
      return collective_markdown(prediction);
  }
  assert(false);
  return {};
}

}  // namespace shardsim
