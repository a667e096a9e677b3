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

std::vector<NamedPlan> plans_of(const ReshardChoice& choice) {
  std::vector<NamedPlan> plans{{"direct", choice.direct, !choice.intermediate_is_better}};
  if (choice.intermediate) {
    plans.push_back({"intermediate", *choice.intermediate, choice.intermediate_is_better});
  }
  return plans;
}

std::string part_name(ReshardPart part) {
  if (part == ReshardPart::transfer) return "transfer";
  return part == ReshardPart::source ? "source" : "target";
}

const Mesh& mesh_after(const ReshardExperiment& experiment, const PlannedReshardStep& step) {
  return step.part == ReshardPart::source ? experiment.source.mesh : experiment.target.mesh;
}

// "all-gather", "transfer".
std::string kind_of(const PlannedReshardStep& step) {
  return step.part == ReshardPart::transfer ? "transfer" : std::string(name_of(step.kind));
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
  const std::string where = prediction.where.empty() ? "" : ", " + prediction.where;
  return fmt::format("{}: from {} to {}, {}, on {}{}\n", experiment.name,
                     describe(experiment.source.mesh), describe(experiment.target.mesh),
                     devices_in_words(experiment), experiment.machine, where);
}

std::string pathways_text(const PathwaysAnswer& answer) {
  if (!answer.intermediate) return fmt::format("{}: {}", answer.error_type, answer.reason);
  return fmt::format("{} on the source's devices as {}, from replica 0 of {}",
                     to_string(answer.intermediate->spec), describe(answer.intermediate->mesh),
                     fmt::join(answer.intermediate->replica_axes, ", "));
}

std::string steps_text(const ReshardExperiment& experiment, const ReshardPlan& plan,
                       std::size_t width) {
  if (plan.steps.empty()) return "  no step: every device has its shard already\n";
  TextTable table({{"step"},
                   {"on"},
                   {"over"},
                   {"then it lies"},
                   {"sent", Align::right},
                   {"received", Align::right},
                   {"in all", Align::right},
                   {"messages", Align::right},
                   {"time", Align::right},
                   {"source holds", Align::right},
                   {"target holds", Align::right}});
  for (const PlannedReshardStep& step : plan.steps) {
    const Mesh& mesh = mesh_after(experiment, step);
    table.add_row(
        {kind_of(step), step.part == ReshardPart::transfer ? "both" : part_name(step.part),
         fmt::format("{}", fmt::join(mesh.names_of(step.axes), ", ")), to_string(step.after, mesh),
         format_bytes(step.sent), format_bytes(step.received), format_bytes(step.total),
         format_count(step.messages), format_seconds(step.time), format_bytes(step.source_bytes),
         format_bytes(step.target_bytes)});
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
  for (const NamedPlan& named : plans_of(choice)) {
    const bool is_direct = named.name == "direct";
    out += fmt::format(
        "\n{}{}: {}, {} cross, peak {}\n",
        is_direct ? "Direct" : "By way of " + way(experiment, named.plan, choice.direct),
        named.chosen ? " (chosen)" : "", format_seconds(named.plan.time),
        format_bytes(named.plan.crossing), format_bytes(named.plan.peak));
    out += steps_text(experiment, named.plan, width);
  }
  out += fmt::format("\nWhy: {}\n", why(experiment, choice));
  out += fmt::format("Ways considered: {}, of them priced {}, left out {}\n",
                     format_count(choice.candidates), format_count(choice.priced),
                     format_count(choice.left_out));
  out += fmt::format("pathways' find_intermediate_sharding: {}\n", pathways_text(group.pathways));
  return out;
}

std::string tree_text(const ReshardPrediction& prediction, std::size_t width) {
  const ReshardExperiment& experiment = prediction.experiment;
  TextTable table({{"array"},
                   {"count", Align::right},
                   {"shape"},
                   {"from"},
                   {"to"},
                   {"direct", Align::right},
                   {"chosen", Align::right},
                   {"by way of"},
                   {"pathways"}});
  for (const ReshardedGroup& group : prediction.groups) {
    const std::size_t first = group.leaves[0];
    const ReshardChoice& choice = group.choice;
    const bool direct = !choice.intermediate_is_better;
    table.add_row({experiment.arrays.leaves[first].name,
                   format_count(static_cast<std::int64_t>(group.leaves.size())),
                   dims_text(experiment.arrays.leaves[first].shape),
                   to_string(experiment.source.specs[first]),
                   to_string(experiment.target.specs[first]), format_seconds(choice.direct.time),
                   format_seconds(choice.best().time),
                   direct ? "-" : way(experiment, choice.best(), choice.direct),
                   group.pathways.intermediate ? to_string(group.pathways.intermediate->spec)
                                               : group.pathways.error_type});
  }
  const ReshardTotals& totals = prediction.totals;
  std::string out = table.text("", width);
  out += fmt::format("\n{} in {} arrays, one after the other\n", format_bytes(totals.bytes),
                     format_count(static_cast<std::int64_t>(experiment.arrays.leaves.size())));
  TextTable sums({{""},
                  {"time", Align::right},
                  {"bytes that cross", Align::right},
                  {"peak on a device", Align::right}});
  sums.add_row({"direct", format_seconds(totals.direct_time), format_bytes(totals.direct_crossing),
                format_bytes(totals.direct_peak)});
  sums.add_row({"chosen", format_seconds(totals.time), format_bytes(totals.crossing),
                format_bytes(totals.peak)});
  return out + sums.text("", width);
}

Json step_json(const ReshardExperiment& experiment, const PlannedReshardStep& step) {
  const Mesh& mesh = mesh_after(experiment, step);
  return {{"kind", kind_of(step)},
          {"part", part_name(step.part)},
          {"axes", mesh.names_of(step.axes)},
          {"spec_after", to_json(spec_of(step.after, mesh))},
          {"sent_bytes_per_device", step.sent.count()},
          {"received_bytes_per_device", step.received.count()},
          {"total_bytes", step.total.count()},
          {"messages", step.messages},
          {"time_s", step.time.count()},
          {"source_device_bytes", step.source_bytes.count()},
          {"target_device_bytes", step.target_bytes.count()}};
}

Json plan_json(const ReshardExperiment& experiment, const ReshardPlan& plan) {
  Json json;
  json["source_intermediate"] = to_json(spec_of(plan.source_intermediate, experiment.source.mesh));
  json["target_intermediate"] = to_json(spec_of(plan.target_intermediate, experiment.target.mesh));
  json["time_s"] = plan.time.count();
  json["crossing_bytes"] = plan.crossing.count();
  json["peak_bytes"] = plan.peak.count();
  json["steps"] = Json::array();
  for (const PlannedReshardStep& step : plan.steps) {
    json["steps"].push_back(step_json(experiment, step));
  }
  return json;
}

Json pathways_json(const PathwaysAnswer& answer) {
  if (!answer.intermediate) return {{"error", answer.error_type}, {"reason", answer.reason}};
  return {{"mesh", mesh_to_json(answer.intermediate->mesh)},
          {"spec", to_json(answer.intermediate->spec)},
          {"replica_axes", answer.intermediate->replica_axes}};
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
  json["chosen"] = choice.intermediate_is_better ? "intermediate" : "direct";
  json["why"] = why(experiment, choice);
  json["direct"] = plan_json(experiment, choice.direct);
  json["intermediate"] =
      choice.intermediate ? plan_json(experiment, *choice.intermediate) : Json(nullptr);
  json["ways_considered"] = choice.candidates;
  json["ways_priced"] = choice.priced;
  json["ways_left_out"] = choice.left_out;
  json["pathways"] = pathways_json(group.pathways);
  return json;
}

}  // namespace

