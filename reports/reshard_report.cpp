#include "reports/reshard_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

using Align = TextTable::Align;

struct NamedPlan {
  std::string name;
  const ReshardPlan& plan;
  bool chosen;
};

std::vector<NamedPlan> plans_of(const ReshardedGroup& group) {
  const ReshardChoice& choice = group.choice;
  std::vector<NamedPlan> plans{{"direct", choice.direct, !choice.intermediate_is_better}};
  if (choice.intermediate) {
    plans.push_back({"intermediate", *choice.intermediate, choice.intermediate_is_better});
  }
  // Without an intermediate it is the direct way.
  if (group.pathways.intermediate && group.pathways.plan) {
    plans.push_back({"pathways", *group.pathways.plan, false});
  }
  return plans;
}

std::string part_name(ReshardPart part) {
  if (part == ReshardPart::transfer) return "transfer";
  return part == ReshardPart::source ? "source" : "target";
}

const Mesh& mesh_after(const ReshardExperiment& experiment, const PlannedReshardStep& step) {
  if (step.after_mesh) return *step.after_mesh;
  return step.part == ReshardPart::source ? experiment.source.mesh : experiment.target.mesh;
}

bool is_timed(const ReshardExperiment& experiment) { return !experiment.machine.empty(); }

// "all-gather", "transfer".
std::string kind_of(const PlannedReshardStep& step) {
  switch (step.action) {
    case ReshardAction::collective:
      return std::string(name_of(step.kind));
    case ReshardAction::transfer:
      return "transfer";
    case ReshardAction::permute:
      return "permute";
    case ReshardAction::split:
      return "split";
    case ReshardAction::from_host:
      return "from-host";
    case ReshardAction::to_host:
      return "to-host";
  }
  return {};
}

std::string devices_text(const ReshardExperiment& experiment) {
  if (experiment.source.devices) return "listed";
  return experiment.shared ? "shared" : "disjoint";
}

// "on devices as listed, of which 4 are in both".
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

Json step_json(const ReshardExperiment& experiment, const PlannedReshardStep& step) {
  const Mesh& mesh = mesh_after(experiment, step);
  Json json{{"kind", kind_of(step)},
            {"part", part_name(step.part)},
            {"axes", mesh.names_of(step.axes)},
            {"spec_after", to_json(spec_of(step.after, mesh))},
            {"sent_bytes_per_device", step.sent.count()},
            {"received_bytes_per_device", step.received.count()},
            {"total_bytes", step.total.count()},
            {"messages", step.messages},
            {"source_device_bytes", step.source_bytes.count()},
            {"target_device_bytes", step.target_bytes.count()}};
  if (step.after_mesh) json["mesh_after"] = mesh_to_json(mesh);
  if (is_timed(experiment)) json["time_s"] = step.time.count();
  return json;
}

// Time, bytes, memory and steps.
Json way_json(const ReshardExperiment& experiment, const ReshardPlan& plan) {
  Json json;
  if (is_timed(experiment)) json["time_s"] = plan.time.count();
  json["crossing_bytes"] = plan.crossing.count();
  json["peak_bytes"] = plan.peak.count();
  json["donated_peak_bytes"] = plan.donated_peak.count();
  json["steps"] = Json::array();
  for (const PlannedReshardStep& step : plan.steps) {
    json["steps"].push_back(step_json(experiment, step));
  }
  return json;
}

Json plan_json(const ReshardExperiment& experiment, const ReshardPlan& plan) {
  Json json = way_json(experiment, plan);
  json["source_intermediate"] = to_json(spec_of(plan.source_intermediate, experiment.source.mesh));
  json["target_intermediate"] = to_json(spec_of(plan.target_intermediate, experiment.target.mesh));
  return json;
}

Json pathways_json(const ReshardExperiment& experiment, const PathwaysAnswer& answer) {
  Json json;
  if (answer.plan) json = way_json(experiment, *answer.plan);
  if (answer.intermediate) {
    json["mesh"] = mesh_to_json(answer.intermediate->mesh);
    json["spec"] = to_json(answer.intermediate->spec);
    json["replica_axes"] = answer.intermediate->replica_axes;
  } else {
    json["error"] = answer.error_type;
    json["reason"] = answer.reason;
  }
  return json;
}

