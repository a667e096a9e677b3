#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/text.hpp"
#include "experiments/collective_experiment.hpp"
#include "hardware_profiles/plausibility.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "sim/collectives/tpu_choice.hpp"

namespace shardsim {
namespace {

// Of a prediction, in seconds: beyond it rates lose their meaning.
constexpr double longest_predicted = 1e9;

// A group on a machine, and what is to be said of where it lies.
struct Located {
  Placement placement;
  Collective collective;  // of no size yet
  std::int64_t nodes = 1;
  std::vector<std::string> notes;
};

Located whole_machine(const CollectiveExperiment& experiment, const Profile& profile) {
  const Place& place = experiment.slices > 1 ? experiment.slices_place
                       : experiment.topology ? experiment.topology_place
                                             : experiment.devices_place;
  const Machine machine =
      make_machine(profile, experiment.devices, experiment.topology, place, experiment.slices);
  const Mesh mesh({{"device", experiment.devices}});
  Located located{Placement(mesh, machine, experiment.model), {}, 1, {}};
  located.collective.axes = {located.placement.mesh().whole(0)};
  located.nodes = machine.nodes;
  return located;
}

// One device of every chip of a slice of chips that are several.
Located one_of_each_chip(const CollectiveExperiment& experiment, const Profile& profile,
                         std::int64_t per_chip) {
  const Machine machine = make_machine(profile, experiment.devices * per_chip, experiment.topology,
                                       experiment.topology_place);
  const std::vector<std::int64_t>& sizes = machine.torus->sizes;
  std::vector<TorusSpan> chips;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) chips.push_back({static_cast<int>(i), sizes[i], 1});
  }
  const std::vector<TorusSpan> within = {{static_cast<int>(sizes.size()), per_chip, 1}};
  const Mesh mesh({{"chip", experiment.devices}, {"device", per_chip}});
  Located located{Placement(mesh, machine, {chips, within}, experiment.model), {}, 1, {}};
  located.collective.axes = {located.placement.mesh().whole(0)};
  located.notes.push_back(fmt::format("one of {} of each chip; the others do the same beside it",
                                      counted(per_chip, "device")));
  return located;
}

std::int64_t chips_of(const std::string& topology, const Place& place) {
  constexpr std::int64_t more_than_any = std::int64_t{1} << 40;  // make_machine refuses the shape
  std::int64_t chips = 1;
  for (const std::int64_t size : parse_shape(topology.substr(0, topology.find('_')), place)) {
    chips = size > more_than_any / chips ? more_than_any : chips * size;
  }
  return chips;
}

std::int64_t per_chip(const TorusProfile& torus) {
  return torus.chip ? torus.chip->devices.value : 1;
}

// Devices of a chip, where the group has as many as the slice that is named has chips.
std::optional<std::int64_t> devices_beside(const CollectiveExperiment& experiment,
                                           const Profile& profile) {
  const auto* torus = std::get_if<TorusProfile>(&profile.network);
  if (torus == nullptr || !torus->chip || !experiment.topology || experiment.slices > 1) {
    return std::nullopt;
  }
  if (chips_of(*experiment.topology, experiment.topology_place) != experiment.devices) {
    return std::nullopt;
  }
  return torus->chip->devices.value;
}

// A group that is part of the slice that is named: an axis of a mesh over it, with as many groups
// at work beside it as fill the slice. Devices of a chip are in groups apart where chips suffice.
std::optional<Located> part_of_slice(const CollectiveExperiment& experiment,
                                     const Profile& profile) {
  const auto* torus = std::get_if<TorusProfile>(&profile.network);
  if (torus == nullptr || !experiment.topology || experiment.slices > 1) return std::nullopt;
  const std::int64_t chips = chips_of(*experiment.topology, experiment.topology_place);
  const std::int64_t there = chips * per_chip(*torus);
  const std::int64_t group = experiment.devices;
  if (group >= there || there % group != 0) return std::nullopt;
  const Machine machine =
      make_machine(profile, there, experiment.topology, experiment.topology_place);
  const std::int64_t within = chips % group == 0 ? per_chip(*torus) : 1;
  const Mesh mesh({{"others", there / group / within}, {"group", group}, {"device", within}});
  Located located{Placement(mesh, machine, experiment.model), {}, machine.nodes, {}};
  located.collective.axes = {located.placement.mesh().whole(1)};
  located.notes.push_back(
      fmt::format("an axis of {} in a mesh over the slice, where jax's mesh_utils puts it; {} like "
                  "it work at the "
                  "same time",
                  counted(group, "device"), counted(there / group - 1, "group")));
  return located;
}

