#include "reports/specs/reshard_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "reports/specs/reshard_rows.hpp"

namespace shardsim {
namespace {

using Align = TextTable::Align;

std::string devices_in_words(const ReshardExperiment& experiment) {
  if (!experiment.source.devices) {
    return experiment.shared ? "made of the same devices"
                             : "on other devices, which follow the source's";
  }
  const std::set<std::int64_t> source(experiment.source.devices->begin(),
                                      experiment.source.devices->end());
  const auto both =
      std::count_if(experiment.target.devices->begin(), experiment.target.devices->end(),
                    [&](std::int64_t device) { return source.count(device) > 0; });
  return fmt::format("on devices as listed, {} of them in both", both);
}

std::string heading(const ReshardPrediction& prediction) {
  const ReshardExperiment& experiment = prediction.experiment;
  const auto memory = [](const ReshardEnd& end) {
    if (!end.memory) return "";
    return *end.memory == "host" ? " on its hosts" : " in a checkpoint on its hosts";
  };
  std::string where;
  if (is_timed(experiment)) where = ", on " + experiment.machine;
  if (!prediction.where.empty()) where += ", " + prediction.where;
  return fmt::format("{}: from {}{} to {}{}, {}{}\n", experiment.name,
                     describe(experiment.source.mesh), memory(experiment.source),
                     describe(experiment.target.mesh), memory(experiment.target),
                     devices_in_words(experiment), where);
}

std::string pathways_text(const PathwaysAnswer& answer) {
  if (!answer.intermediate) {
    return fmt::format("{}: {}{}", answer.error_type, answer.reason,
                       answer.plan ? "; it goes directly" : "; it goes nowhere");
  }
  return fmt::format("{} on the source's devices as {}, from replica 0 of {}{}",
                     to_string(answer.intermediate->spec), describe(answer.intermediate->mesh),
                     fmt::join(answer.intermediate->replica_axes, ", "),
                     answer.plan ? "" : "; the machine cannot run its gather");
}

// "725.763 us, 224.0 MiB cross, peak 28.0 MiB".
std::string figures_text(const ReshardExperiment& experiment, const ReshardPlan& plan) {
  const std::string time =
      is_timed(experiment) ? fmt::format("{}, ", format_seconds(plan.time)) : "";
  const std::string donated =
      plan.donated_peak == plan.peak
          ? ""
          : fmt::format(" ({} if donated)", format_bytes(plan.donated_peak));
  return fmt::format("{}{} cross, peak {}{}", time, format_bytes(plan.crossing),
                     format_bytes(plan.peak), donated);
}

std::string host_text(const char* direction, const std::optional<HostSum>& sum) {
  if (!sum) return "";
  const std::string host = sum->host
                               ? fmt::format("; {} of the host that has most, of {}",
                                             format_bytes(*sum->host), format_count(*sum->hosts))
                               : "";
  return fmt::format("{} hosts: {} in all, {} of the device that copies most{}\n", direction,
                     format_bytes(sum->bytes), format_bytes(sum->device), host);
}

std::string hosts_text(const ReshardTotals& totals) {
  return host_text("From", totals.from_host) + host_text("To", totals.to_host);
}

std::string steps_text(const ReshardExperiment& experiment, const ReshardPlan& plan,
                       std::size_t width) {
  if (plan.steps.empty()) return "  no step: every device has its shard already\n";
  const bool timed = is_timed(experiment);
  std::vector<TextTable::Column> columns{{"step"},
                                         {"on"},
                                         {"over"},
                                         {"then it lies"},
                                         {"sent", Align::right},
                                         {"received", Align::right},
                                         {"in all", Align::right},
                                         {"messages", Align::right}};
  if (timed) columns.push_back({"time", Align::right});
  columns.push_back({"source holds", Align::right});
  columns.push_back({"target holds", Align::right});
  TextTable table(columns);
  for (const PlannedReshardStep& step : plan.steps) {
    const Mesh& mesh = mesh_after(experiment, step);
    std::vector<std::string> row{kind_of(step),
                                 step.part == ReshardPart::transfer ? "both" : part_name(step.part),
                                 fmt::format("{}", fmt::join(mesh.names_of(step.axes), ", ")),
                                 to_string(step.after, mesh),
                                 format_bytes(step.sent),
                                 format_bytes(step.received),
                                 format_bytes(step.total),
                                 format_count(step.messages)};
    if (timed) row.push_back(format_seconds(step.time));
    row.push_back(format_bytes(step.source_bytes));
    row.push_back(format_bytes(step.target_bytes));
    table.add_row(row);
  }
  return table.text("  ", width);
}

// One kind of array in full.
std::string group_text(const ReshardExperiment& experiment, const ReshardedGroup& group,
                       std::size_t width) {
  const std::size_t first = group.leaves[0];
  const ParameterLeaf& leaf = experiment.arrays.leaves[first];
  const ReshardChoice& choice = group.choice;
  std::string out = fmt::format(
      "{} {} {}, {}\n  from {}, {} on each device\n  to   {}, {} on each device\n", leaf.name,
      dims_text(leaf.shape), name_of(leaf.dtype), format_bytes(byte_count(leaf)),
      to_string(experiment.source.specs[first]), format_bytes(choice.direct.source_shard),
      to_string(experiment.target.specs[first]), format_bytes(choice.direct.target_shard));
  for (const NamedPlan& named : plans_of(group)) {
    std::string title = "Direct";
    if (named.name == "intermediate") {
      title = "By way of " + way(experiment, named.plan, choice.direct);
    } else if (named.name == "pathways") {
      title = "Pathways' way";
    }
    const bool is_chosen = named.chosen && is_timed(experiment);
    out += fmt::format("\n{}{}: {}\n", title, is_chosen ? " (chosen)" : "",
                       figures_text(experiment, named.plan));
    out += steps_text(experiment, named.plan, width);
  }
  out += "\n";
  if (is_timed(experiment)) {
    out += fmt::format("Why: {}\n", why(experiment, choice));
    out += fmt::format("Ways considered: {}, of them priced {}, left out {}\n",
                       format_count(choice.candidates), format_count(choice.priced),
                       format_count(choice.left_out));
  }
  out += fmt::format("pathways' find_intermediate_sharding: {}\n", pathways_text(group.pathways));
  return out;
}

void add_sum(const ReshardExperiment& experiment, const std::string& name, const ReshardSum& sum,
             TextTable& table) {
  std::vector<std::string> row{name};
  if (is_timed(experiment)) row.push_back(format_seconds(sum.time));
  row.push_back(format_bytes(sum.crossing));
  row.push_back(format_bytes(sum.peak));
  row.push_back(format_bytes(sum.donated_peak));
  table.add_row(row);
}

std::string sums_text(const ReshardPrediction& prediction, std::size_t width) {
  const ReshardExperiment& experiment = prediction.experiment;
  const ReshardTotals& totals = prediction.totals;
  std::vector<TextTable::Column> columns{{""}};
  if (is_timed(experiment)) columns.push_back({"time", Align::right});
  columns.push_back({"bytes that cross", Align::right});
  columns.push_back({"peak on a device", Align::right});
  columns.push_back({"if donated", Align::right});
  TextTable sums(columns);
  add_sum(experiment, "direct", totals.direct, sums);
  if (totals.pathways) add_sum(experiment, "pathways", *totals.pathways, sums);
  if (is_timed(experiment)) add_sum(experiment, "chosen", totals.chosen, sums);
  return sums.text("", width);
}

// Its time or, where there are no times, what crosses.
std::string figure_of(const ReshardExperiment& experiment, const ReshardPlan& plan) {
  return is_timed(experiment) ? format_seconds(plan.time) : format_bytes(plan.crossing);
}

std::string tree_text(const ReshardPrediction& prediction, std::size_t width) {
  const ReshardExperiment& experiment = prediction.experiment;
  const bool timed = is_timed(experiment);
  std::vector<TextTable::Column> columns{{"array"}, {"count", Align::right}, {"shape"}, {"from"},
                                         {"to"},    {"direct", Align::right}};
  if (timed) {
    columns.push_back({"chosen", Align::right});
    columns.push_back({"by way of"});
  }
  columns.push_back({"pathways", Align::right});
  columns.push_back({"its answer"});
  TextTable table(columns);
  for (const ReshardedGroup& group : prediction.groups) {
    const std::size_t first = group.leaves[0];
    const ReshardChoice& choice = group.choice;
    const PathwaysAnswer& pathways = group.pathways;
    std::vector<std::string> row{experiment.arrays.leaves[first].name,
                                 format_count(static_cast<std::int64_t>(group.leaves.size())),
                                 dims_text(experiment.arrays.leaves[first].shape),
                                 to_string(experiment.source.specs[first]),
                                 to_string(experiment.target.specs[first]),
                                 figure_of(experiment, choice.direct)};
    if (timed) {
      row.push_back(format_seconds(choice.best().time));
      row.push_back(choice.intermediate_is_better ? way(experiment, choice.best(), choice.direct)
                                                  : "-");
    }
    row.push_back(pathways.plan ? figure_of(experiment, *pathways.plan) : "-");
    row.push_back(pathways.intermediate ? to_string(pathways.intermediate->spec)
                                        : pathways.error_type);
    table.add_row(row);
  }
  const std::string sum =
      fmt::format("\n{} in {} arrays, one after the other\n", format_bytes(prediction.totals.bytes),
                  format_count(static_cast<std::int64_t>(experiment.arrays.leaves.size())));
  return table.text("", width) + sum + sums_text(prediction, width);
}

}  // namespace

std::string reshard_text(const ReshardPrediction& prediction, std::size_t width) {
  const bool one_group = prediction.groups.size() == 1;
  std::string out = heading(prediction) + "\n";
  if (one_group) out += group_text(prediction.experiment, prediction.groups[0], width);
  if (prediction.experiment.arrays.leaves.size() > 1) {
    out += (one_group ? "\n" : "") + tree_text(prediction, width);
  }
  return out + hosts_text(prediction.totals);
}

std::string reshard_csv(const ReshardPrediction& prediction) {
  const ReshardExperiment& experiment = prediction.experiment;
  std::string out =
      "array,count,plan,chosen,step,part,axes,spec_after,sent_bytes_per_device,"
      "received_bytes_per_device,total_bytes,messages,time_s,source_device_bytes,"
      "target_device_bytes,peak_bytes,donated_peak_bytes\n";
  const auto seconds = [&](Seconds time) {
    return is_timed(experiment) ? fmt::format("{}", time.count()) : "";
  };
  for (const ReshardedGroup& group : prediction.groups) {
    for (const NamedPlan& named : plans_of(group)) {
      const std::string start =
          fmt::format("{},{},{},{}", csv_field(experiment.arrays.leaves[group.leaves[0]].name),
                      group.leaves.size(), named.name, named.chosen);
      for (const PlannedReshardStep& step : named.plan.steps) {
        const Mesh& mesh = mesh_after(experiment, step);
        const std::string axes = fmt::format("{}", fmt::join(mesh.names_of(step.axes), " "));
        out += fmt::format(
            "{},{},{},{},{},{},{},{},{},{},{},{},,\n", start, kind_of(step), part_name(step.part),
            csv_field(axes), csv_field(to_string(spec_of(step.after, mesh))), step.sent.count(),
            step.received.count(), step.total.count(), step.messages, seconds(step.time),
            step.source_bytes.count(), step.target_bytes.count());
      }
      out += fmt::format("{},total,,,,,,{},,{},,,{},{}\n", start, named.plan.crossing.count(),
                         seconds(named.plan.time), named.plan.peak.count(),
                         named.plan.donated_peak.count());
    }
  }
  return out;
}

}  // namespace shardsim
