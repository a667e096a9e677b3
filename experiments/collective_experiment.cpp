#include "experiments/collective_experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "measurements/measured_tables.hpp"
#include "measurements/size_sweep.hpp"

namespace shardsim {
namespace {

// Relative to the file that names it.
std::string path_beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

// A profile's name as it is, a file relative to the one that names it.
std::string machine_beside(const std::string& file, const std::string& machine) {
  return machine.ends_with(".json") ? path_beside(file, machine) : machine;
}

void take_machine(const JsonReader& json, CollectiveExperiment& experiment) {
  experiment.machine = machine_beside(json.place().file, json.string());
  experiment.machine_place = json.place();
}

std::vector<Bytes> read_sizes(const JsonReader& json) {
  if (json.is_number()) {
    json.fail(fmt::format("{0} has no unit, expected for example \"{0} B\"", json.json().dump()));
  }
  return parse_sizes(json.string(), json.place());
}

MeasuredGroup read_group_given(const JsonReader& json) {
  MeasuredGroup group;
  if (const auto kind = json.find("kind")) group.kind = read_collective_kind(*kind);
  if (const auto devices = json.find("devices")) group.ranks = devices->integer(2, most_ranks);
  if (const auto nodes = json.find("nodes")) group.nodes = nodes->integer(1, most_ranks);
  return group;
}

template <class Value, class Text>
void require_same(const JsonReader& json, const char* key, const std::optional<Value>& given,
                  const std::optional<Value>& measured, const std::string& file, Text text) {
  if (!given || given == measured) return;
  json.at(key).fail(fmt::format("{} says {}", file, text(*measured)));
}

// What the document says of the group must be what the file says of it.
void require_agreement(const JsonReader& json, const MeasuredGroup& given,
                       const CollectiveMeasurement& measurement) {
  const auto count = [](std::int64_t number) { return format_count(number); };
  const std::string& file = measurement.file;
  const MeasuredGroup& measured = measurement.group;
  require_same(json, "kind", given.kind, measured.kind, file,
               [](CollectiveKind k) { return name_of(k); });
  require_same(json, "devices", given.ranks, measured.ranks, file, count);
  require_same(json, "nodes", given.nodes, measured.nodes, file, count);
  if (const auto sizes = json.find("sizes")) sizes->fail(file + " has the sizes");
}

[[noreturn]] void fail_open(const CollectiveMeasurement& measurement, const char* key,
                            const char* key_beside) {
  throw InputError(
      {measurement.file, std::string("/") + key},
      fmt::format("the file leaves it open; give \"{0}\" (--{0}) beside it", key_beside));
}

void take_measurement(const CollectiveMeasurement& measurement, CollectiveExperiment& experiment) {
  const MeasuredGroup& group = measurement.group;
  if (!group.kind) fail_open(measurement, "collective", "kind");
  if (!group.ranks) fail_open(measurement, "ranks", "devices");
  experiment.kind = *group.kind;
  experiment.devices = *group.ranks;
  experiment.nodes = group.nodes;
  for (const MeasuredRow& row : measurement.rows) experiment.sizes.push_back(row.bytes);
  experiment.measured = measurement;
}

std::string described(const CollectiveMeasurement& measurement) {
  const MeasuredGroup& group = measurement.group;
  std::string text = group.kind ? std::string(name_of(*group.kind)) : "an unknown collective";
  if (group.ranks) text += fmt::format(" of {}", counted(*group.ranks, "device"));
  if (group.nodes) text += fmt::format(" on {}", counted(*group.nodes, "node"));
  if (!measurement.algorithm.empty()) text += fmt::format(" ({})", measurement.algorithm);
  return text;
}

bool fits(const JsonReader& json, const MeasuredGroup& given, const CollectiveMeasurement& table) {
  const auto is_other = [](const auto& said, const auto& measured) {
    return said && said != measured;
  };
  if (is_other(given.kind, table.group.kind) || is_other(given.ranks, table.group.ranks) ||
      is_other(given.nodes, table.group.nodes)) {
    return false;
  }
  const auto algorithm = json.find("algorithm");
  return !algorithm || table.algorithm.empty() || algorithm->string() == table.algorithm;
}

// A file can hold several tables: the one that the document tells.
CollectiveMeasurement select_table(const JsonReader& json, const std::string& path,
                                   const MeasuredGroup& given,
                                   const std::optional<std::int64_t>& devices_per_node) {
  const std::vector<MeasuredTable> tables = load_measured_tables({path}, devices_per_node);
  if (tables.size() == 1) return read_measurement(tables[0].table, tables[0].file, given);
  std::vector<CollectiveMeasurement> fitting;
  std::vector<std::string> all;
  std::vector<std::string> left;
  for (const MeasuredTable& table : tables) {
    CollectiveMeasurement measurement = read_measurement(table.table, table.file, {});
    all.push_back(described(measurement));
    if (!fits(json, given, measurement)) continue;
    left.push_back(all.back());
    fitting.push_back(std::move(measurement));
  }
  if (fitting.size() == 1) return std::move(fitting.front());
  throw InputError(
      {path, ""},
      fitting.empty()
          ? fmt::format("has no such table; it has {}", fmt::join(all, ", "))
          : fmt::format("has {} tables: {}; tell them apart with \"kind\" (--kind), \"devices\", "
                        "\"nodes\" or \"algorithm\"",
                        left.size(), fmt::join(left, ", ")));
}

void take_measured_machine(const CollectiveMeasurement& measurement,
                           CollectiveExperiment& experiment) {
  if (!measurement.machine) fail_open(measurement, "machine", "machine");
  experiment.machine = machine_of(measurement);
  experiment.machine_place = {measurement.file, "/machine"};
}

void take_measured_places(const CollectiveMeasurement& measurement,
                          CollectiveExperiment& experiment) {
  experiment.devices_place = {measurement.file, "/ranks"};
  experiment.nodes_place = {measurement.file, "/nodes"};
  experiment.sizes_place = {measurement.file, "/rows"};
}

CollectiveExperiment read_against(const JsonReader& json, const std::string& file) {
  const std::string path = path_beside(file, json.at("against").string());
  const MeasuredGroup given = read_group_given(json);
  CollectiveExperiment experiment;
  std::optional<std::int64_t> devices_per_node;
  if (const auto machine = json.find("machine")) {
    take_machine(*machine, experiment);
    devices_per_node = devices_of_host(experiment.machine, experiment.machine_place);
  }
  const CollectiveMeasurement measurement = select_table(json, path, given, devices_per_node);
  require_agreement(json, given, measurement);
  if (experiment.machine.empty()) take_measured_machine(measurement, experiment);
  take_measurement(measurement, experiment);
  take_measured_places(measurement, experiment);
  if (const auto devices = json.find("devices")) experiment.devices_place = devices->place();
  if (const auto nodes = json.find("nodes")) experiment.nodes_place = nodes->place();
  return experiment;
}

// Whether collectives there are simulated as flows.
bool is_simulated(const CollectiveExperiment& experiment) {
  if (experiment.model.fidelity == Fidelity::flows) return true;
  if (is_network_text(experiment.machine)) return true;
  const Profile profile = load_profile(experiment.machine, experiment.machine_place);
  return std::holds_alternative<NetworkDescription>(profile.network);
}

void read_algorithm(const JsonReader& json, CollectiveExperiment& experiment) {
  const auto algorithm = json.find("algorithm");
  const auto protocol = json.find("protocol");
  if (!algorithm && !protocol) return;
  ToldAlgorithm told;
  told.kind = experiment.kind;
  if (algorithm) {
    told.algorithm = algorithm->string();
    told.algorithm_place = algorithm->place();
  }
  if (protocol) {
    told.protocol = protocol->string();
    told.protocol_place = protocol->place();
  }
  experiment.options.told.push_back(told);
}

void read_options(const JsonReader& json, CollectiveExperiment& experiment) {
  const bool by_flows = is_simulated(experiment);
  if (const auto unfold = json.find("unfold"); unfold && unfold->boolean()) {
    if (!by_flows) {
      unfold->fail(
          fmt::format("{} is priced by formulas; what is simulated can be unfolded, as by "
                      "the model \"flows\"",
                      experiment.machine));
    }
    experiment.options.folding = Folding::unfolded;
  }
  if (const auto links = json.find("links")) experiment.with_links = links->boolean();
  read_algorithm(json, experiment);
}

// A slice that is named has as many devices as it has.
void read_devices(const JsonReader& json, const MeasuredGroup& group,
                  CollectiveExperiment& experiment) {
  const auto topology = json.find("topology");
  if (group.ranks || !topology || json.find("slices")) {
    experiment.devices = json.at("devices").integer(2, most_ranks);
    experiment.devices_place = json.at("devices").place();
    return;
  }
  experiment.devices = devices_of_slice(experiment.machine, topology->string(),
                                        experiment.machine_place, topology->place());
  experiment.devices_place = topology->place();
}

}  // namespace

std::string machine_of(const CollectiveMeasurement& measurement) {
  return machine_beside(measurement.file, measurement.machine.value());
}

CollectiveModel read_collective_model(const JsonReader& json) {
  std::vector<std::string> names;
  for (const auto& [word, model] : collective_models::by_word) names.emplace_back(word);
  const std::string name = json.choice(names);
  const auto found = std::find(names.begin(), names.end(), name) - names.begin();
  return collective_models::by_word.at(static_cast<std::size_t>(found)).model;
}

CollectiveExperiment experiment_of(const CollectiveMeasurement& measurement,
                                   const std::optional<std::string>& machine) {
  CollectiveExperiment experiment;
  if (machine) {
    experiment.machine = *machine;
    experiment.machine_place = {"command line", "/machine"};
  } else {
    take_measured_machine(measurement, experiment);
  }
  take_measurement(measurement, experiment);
  take_measured_places(measurement, experiment);
  return experiment;
}

CollectiveExperiment read_collective(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  json.only_keys({"machine", "topology", "slices", "kind", "devices", "nodes", "sizes", "model",
                  "algorithm", "protocol", "links", "unfold", "against", "calibration"});
  CollectiveExperiment experiment;
  if (json.find("against")) {
    experiment = read_against(json, file);
  } else {
    take_machine(json.at("machine"), experiment);
    experiment.kind = read_collective_kind(json.at("kind"));
    const MeasuredGroup group = read_group_given(json);
    read_devices(json, group, experiment);
    experiment.nodes = group.nodes;
    experiment.sizes = read_sizes(json.at("sizes"));
    experiment.nodes_place = {file, "/nodes"};
    experiment.sizes_place = json.at("sizes").place();
  }
  if (const auto model = json.find("model")) experiment.model = read_collective_model(*model);
  if (const auto calibration = json.find("calibration")) {
    experiment.calibrations = read_calibrations(*calibration);
  }
  read_options(json, experiment);
  experiment.topology_place = {file, "/topology"};
  if (const auto topology = json.find("topology")) experiment.topology = topology->string();
  if (const auto slices = json.find("slices")) {
    experiment.slices = slices->integer(1, most_ranks);
    experiment.slices_place = slices->place();
  }
  return experiment;
}

}  // namespace shardsim