// The first `used` devices of each of `nodes` hosts.
Located part_of_nodes(const CollectiveExperiment& experiment, const Profile& profile,
                      std::int64_t nodes, std::int64_t used) {
  const std::int64_t there = devices_per_host(std::get<ClusterProfile>(profile.network));
  const Machine machine =
      make_machine(profile, nodes * there, experiment.topology, experiment.topology_place);
  const Mesh mesh({{"device", nodes * there}});
  Located located{Placement(mesh, machine, experiment.model), {}, nodes, {}};
  std::vector<std::int64_t> group;
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t i = 0; i < used; ++i) group.push_back(node * there + i);
  }
  located.collective.groups = {std::move(group)};
  located.notes.push_back(fmt::format("{} of {} on each of {}, the others idle", used,
                                      counted(there, "device"), counted(nodes, "node")));
  return located;
}

Located locate_on_cluster(const CollectiveExperiment& experiment, const Profile& profile) {
  if (!experiment.nodes || experiment.slices > 1) return whole_machine(experiment, profile);
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  const std::int64_t there = devices_per_host(cluster);
  const std::int64_t nodes = *experiment.nodes;
  const std::string devices = counted(experiment.devices, "device");
  if (experiment.devices % nodes != 0) {
    throw InputError(experiment.nodes_place,
                     fmt::format("{} do not lie evenly on {}", devices, counted(nodes, "node")));
  }
  const std::int64_t used = experiment.devices / nodes;
  if (used > there) {
    throw InputError(experiment.nodes_place,
                     fmt::format("{} on {}, but a node of {} has {}", devices,
                                 counted(nodes, "node"), profile.name, there));
  }
  Located located = nodes == 1 || used == there ? whole_machine(experiment, profile)
                                                : part_of_nodes(experiment, profile, nodes, used);
  if (there < cluster.devices_per_node.value) {
    located.notes.push_back(
        fmt::format("{} are taken for hosts of {}, of which {} share one NVLink domain",
                    counted(nodes, "node"), there, cluster.devices_per_node.value / there));
  }
  return located;
}

// On a torus the slice that a measured table names, where nothing else is asked for.
CollectiveExperiment on_measured_slice(CollectiveExperiment experiment, const Profile& profile) {
  const bool is_torus = std::holds_alternative<TorusProfile>(profile.network);
  if (!is_torus || experiment.topology || !experiment.measured) return experiment;
  experiment.topology = experiment.measured->topology;
  experiment.topology_place = {experiment.measured->file, "/hardware/topology"};
  return experiment;
}

// What NCCL took when the table was measured, where it can be told to and nothing else is told.
CostOptions told_by_table(const CollectiveExperiment& experiment, const Placement& placement) {
  CostOptions options = experiment.options;
  const bool is_priced = experiment.model == collective_models::simulated ||
                         experiment.model == collective_models::uncalibrated;
  const Profile& profile = placement.machine().profile;
  if (!experiment.measured || !is_priced || !why_not_told(profile, experiment.kind).empty()) {
    return options;
  }
  ToldAlgorithm told;
  told.kind = experiment.kind;
  if (!options.told.empty()) told = options.told.front();
  const CollectiveMeasurement& table = *experiment.measured;
  const Place place{table.file, "/algo"};
  // Other words ("NVLS at large") are remarks, which the prediction's notes repeat.
  if (told.algorithm.empty() && nccl::find_algorithm(table.algorithm)) {
    told.algorithm = table.algorithm;
    told.algorithm_place = place;
  }
  if (told.protocol.empty() && nccl::find_protocol(table.protocol)) {
    told.protocol = table.protocol;
    told.protocol_place = place;
  }
  told.least_channels = table.least_channels;
  if (!told.algorithm.empty() || !told.protocol.empty() || told.least_channels > 0) {
    options.told = {told};
  }
  return options;
}

Located locate(const CollectiveExperiment& asked) {
  Profile profile = load_profile(asked.machine, asked.machine_place);
  if (asked.calibrations) {
    set_calibrations(profile, *asked.calibrations, asked.machine_place);
  }
  const CollectiveExperiment experiment = on_measured_slice(asked, profile);
  if (std::holds_alternative<ClusterProfile>(profile.network)) {
    return locate_on_cluster(experiment, profile);
  }
  const std::optional<std::int64_t> beside = devices_beside(experiment, profile);
  const auto part = beside ? std::nullopt : part_of_slice(experiment, profile);
  Located located = beside ? one_of_each_chip(experiment, profile, *beside)
                    : part ? *part
                           : whole_machine(experiment, profile);
  if (experiment.nodes.value_or(1) > 1) {
    located.notes.push_back(
        fmt::format("{} are taken for the hosts of one {}", counted(*experiment.nodes, "node"),
                    located.placement.network() != nullptr ? "network" : "slice"));
  }
  return located;
}

