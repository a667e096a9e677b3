#include "reports/specs/specs_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/version.hpp"
#include "reports/format/html.hpp"
#include "reports/html/resources.hpp"
#include "reports/specs/specs_tables.hpp"
#include "reports/step/sharding_picture.hpp"

namespace shardsim {
namespace {

// Pictures on a page.
constexpr std::size_t most_pictures = 200;

SpecTable folded(const SpecTable& table) {
  SpecTable result = table;
  if (!table.of_a_step) result.parameters = fold_layers(table.parameters);
  return result;
}

// One table, or none.
std::vector<Table> outputs(const SpecTable& table) {
  if (table.outputs.empty()) return {};
  return {output_table(table)};
}

// What is to be said of rules and parameters, in order of reading.
std::vector<Table> remarks(const SpecTable& table, bool analyze) {
  const Coverage coverage = coverage_of(table);
  std::vector<Table> tables;
  if (!table.rules.empty()) tables.push_back(rule_table(table, coverage));
  for (Table& gap : gap_tables(table, coverage)) tables.push_back(std::move(gap));
  // A step's own collectives are the plan's: these are for a tree, of which no more is known.
  const Table communication = communication_table(summarize(table), table.mesh);
  if (!table.of_a_step && !communication.rows.empty()) tables.push_back(communication);
  if (analyze) {
    tables.push_back(analysis_table(table, analyze_specs(table)));
    tables.push_back(validation_table(table));
  }
  return tables;
}

std::string specs_text(const SpecTable& all, const SpecsOptions& options) {
  const std::size_t width = options.width;
  const SpecTable table = folded(all);
  std::string out = specs_title(table) + "\n\n" + to_text(parameter_table(table), "", width) + "\n";
  std::size_t labels = 0;
  const auto summary = specs_summary(table, summarize(table));
  for (const auto& [label, value] : summary) labels = std::max(labels, label.size());
  for (const auto& [label, value] : summary)
    out += fmt::format("{:<{}}  {}\n", label, labels, wrapped(value, labels + 2, width));
  std::vector<Table> tables = outputs(table);
  for (Table& remark : remarks(table, options.analyze)) tables.push_back(std::move(remark));
  for (const Table& remark : tables) {
    out += "\n" + remark.caption + "\n" + to_text(remark, "  ", width);
  }
  if (!table.warnings.empty()) out += "\n";
  for (const std::string& warning : table.warnings)
    out += wrapped("warning: " + warning, 0, width) + "\n";
  return out;
}

std::string specs_markdown(const SpecTable& all, bool analyze) {
  const SpecTable table = folded(all);
  std::string out = fmt::format("# {}\n\n", markdown_escape(specs_title(table)));
  for (const auto& [label, value] : specs_summary(table, summarize(table)))
    out += fmt::format("- {}: {}\n", label, value);
  std::vector<Table> tables = {parameter_table(table)};
  for (Table& leaving : outputs(table)) tables.push_back(std::move(leaving));
  for (Table& remark : remarks(table, analyze)) tables.push_back(std::move(remark));
  for (const Table& part : tables)
    out += fmt::format("\n## {}\n\n{}", part.caption, to_markdown(part));
  for (const std::string& warning : table.warnings)
    out += fmt::format("\n**Warning:** {}\n", markdown_escape(warning));
  return out;
}

Json index_json(const RuleIndex& rule) { return rule ? Json(*rule) : Json(nullptr); }

Json parameter_json(const ParameterSharding& row, const SpecTable& table) {
  Json json = {{"name", row.name},          {"instances", row.instances},
               {"shape", row.shape},        {"dtype", name_of(row.dtype)},
               {"spec", to_json(row.spec)}, {"returned_spec", to_json(row.returned)}};
  if (table.of_a_step) {
    json["compute_spec"] = to_json(row.compute_spec);
    json["gradient_spec"] = to_json(row.gradient_spec);
    json["optimizer_spec"] = to_json(row.optimizer_spec);
  }
  if (row.is_state) json["state"] = true;
  json["shard_shape"] = row.shard_shape;
  json["copies"] = table.mesh.devices() / Mesh::size_of(split_axes(row.stored));
  json["bytes_per_device"] = row.bytes_per_device.count();
  json["padding_bytes_per_device"] = row.padding_per_device.count();
  json["assigned_by"] = row.assigned_by;
  json["rule"] = index_json(row.rule);
  if (!row.dimension_rules.empty()) {
    json["rules_by_dimension"] = Json::array();
    for (const RuleIndex& rule : row.dimension_rules)
      json["rules_by_dimension"].push_back(index_json(rule));
  }
  if (!row.reason.empty()) json["reason"] = row.reason;
  return json;
}

Json summary_json(const SpecTable& table) {
  const SpecSummary summary = summarize(table);
  Json json = {
      {"devices", summary.devices},
      {"tensors", summary.leaves},
      {"parameters", summary.parameters},
      {"total_bytes", summary.bytes.count()},
      {"max_bytes_per_device", summary.max_bytes_per_device.count()},
      {"mean_bytes_per_device", summary.mean_bytes_per_device},
      {"min_bytes_per_device", summary.min_bytes_per_device.count()},
      {"max_parameters_per_device", summary.max_parameters_per_device},
      {"balance", summary.balance()},
      {"overhead", summary.replication_overhead()},
      {"sharded_tensors", summary.sharded_leaves},
      {"sharded_parameters", summary.sharded_parameters},
      {"replicated_parameters", summary.replicated_parameters},
      {"kept_split",
       {{"axes", table.mesh.names_of(summary.kept_split)}, {"tensors", summary.kept_split_leaves}}},
      {"communication", Json::array()}};
  for (const SpecCollective& c : summary.communication) {
    json["communication"].push_back({{"kind", name_of(c.kind)},
                                     {"axes", table.mesh.names_of(c.axes)},
                                     {"group_size", c.group_size},
                                     {"count", c.tensors},
                                     {"payload_bytes", c.payload.count()},
                                     {"wire_bytes_per_device", c.wire_bytes_per_device.count()}});
  }
  return json;
}

Json coverage_json(const SpecTable& table) {
  const Coverage coverage = coverage_of(table);
  Json json = {{"unmatched", Json::array()},
               {"unused_rules", coverage.unused},
               {"shadowed_rules", coverage.shadowed},
               {"large_replicated", Json::array()},
               {"indivisible", Json::array()}};
  for (const std::size_t row : coverage.unmatched)
    json["unmatched"].push_back(table.parameters[row].name);
  for (const std::size_t row : coverage.large_replicated)
    json["large_replicated"].push_back(table.parameters[row].name);
  for (const Indivisible& gap : coverage.indivisible) {
    json["indivisible"].push_back({{"name", table.parameters[gap.row].name},
                                   {"dimension", gap.dimension},
                                   {"size", gap.size},
                                   {"shards", gap.shards}});
  }
  return json;
}

// As the Python dictionary, or the exception; its promises are in "summary".
Json analysis_json(const SpecAnalysis& analysis) {
  if (!analysis.error.empty()) return {{"raises", analysis.error}};
  Json total = analysis.counts.total_parameters;
  if (analysis.is_float) total = static_cast<double>(analysis.counts.total_parameters);
  return {{"total_parameters", total},
          {"sharded_parameters", analysis.counts.sharded_parameters},
          {"memory_per_device", Json::object()},
          {"balance_score", 0.0},
          {"partition_stats", Json::object()}};
}

std::string specs_json(const SpecTable& table, const Json& experiment, bool analyze) {
  Json json;
  json["schema"] = "shardsim/specs/1";
  json["shardsim"] = program_version;
  json["experiment"] = experiment;
  json["parameters"] = Json::array();
  Bytes held{0};
  Bytes padding{0};
  for (const ParameterSharding& row : table.parameters) {
    json["parameters"].push_back(parameter_json(row, table));
    held += row.bytes_per_device * row.instances;
    padding += row.padding_per_device * row.instances;
  }
  for (const ParameterSharding& row : table.outputs) {
    json["outputs"].push_back({{"name", row.name},
                               {"shape", row.shape},
                               {"dtype", name_of(row.dtype)},
                               {"spec", to_json(row.spec)},
                               {"returned_spec", to_json(row.returned)},
                               {"shard_shape", row.shard_shape},
                               {"bytes_per_device", row.bytes_per_device.count()},
                               {"leaves", row.assigned_by}});
  }
  json["bytes_per_device"] = held.count();
  json["padding_bytes_per_device"] = padding.count();
  json["rules"] = Json::array();
  for (const RuleUse& rule : table.rules) {
    json["rules"].push_back(
        {{"text", rule.text}, {"matches", rule.matches}, {"decides", rule.decides}});
    if (rule.shadowed_by) json["rules"].back()["shadowed_by"] = *rule.shadowed_by;
  }
  json["coverage"] = coverage_json(table);
  json["summary"] = summary_json(table);
  if (analyze) json["analyze_sharding_strategy"] = analysis_json(analyze_specs(table));
  json["warnings"] = table.warnings;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string specs_csv(const SpecTable& table) {
  std::string out = "name,instances,shape,dtype,spec,returned_spec,";
  if (table.of_a_step) out += "compute_spec,gradient_spec,optimizer_spec,";
  out += "shard_shape,copies,bytes_per_device,padding_bytes_per_device,assigned_by,reason\n";
  const auto shape = [](const std::vector<std::int64_t>& sizes) {
    return fmt::format("[{}]", fmt::join(sizes, ", "));
  };
  for (const ParameterSharding& row : table.parameters) {
    std::vector<std::string> fields = {row.name,
                                       std::to_string(row.instances),
                                       shape(row.shape),
                                       std::string(name_of(row.dtype)),
                                       to_string(row.spec),
                                       to_string(row.returned)};
    if (table.of_a_step) {
      for (const PartitionSpec* spec : {&row.compute_spec, &row.gradient_spec, &row.optimizer_spec})
        fields.push_back(to_string(*spec));
    }
    const std::int64_t copies = table.mesh.devices() / Mesh::size_of(split_axes(row.stored));
    fields.insert(fields.end(),
                  {shape(row.shard_shape), std::to_string(copies),
                   std::to_string(row.bytes_per_device.count()),
                   std::to_string(row.padding_per_device.count()), row.assigned_by, row.reason});
    for (std::string& field : fields) field = csv_field(field);
    out += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return out;
}

// Its title has the spec as it was returned, and what that means.
Picture picture_of_row(const ParameterSharding& row, const Mesh& mesh) {
  std::string spec = to_string(row.returned);
  const std::string means = meaning(row);
  if (!means.empty() && means != "whole") spec += ", which means " + means;
  return picture_of(row.name, row.shape, row.stored, mesh, {}, spec);
}

// Of what is split: a tensor that every device holds whole is no picture.
std::string pictures_html(const SpecTable& table) {
  std::string out;
  std::size_t drawn = 0;
  std::size_t split = 0;
  for (const ParameterSharding& row : table.parameters) {
    if (Mesh::size_of(split_axes(row.stored)) == 1 || ++split > most_pictures) continue;
    out += to_html(picture_of_row(row, table.mesh));
    ++drawn;
  }
  out += fmt::format("<p class=\"quiet\">{} of {} kinds of tensors are split, {} drawn.</p>\n",
                     split, table.parameters.size(), drawn);
  return out;
}

std::string specs_html(const SpecTable& all, bool analyze) {
  const SpecTable table = folded(all);
  std::string cards;
  for (const auto& [label, value] : specs_summary(table, summarize(table))) {
    cards += fmt::format("<tr><th scope=\"row\" class=\"short\">{}</th><td>{}</td></tr>\n",
                         html_escape(label), html_escape(value));
  }
  std::string tables;
  for (const Table& remark : remarks(table, analyze)) tables += to_html(remark);
  std::string leaving;
  for (const Table& of_outputs : outputs(table)) leaving += to_html(of_outputs);
  std::string warnings;
  for (const std::string& warning : table.warnings)
    warnings += fmt::format("<p class=\"verdict bad\">{}</p>\n", html_escape(warning));
  return fill(
      resources::specs_html,
      {{"opening", html_opening(specs_title(table), "How every parameter lies on the mesh")},
       {"summary", cards},
       {"warnings", warnings},
       {"tables", tables},
       {"parameters", to_html(parameter_table(table)) + leaving},
       {"pictures", pictures_html(table)}});
}

}  // namespace

std::string report_specs(const SpecTable& table, const Json& experiment, Format format,
                         const SpecsOptions& options) {
  const bool analyze = options.analyze;
  switch (format) {
    case Format::text:
      return specs_text(table, options);
    case Format::json:
      return specs_json(table, experiment, analyze);
    case Format::csv:
      return specs_csv(table);
    case Format::html:
      return specs_html(table, analyze);
    case Format::markdown:
      break;
  }
  return specs_markdown(table, analyze);
}

std::string specs_pictures(const SpecTable& table, const Pattern& names) {
  std::string out;
  for (const ParameterSharding& row : folded(table).parameters) {
    if (!names.search(row.name)) continue;
    if (!out.empty()) out += "\n";
    out += to_text(picture_of_row(row, table.mesh));
  }
  return out;
}

std::string submesh_picture(const SpecTable& table, const AxisNames& axes, const Place& place) {
  constexpr std::size_t most_drawn = 256;
  constexpr std::size_t in_row = 16;
  const std::vector<std::int64_t> index = submesh_device_index(axes, table.mesh, place);
  const std::size_t drawn = std::min(index.size(), most_drawn);
  const std::size_t width = std::to_string(axes_size(axes, table.mesh, place) - 1).size();
  const std::size_t device_width = std::to_string(drawn - 1).size();
  std::string out = fmt::format("index of each device along ({}) of size {}, row by row\n",
                                fmt::join(axes, ", "), axes_size(axes, table.mesh, place));
  for (std::size_t first = 0; first < drawn; first += in_row) {
    out += fmt::format("  from {:>{}} ", first, device_width);
    for (std::size_t device = first; device < std::min(first + in_row, drawn); ++device) {
      out += fmt::format(" {:>{}}", index[device], width);
    }
    out += "\n";
  }
  if (drawn < index.size()) out += fmt::format("  ... {} devices in all\n", index.size());
  return out;
}

}  // namespace shardsim
