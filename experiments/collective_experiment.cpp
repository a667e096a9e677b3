#include "experiments/collective_experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json.hpp"
#include "base/text.hpp"
#include "experiments/nccl_tests_output.hpp"
#include "experiments/size_sweep.hpp"

namespace shardsim {
namespace {

// Relative to the file that names it.
std::string path_beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

void take_machine(const JsonReader& json, CollectiveExperiment& experiment) {
  experiment.machine = json.string();
  experiment.machine_place = json.place();
  if (experiment.machine.ends_with(".json")) {
    experiment.machine = path_beside(json.place().file, experiment.machine);
  }
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

CollectiveExperiment read_against(const JsonReader& json, const std::string& file) {
  const std::string path = path_beside(file, json.at("against").string());
  const MeasuredGroup given = read_group_given(json);
  const Json document = load_measured_table(path);
  const CollectiveMeasurement measurement = read_measurement(document, path, given);
  require_agreement(json, given, measurement);
  CollectiveExperiment experiment;
  if (const auto machine = json.find("machine")) {
    take_machine(*machine, experiment);
  } else if (measurement.machine) {
    take_machine(JsonReader(document, {path, ""}).at("machine"), experiment);
  } else {
    fail_open(measurement, "machine", "machine");
  }
  take_measurement(measurement, experiment);
  const auto place = [&](const char* given_key, const char* key) {
    const auto said = json.find(given_key);
    return said ? said->place() : Place{path, std::string("/") + key};
  };
  experiment.devices_place = place("devices", "ranks");
  experiment.nodes_place = place("nodes", "nodes");
  experiment.sizes_place = {path, "/rows"};
  return experiment;
}

// Whether collectives there are simulated as flows.
bool is_simulated(const CollectiveExperiment& experiment) {
  if (experiment.model == CollectiveModel::flows) return true;
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

}  // namespace

CollectiveModel read_collective_model(const JsonReader& json) {
  std::vector<std::string> names;
  for (int m = 0; m < collective_models; ++m) {
    names.emplace_back(name_of(static_cast<CollectiveModel>(m)));
  }
  const std::string name = json.choice(names);
  const auto found = std::find(names.begin(), names.end(), name) - names.begin();
  return static_cast<CollectiveModel>(found);
}

CollectiveExperiment read_collective(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  json.only_keys({"machine", "topology", "slices", "kind", "devices", "nodes", "sizes", "model",
                  "algorithm", "protocol", "links", "unfold", "against"});
  CollectiveExperiment experiment;
  if (json.find("against")) {
    experiment = read_against(json, file);
  } else {
    take_machine(json.at("machine"), experiment);
    experiment.kind = read_collective_kind(json.at("kind"));
    const MeasuredGroup group = read_group_given(json);
    experiment.devices = json.at("devices").integer(2, most_ranks);
    experiment.nodes = group.nodes;
    experiment.sizes = read_sizes(json.at("sizes"));
    experiment.devices_place = json.at("devices").place();
    experiment.nodes_place = {file, "/nodes"};
    experiment.sizes_place = json.at("sizes").place();
  }
  if (const auto model = json.find("model")) experiment.model = read_collective_model(*model);
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