std::vector<std::string> notes_on(const CollectiveMeasurement& measurement) {
  std::vector<std::string> notes;
  if (measurement.healthy != true) {
    notes.push_back(fmt::format("measured on a system that is {}{}{}",
                                measurement.healthy ? "not healthy" : "not known to be healthy",
                                measurement.healthy_reason.empty() ? "" : ": ",
                                measurement.healthy_reason));
  }
  const auto ran = [&](const char* what, const std::string& name) {
    if (name.empty()) return;
    notes.push_back(
        fmt::format("measured with {} \"{}\", predicted with what would be chosen", what, name));
  };
  if (!nccl::find_algorithm(measurement.algorithm)) ran("algorithm", measurement.algorithm);
  if (!nccl::find_protocol(measurement.protocol)) ran("protocol", measurement.protocol);
  notes.insert(notes.end(), measurement.notes.begin(), measurement.notes.end());
  return notes;
}

std::optional<ErrorSummary> summarize(const std::vector<CollectivePoint>& points) {
  std::vector<double> errors;
  for (const CollectivePoint& point : points) {
    if (const auto error = point.relative_error()) errors.push_back(std::abs(*error));
  }
  return summary_of(errors);
}

CollectivePoint price(const CollectiveExperiment& experiment, const Located& located, Bytes size,
                      CollectiveCosts& costs) {
  Collective collective = located.collective;
  collective.kind = experiment.kind;
  collective.payload = size;
  CollectivePoint point;
  point.bytes = size;
  point.cost = costs.cost(collective);
  // Flows do not follow what the compiler chooses.
  if (experiment.model.fidelity != Fidelity::flows) {
    point.tpu = tpu_choice(located.placement, collective);
  }
  if (point.cost.total().count() <= longest_predicted) return point;
  throw InputError(experiment.sizes_place,
                   fmt::format("{} take more than {:g} s on {}", format_bytes(size),
                               longest_predicted, located.placement.machine().profile.name));
}

LinkView view_links(const CollectiveExperiment& experiment, const Located& located,
                    CollectiveCosts& costs) {
  Collective collective = located.collective;
  collective.kind = experiment.kind;
  collective.payload = experiment.sizes.back();
  return view_links(collective, costs);
}

// Of a machine that formulas price, simulated or shown link by link.
void add_notes_on_links(const CollectiveExperiment& experiment, const Located& located,
                        CollectiveCosts& costs, CollectivePrediction& prediction) {
  const bool is_simulated = experiment.model.fidelity == Fidelity::flows;
  if (is_simulated) {
    for (const std::string& note : costs.notes_on_flows()) prediction.notes.push_back(note);
  }
  if (prediction.links && prediction.links->too_many_histories) {
    prediction.notes.push_back(
        fmt::format("links are not followed over time: there are more than {} that differ",
                    format_count(most_link_histories)));
  }
  if (located.placement.network() != nullptr || is_simulated || !prediction.links) return;
  prediction.notes.push_back(
      fmt::format("links: as the model \"flows\" has them, in which {} takes {} with \"{}\"",
                  format_bytes(prediction.links->size), format_seconds(prediction.links->time),
                  prediction.links->algorithm));
  for (const std::string& assumption : costs.graph().assumptions) {
    prediction.notes.push_back("assumed: " + assumption);
  }
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  const bool is_new = std::find(notes.begin(), notes.end(), note) == notes.end();
  if (!note.empty() && is_new) notes.push_back(note);
}

}  // namespace

std::optional<double> CollectivePoint::relative_error() const {
  if (!measured) return std::nullopt;
  return cost.total().count() / measured->count() - 1;
}

std::int64_t devices_of_slice(const std::string& machine, const std::string& topology,
                              const Place& machine_place, const Place& topology_place) {
  const Profile profile = load_profile(machine, machine_place);
  const auto* torus = std::get_if<TorusProfile>(&profile.network);
  if (torus == nullptr) throw InputError(topology_place, profile.name + " has no slices");
  const std::int64_t devices = chips_of(topology, topology_place) * per_chip(*torus);
  if (devices < 2) throw InputError(topology_place, "a slice of one device has no collectives");
  return devices;
}

CollectivePrediction predict_collective(const CollectiveExperiment& experiment,
                                        const SizeBegins& begins) {
  const Located located = locate(experiment);
  CollectiveCosts costs(located.placement, told_by_table(experiment, located.placement));
  CollectivePrediction prediction{
      experiment, located.placement.machine(), located.nodes, {}, {}, {}, located.notes};
  for (std::size_t i = 0; i < experiment.sizes.size(); ++i) {
    if (begins) begins(experiment.sizes[i]);
    prediction.points.push_back(price(experiment, located, experiment.sizes[i], costs));
    CollectivePoint& point = prediction.points.back();
    if (experiment.measured) point.measured = experiment.measured->rows[i].time;
    add_note(prediction.notes, caveat_of(experiment.kind, point.cost));
  }
  add_note(prediction.notes, assumed_numbers(prediction.machine.profile));
  prediction.errors = summarize(prediction.points);
  if (experiment.with_links) prediction.links = view_links(experiment, located, costs);
  add_notes_on_links(experiment, located, costs, prediction);
  if (experiment.measured) {
    for (const std::string& note : notes_on(*experiment.measured)) prediction.notes.push_back(note);
  }
  return prediction;
}

}  // namespace shardsim
