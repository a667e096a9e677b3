#include "base/json.hpp"
#include "base/version.hpp"
#include "plan/read_mesh.hpp"
#include "reports/specs/reshard_report.hpp"
#include "reports/specs/reshard_rows.hpp"

namespace shardsim {
namespace {

std::string devices_text(const ReshardExperiment& experiment) {
  if (experiment.source.devices) return "listed";
  return experiment.shared ? "shared" : "disjoint";
}

// "on devices as listed, of which 4 are in both".
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

}  // namespace shardsim