Json host_json(const HostSum& sum) {
  Json json{{"bytes", sum.bytes.count()}, {"most_bytes_of_a_device", sum.device.count()}};
  if (sum.host) {
    json["most_bytes_of_a_host"] = sum.host->count();
    json["hosts"] = *sum.hosts;
  }
  return json;
}

void add_sum(const ReshardExperiment& experiment, const std::string& prefix, const ReshardSum& sum,
             Json& json) {
  if (is_timed(experiment)) json[prefix + "time_s"] = sum.time.count();
  json[prefix + "crossing_bytes"] = sum.crossing.count();
  json[prefix + "peak_bytes"] = sum.peak.count();
  json[prefix + "donated_peak_bytes"] = sum.donated_peak.count();
}

Json totals_json(const ReshardPrediction& prediction) {
  const ReshardTotals& totals = prediction.totals;
  Json json{{"bytes", totals.bytes.count()},
            {"source_shard_bytes", totals.source_shard.count()},
            {"target_shard_bytes", totals.target_shard.count()}};
  add_sum(prediction.experiment, "direct_", totals.direct, json);
  if (is_timed(prediction.experiment)) {
    add_sum(prediction.experiment, "", totals.chosen, json);
  }
  if (totals.pathways) add_sum(prediction.experiment, "pathways_", *totals.pathways, json);
  if (totals.from_host) json["from_host"] = host_json(*totals.from_host);
  if (totals.to_host) json["to_host"] = host_json(*totals.to_host);
  return json;
}

Json group_json(const ReshardExperiment& experiment, const ReshardedGroup& group) {
  const std::size_t first = group.leaves[0];
  const ParameterLeaf& leaf = experiment.arrays.leaves[first];
  const ReshardChoice& choice = group.choice;
  Json json;
  json["names"] = Json::array();
  for (const std::size_t i : group.leaves) {
    json["names"].push_back(experiment.arrays.leaves[i].name);
  }
  json["shape"] = leaf.shape;
  json["dtype"] = name_of(leaf.dtype);
  json["bytes"] = byte_count(leaf).count();
  json["from_spec"] = to_json(experiment.source.specs[first]);
  json["to_spec"] = to_json(experiment.target.specs[first]);
  json["source_shard_bytes"] = choice.direct.source_shard.count();
  json["target_shard_bytes"] = choice.direct.target_shard.count();
  if (is_timed(experiment)) {
    json["chosen"] = choice.intermediate_is_better ? "intermediate" : "direct";
    json["why"] = why(experiment, choice);
  }
  json["direct"] = plan_json(experiment, choice.direct);
  json["intermediate"] =
      choice.intermediate ? plan_json(experiment, *choice.intermediate) : Json(nullptr);
  json["ways_considered"] = choice.candidates;
  json["ways_priced"] = choice.priced;
  json["ways_left_out"] = choice.left_out;
  json["pathways"] = pathways_json(experiment, group.pathways);
  return json;
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

std::string reshard_json(const ReshardPrediction& prediction) {
  const ReshardExperiment& experiment = prediction.experiment;
  Json json;
  json["schema"] = "shardsim/reshard/1";
  json["shardsim"] = program_version;
  json["name"] = experiment.name;
  if (is_timed(experiment)) json["machine"] = experiment.machine;
  json["devices"] = devices_text(experiment);
  if (experiment.source.devices) {
    json["from_devices"] = *experiment.source.devices;
    json["to_devices"] = *experiment.target.devices;
  }
  if (!prediction.where.empty()) json["where"] = prediction.where;
  json["from_mesh"] = mesh_to_json(experiment.source.mesh);
  json["to_mesh"] = mesh_to_json(experiment.target.mesh);
  json["arrays"] = Json::array();
  for (const ReshardedGroup& group : prediction.groups) {
    json["arrays"].push_back(group_json(experiment, group));
  }
  if (experiment.source.memory) json["from_memory"] = *experiment.source.memory;
  if (experiment.target.memory) json["to_memory"] = *experiment.target.memory;
  json["total"] = totals_json(prediction);
  return json.dump(2) + "\n";
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