std::string reshard_text(const ReshardPrediction& prediction, std::size_t width) {
  const bool alone = prediction.groups.size() == 1;
  return heading(prediction) + "\n" +
         (alone ? group_text(prediction.experiment, prediction.groups[0], width) : "") +
         (alone && prediction.experiment.arrays.leaves.size() == 1
              ? ""
              : (alone ? "\n" : "") + tree_text(prediction, width));
}

std::string reshard_json(const ReshardPrediction& prediction) {
  const ReshardExperiment& experiment = prediction.experiment;
  const ReshardTotals& totals = prediction.totals;
  Json json;
  json["schema"] = "shardsim/reshard/1";
  json["shardsim"] = program_version;
  json["name"] = experiment.name;
  json["machine"] = experiment.machine;
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
  json["total"] = {{"bytes", totals.bytes.count()},
                   {"direct_time_s", totals.direct_time.count()},
                   {"time_s", totals.time.count()},
                   {"direct_crossing_bytes", totals.direct_crossing.count()},
                   {"crossing_bytes", totals.crossing.count()},
                   {"source_shard_bytes", totals.source_shard.count()},
                   {"target_shard_bytes", totals.target_shard.count()},
                   {"direct_peak_bytes", totals.direct_peak.count()},
                   {"peak_bytes", totals.peak.count()}};
  return json.dump(2) + "\n";
}

std::string reshard_csv(const ReshardPrediction& prediction) {
  const ReshardExperiment& experiment = prediction.experiment;
  std::string out =
      "array,count,plan,chosen,step,part,axes,spec_after,sent_bytes_per_device,"
      "received_bytes_per_device,total_bytes,messages,time_s,source_device_bytes,"
      "target_device_bytes,peak_bytes\n";
  for (const ReshardedGroup& group : prediction.groups) {
    for (const NamedPlan& named : plans_of(group.choice)) {
      const std::string start =
          fmt::format("{},{},{},{}", csv_field(experiment.arrays.leaves[group.leaves[0]].name),
                      group.leaves.size(), named.name, named.chosen);
      for (const PlannedReshardStep& step : named.plan.steps) {
        const Mesh& mesh = mesh_after(experiment, step);
        const std::string axes = fmt::format("{}", fmt::join(mesh.names_of(step.axes), " "));
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},\n", start, kind_of(step),
                           part_name(step.part), csv_field(axes),
                           csv_field(to_string(spec_of(step.after, mesh))), step.sent.count(),
                           step.received.count(), step.total.count(), step.messages,
                           step.time.count(), step.source_bytes.count(), step.target_bytes.count());
      }
      out += fmt::format("{},total,,,,,,{},,{},,,{}\n", start, named.plan.crossing.count(),
                         named.plan.time.count(), named.plan.peak.count());
    }
  }
  return out;
}

}  // namespace shardsim
