#include "reports/specs/specs_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include "base/text.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/auto_spec.hpp"

namespace shardsim {
namespace {

using Align = TextTable::Align;

Cell count_cell(std::int64_t count) { return {format_count(count), std::to_string(count)}; }
Cell bytes_cell(Bytes bytes) { return {format_bytes(bytes), std::to_string(bytes.count())}; }

std::int64_t elements(const ParameterSharding& row) {
  std::int64_t count = row.instances;
  for (const std::int64_t size : row.shape) count *= size;
  return count;
}

Table unmatched_table(const SpecTable& table, const Coverage& coverage) {
  Table out{"Decided by no rule",
            {{"parameter"}, {"count", Align::right}, {"shape"}, {"spec"}, {"why"}},
            {}};
  for (const std::size_t i : coverage.unmatched) {
    const ParameterSharding& row = table.parameters[i];
    out.rows.push_back({{row.name, ""},
                        count_cell(row.instances),
                        {dims_text(row.shape), ""},
                        {to_string(row.returned), ""},
                        {row.reason.empty() ? row.assigned_by : row.reason, ""}});
  }
  return out;
}

Table replicated_table(const SpecTable& table, const Coverage& coverage) {
  Table out{"Large, yet whole on every device",
            {{"parameter"},
             {"count", Align::right},
             {"shape"},
             {"parameters", Align::right},
             {"on each device", Align::right},
             {"why"}},
            {}};
  std::int64_t total = 0;
  Bytes bytes{0};
  for (const std::size_t i : coverage.large_replicated) {
    const ParameterSharding& row = table.parameters[i];
    const Bytes held = row.bytes_per_device * row.instances;
    total += elements(row);
    bytes += held;
    out.rows.push_back({{row.name, ""},
                        count_cell(row.instances),
                        {dims_text(row.shape), ""},
                        count_cell(elements(row)),
                        bytes_cell(held),
                        {row.reason.empty() ? row.assigned_by : row.reason, ""}});
  }
  if (out.rows.size() > 1)
    out.rows.push_back({{"all of these", ""}, {}, {}, count_cell(total), bytes_cell(bytes), {}});
  return out;
}

Table indivisible_table(const SpecTable& table, const Coverage& coverage) {
  Table out{"Dimensions that do not divide",
            {{"parameter"},
             {"count", Align::right},
             {"dimension", Align::right},
             {"size", Align::right},
             {"shards", Align::right},
             {"padded to", Align::right},
             {"padding on each device", Align::right}},
            {}};
  for (const Indivisible& gap : coverage.indivisible) {
    const ParameterSharding& row = table.parameters[gap.row];
    const std::int64_t padded = shard_size(gap.size, row.stored.dims[gap.dimension]) * gap.shards;
    out.rows.push_back({{row.name, ""},
                        count_cell(row.instances),
                        {std::to_string(gap.dimension), ""},
                        count_cell(gap.size),
                        count_cell(gap.shards),
                        count_cell(padded),
                        bytes_cell(row.padding_per_device * row.instances)});
  }
  return out;
}

}  // namespace

std::string meaning(const ParameterSharding& row) {
  if (row.returned == row.spec) return "";
  return split_axes(row.stored).empty() ? "whole" : to_string(row.spec);
}

std::string specs_title(const SpecTable& table) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : table.mesh.axes()) {
    axes.push_back(fmt::format("{}={}", axis.name, axis.size));
  }
  return fmt::format("{} on {} ({} device{})",
                     table.subject.empty() ? "parameter tree" : table.subject,
                     fmt::join(axes, ", "), format_count(table.mesh.devices()),
                     table.mesh.devices() == 1 ? "" : "s");
}

Table parameter_table(const SpecTable& table) {
  Table out{"Parameters",
            {{"parameter"},
             {"count", Align::right},
             {"shape"},
             {"dtype"},
             {table.of_a_step ? "stored" : "spec"}},
            {}};
  const bool means = std::any_of(table.parameters.begin(), table.parameters.end(),
                                 [](const auto& row) { return row.returned != row.spec; });
  if (means) out.columns.push_back({"which means"});
  if (table.of_a_step) out.columns.push_back({"computed with"});
  out.columns.insert(out.columns.end(), {{"shard"},
                                         {"copies", Align::right},
                                         {"bytes per device", Align::right},
                                         {"padding", Align::right},
                                         {"assigned by"}});
  const bool reasons =
      std::any_of(table.parameters.begin(), table.parameters.end(),
                  [](const ParameterSharding& row) { return !row.reason.empty(); });
  if (reasons) out.columns.push_back({"why not more"});
  for (const ParameterSharding& row : table.parameters) {
    std::vector<Cell> cells = {{row.name, ""},
                               count_cell(row.instances),
                               {dims_text(row.shape), ""},
                               {std::string(name_of(row.dtype)), ""},
                               {to_string(row.returned), ""}};
    if (means) cells.push_back({meaning(row), ""});
    if (table.of_a_step) cells.push_back({to_string(row.compute_spec), ""});
    cells.insert(cells.end(),
                 {{dims_text(row.shard_shape), ""},
                  count_cell(table.mesh.devices() / Mesh::size_of(split_axes(row.stored))),
                  count_cell(row.bytes_per_device.count()),
                  count_cell(row.padding_per_device.count()),
                  {row.assigned_by, ""}});
    if (reasons) cells.push_back({row.reason, ""});
    out.rows.push_back(std::move(cells));
  }
  return out;
}

Table output_table(const SpecTable& table) {
  Table out{"Outputs",
            {{"tensor"},
             {"shape"},
             {"dtype"},
             {"spec"},
             {"shard"},
             {"copies", Align::right},
             {"bytes per device", Align::right},
             {"leaves the step"}},
            {}};
  for (const ParameterSharding& row : table.outputs) {
    out.rows.push_back({{row.name, ""},
                        {dims_text(row.shape), ""},
                        {std::string(name_of(row.dtype)), ""},
                        {to_string(row.returned), ""},
                        {dims_text(row.shard_shape), ""},
                        count_cell(table.mesh.devices() / Mesh::size_of(split_axes(row.stored))),
                        count_cell(row.bytes_per_device.count()),
                        {row.assigned_by, ""}});
  }
  return out;
}

Table rule_table(const SpecTable& table, const Coverage& coverage) {
  Table out{"Rules",
            {{"rule"}, {"text"}, {"matches", Align::right}, {"decides", Align::right}, {""}},
            {}};
  const auto has = [](const std::vector<std::size_t>& list, std::size_t r) {
    return std::find(list.begin(), list.end(), r) != list.end();
  };
  for (std::size_t r = 0; r < table.rules.size(); ++r) {
    const RuleUse& rule = table.rules[r];
    const std::string remark =
        has(coverage.unused, r)     ? "matches nothing"
        : rule.shadowed_by          ? fmt::format("shadowed by rule {}", *rule.shadowed_by)
        : has(coverage.shadowed, r) ? "earlier rules take all that it matches"
                                    : "";
    out.rows.push_back({{std::to_string(r), ""},
                        {rule.text, ""},
                        count_cell(rule.matches),
                        count_cell(rule.decides),
                        {remark, ""}});
  }
  return out;
}

std::vector<Table> gap_tables(const SpecTable& table, const Coverage& coverage) {
  std::vector<Table> tables = {unmatched_table(table, coverage), replicated_table(table, coverage),
                               indivisible_table(table, coverage)};
  std::erase_if(tables, [](const Table& t) { return t.rows.empty(); });
  return tables;
}

Table communication_table(const SpecSummary& summary, const Mesh& mesh) {
  Table out{
      "Collectives of a step that gathers what is split over batch and sequence and reduces its "
      "gradients",
      {{"kind"},
       {"axes"},
       {"group", Align::right},
       {"tensors", Align::right},
       {"payload", Align::right},
       {"sent by each device", Align::right}},
      {}};
  for (const SpecCollective& c : summary.communication) {
    out.rows.push_back({{std::string(name_of(c.kind)), ""},
                        {fmt::format("{}", fmt::join(mesh.names_of(c.axes), ", ")), ""},
                        count_cell(c.group_size),
                        count_cell(c.tensors),
                        bytes_cell(c.payload),
                        bytes_cell(c.wire_bytes_per_device)});
  }
  return out;
}

Table analysis_table(const SpecTable& table, const SpecAnalysis& analysis) {
  const SpecSummary summary = summarize(table);
  const bool raises = !analysis.error.empty();
  const auto answered = [&](const std::string& text) { return raises ? "-" : text; };
  const std::int64_t total = analysis.counts.total_parameters;
  Bytes sent{0};
  for (const SpecCollective& c : summary.communication) sent += c.wire_bytes_per_device;
  const std::string memory = fmt::format("{} to {}", format_bytes(summary.min_bytes_per_device),
                                         format_bytes(summary.max_bytes_per_device));
  Table out{"analyze_sharding_strategy of eformer", {{""}, {"answers"}, {"promises"}}, {}};
  const auto row = [&](const char* name, const std::string& answer, const std::string& promise) {
    out.rows.push_back({{name, ""}, {answered(answer), ""}, {promise, ""}});
  };
  row("total_parameters",
      analysis.is_float ? fmt::format("{:.1f}", static_cast<double>(total)) : std::to_string(total),
      std::to_string(summary.parameters));
  row("sharded_parameters", std::to_string(analysis.counts.sharded_parameters),
      std::to_string(summary.sharded_parameters));
  row("memory_per_device", "{}", memory);
  row("balance_score", "0.0", fmt::format("{:.3f}", summary.balance()));
  row("partition_stats", "{}", "the tables above");
  row("communication", "none", fmt::format("{} sent by each device", format_bytes(sent)));
  if (raises) out.rows.push_back({{"raises", ""}, {analysis.error, ""}, {}});
  return out;
}

Table validation_table(const SpecTable& table) {
  Table out{"validate_sharding_config of eformer", {{"parameter"}, {"what it finds"}}, {}};
  for (const ParameterSharding& row : table.parameters) {
    ParameterTree one{table.subject, {}};
    one.leaves.emplace_back();
    one.leaves.back().name = row.name;
    one.leaves.back().shape = row.shape;
    one.leaves.back().dtype = row.dtype;
    try {
      for (const ShardingIssue& issue : validate_sharding_config(one, {row.returned}, table.mesh)) {
        const bool uneven = issue.kind == ShardingIssue::Kind::indivisible;
        out.rows.push_back(
            {{row.name, ""},
             {uneven ? fmt::format("dimension {} of {} does not divide over {}", issue.dim,
                                   row.shape[issue.dim], row.returned[issue.dim].axes.front())
                     : "fewer than 1,024 elements, and sharded",
              ""}});
      }
    } catch (const RuleError& error) {
      out.rows = {{{row.name, ""}, {fmt::format("raises {}", error.what()), ""}}};
      return out;
    }
  }
  if (out.rows.empty()) out.rows.push_back({{"", ""}, {"nothing", ""}});
  return out;
}

std::vector<std::pair<std::string, std::string>> specs_summary(const SpecTable& table,
                                                               const SpecSummary& summary) {
  Bytes padding{0};
  for (const ParameterSharding& row : table.parameters)
    padding += row.padding_per_device * row.instances;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"parameters", fmt::format("{} in {}, {}", format_count(summary.parameters),
                                 counted(summary.leaves, "tensor"), format_bytes(summary.bytes))},
      {"on each device",
       fmt::format("{} at most, of that {} padding; mean {}, least {}",
                   format_bytes(summary.max_bytes_per_device), format_bytes(padding),
                   format_bytes(Bytes(static_cast<std::int64_t>(summary.mean_bytes_per_device))),
                   format_bytes(summary.min_bytes_per_device))},
      {"against the ideal",
       fmt::format("{:.2f} x the memory of perfect sharding", summary.replication_overhead())},
      {"balance", fmt::format("{:.3f} (mean / max over devices)", summary.balance())},
      {"sharded", fmt::format("{}, {}", counted(summary.sharded_leaves, "tensor"),
                              counted(summary.sharded_parameters, "parameter"))},
      {"whole everywhere", fmt::format("{} tensors, {} parameters",
                                       format_count(summary.leaves - summary.sharded_leaves),
                                       format_count(summary.replicated_parameters))}};
  const bool has_state = std::any_of(table.parameters.begin(), table.parameters.end(),
                                     [](const ParameterSharding& row) { return row.is_state; });
  if (has_state) {
    lines.emplace_back("without donation",
                       fmt::format("{} on each device: the new state beside the old",
                                   format_bytes(2 * summary.max_bytes_per_device)));
  }
  if (!summary.kept_split.empty()) {
    lines.emplace_back("split while it computes",
                       fmt::format("{} over {}: not gathered, activations are sent there instead",
                                   counted(summary.kept_split_leaves, "tensor"),
                                   fmt::join(table.mesh.names_of(summary.kept_split), ", ")));
  }
  return lines;
}

}  // namespace shardsim
