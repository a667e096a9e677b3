#include "experiments/reshard_experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "base/pattern.hpp"
#include "experiments/experiment.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "plan/read_mesh.hpp"
#include "strategies/specs/placed_tree.hpp"
#include "strategies/specs/spec_table.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 56;  // bytes and sums stay below 2^63

std::vector<std::int64_t> read_shape(const JsonReader& json) {
  Json sizes = Json::array();
  const std::string text = json.is_string() ? json.string() : "";
  const bool is_scalar = text.empty() || text == "[]" || text == "()";
  if (json.is_string() && !is_scalar) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('x', at), text.size());
      const Json size = Json::parse(text.substr(at, end - at), nullptr, /*allow_exceptions=*/false);
      if (!size.is_number_integer()) {
        json.fail(fmt::format("\"{}\" is no shape, expected for example \"4096x14336\"", text));
      }
      sizes.push_back(size);
      at = end + 1;
    }
  }
  const JsonReader list = json.is_string() ? JsonReader(sizes, json.place()) : json;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  for (const JsonReader& size : list.elements()) {
    shape.push_back(size.integer(0, most_elements));
    if (elements > most_elements / std::max<std::int64_t>(shape.back(), 1)) {
      json.fail("more than 2^56 elements");
    }
    elements *= std::max<std::int64_t>(shape.back(), 1);
  }
  return shape;
}

PlacedTree read_array(const JsonReader& json) {
  ParameterLeaf leaf;
  leaf.name = "array";
  leaf.place = json.place();
  leaf.dtype = DType::bf16;
  leaf.shape = read_shape(json.at("shape"));
  if (const auto dtype = json.find("dtype")) {
    const auto known = parse_dtype(dtype->string());
    if (!known) dtype->fail(fmt::format("unknown dtype \"{}\"", dtype->string()));
    leaf.dtype = *known;
  }
  return {{"", {leaf}}, std::nullopt, {std::nullopt}};
}

// The parameters of an experiment as its strategy has them, each instance of a layer a leaf.
PlacedTree placed_by_experiment(const Experiment& experiment) {
  const SpecTable table = experiment_specs(experiment);
  PlacedTree placed{{table.subject, {}}, table.mesh, {}};
  for (const ParameterSharding& row : table.parameters) {
    for (std::int64_t i = 0; i < row.instances; ++i) {
      ParameterLeaf leaf;
      leaf.name = row.name;
      const std::size_t layer = leaf.name.find("{}");
      if (layer != std::string::npos) leaf.name.replace(layer, 2, std::to_string(i));
      leaf.shape = row.shape;
      leaf.dtype = row.dtype;
      leaf.place = {experiment.file, ""};
      placed.tree.leaves.push_back(std::move(leaf));
      placed.specs.emplace_back(row.returned);
    }
  }
  return placed;
}

PlacedTree read_experiment_as_tree(const JsonReader& json, const Json& document,
                                   const std::string& path) {
  std::vector<std::string> wanted;
  const auto variant = json.find("variant");
  if (variant) wanted.push_back(variant->string());
  const std::vector<Experiment> experiments = read_experiments(document, path, wanted);
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) names.push_back(experiment.name);
  if (variant && std::find(names.begin(), names.end(), wanted[0]) == names.end()) {
    static_cast<void>(variant->choice(names));
  }
  if (experiments.size() > 1) {
    json.at("tree").fail(fmt::format("{} has several experiments; \"variant\" names one of {}",
                                     path, fmt::join(names, ", ")));
  }
  return placed_by_experiment(experiments[0]);
}

// A parameter tree, or the parameters of an experiment.
PlacedTree read_any_tree(const JsonReader& json) {
  const JsonReader given = json.at("tree");
  const std::string folder = std::filesystem::path(json.place().file).parent_path().string();
  if (given.is_string()) {
    const std::string path = (std::filesystem::path(folder) / given.string()).string();
    if (std::filesystem::path(path).extension() == ".json") {
      const Json document = load_json(path);
      if (kind_of_document(document) == FileKind::experiment) {
        return read_experiment_as_tree(json, document, path);
      }
    }
  }
  if (const auto variant = json.find("variant")) {
    variant->fail("a parameter tree has no variants, an experiment has");
  }
  return read_placed_tree(given, folder);
}

PlacedTree read_tree(const JsonReader& json) {
  if (json.json().contains("shape") || json.json().contains("dtype")) {
    json.fail("a \"tree\" has the shapes and dtypes: \"shape\" and \"dtype\" are too many");
  }
  PlacedTree placed = read_any_tree(json);
  PlacedTree arrays{{placed.tree.model, {}}, placed.mesh, {}};
  for (std::size_t i = 0; i < placed.tree.leaves.size(); ++i) {
    ParameterLeaf& leaf = placed.tree.leaves[i];
    if (!leaf.has_shape) continue;
    if (element_count(leaf) > most_elements) {
      throw InputError(leaf.place, "more than 2^56 elements");
    }
    arrays.tree.leaves.push_back(std::move(leaf));
    arrays.specs.push_back(std::move(placed.specs[i]));
  }
  if (arrays.tree.leaves.empty()) json.at("tree").fail("the tree has no parameters");
  return arrays;
}

PartitionSpec read_spec(const JsonReader& json) {
  if (json.is_string()) return parse_partition_spec(json.string(), json.place());
  return read_partition_spec(json);
}

std::vector<PartitionSpec> specs_by_pattern(const JsonReader& json, const ParameterTree& tree) {
  struct Rule {
    Pattern pattern;
    PartitionSpec spec;
  };
  std::vector<Rule> rules;
  for (const JsonReader& rule : json.elements()) {
    rule.only_keys({"pattern", "spec"});
    const JsonReader pattern = rule.at("pattern");
    rules.push_back({Pattern(pattern.string(), pattern.place()), read_spec(rule.at("spec"))});
  }
  std::vector<PartitionSpec> specs;
  for (const ParameterLeaf& leaf : tree.leaves) {
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const Rule& one) { return one.pattern.search(leaf.name); });
    if (rule == rules.end()) {
      json.fail(fmt::format("no pattern is found in \"{}\"; a last one of \"\" is in every name",
                            leaf.name));
    }
    specs.push_back(rule->spec);
  }
  return specs;
}

std::vector<PartitionSpec> specs_by_name(const JsonReader& json, const ParameterTree& tree) {
  std::vector<std::string> names;
  for (const ParameterLeaf& leaf : tree.leaves) names.push_back(leaf.name);
  json.only_keys(names);
  std::vector<PartitionSpec> specs;
  for (const std::string& name : names) specs.push_back(read_spec(json.at(name)));
  return specs;
}

std::vector<PartitionSpec> recorded_specs(const JsonReader& json, const PlacedTree& placed) {
  std::vector<PartitionSpec> specs;
  for (std::size_t i = 0; i < placed.specs.size(); ++i) {
    if (!placed.specs[i]) {
      json.fail(fmt::format("the tree records no spec for \"{}\"", placed.tree.leaves[i].name));
    }
    specs.push_back(*placed.specs[i]);
  }
  return specs;
}

std::vector<PartitionSpec> specs_of_strategy(const JsonReader& json, const ParameterTree& tree,
                                             const Mesh& mesh) {
  std::vector<PartitionSpec> specs;
  const SpecTable table = tree_specs(tree, mesh, read_strategy(json, mesh));
  for (const ParameterSharding& row : table.parameters) specs.push_back(row.returned);
  return specs;
}

Mesh read_end_mesh(const JsonReader& json, const PlacedTree& placed) {
  const auto specs = json.find("specs");
  const bool recorded = specs && specs->is_string();
  const auto mesh = json.find("mesh");
  if (mesh || !recorded) return read_mesh(json.at("mesh"));
  if (!placed.mesh) json.fail("the tree records no mesh");
  return *placed.mesh;
}

// "0-3,8": [0, 1, 2, 3, 8].
std::vector<std::int64_t> parse_devices(const JsonReader& json) {
  const std::string text = json.string();
  const auto number = [&](const std::string& digits) {
    const Json value = Json::parse(digits, nullptr, /*allow_exceptions=*/false);
    if (!value.is_number_integer()) {
      json.fail(fmt::format("\"{}\" is no list of devices, expected for example \"0-3,8\"", text));
    }
    return JsonReader(value, json.place()).integer(0, most_listed_device);
  };
  std::vector<std::int64_t> devices;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t dash = part.find('-');
    const std::int64_t first = number(part.substr(0, dash));
    const std::int64_t last = dash == std::string::npos ? first : number(part.substr(dash + 1));
    if (last < first) json.fail(fmt::format("\"{}\" counts down", part));
    for (std::int64_t device = first; device <= last; ++device) devices.push_back(device);
    at = end + 1;
  }
  return devices;
}

std::vector<std::int64_t> read_devices(const JsonReader& json, const Mesh& mesh) {
  std::vector<std::int64_t> devices;
  if (json.is_string()) {
    devices = parse_devices(json);
  } else {
    for (const JsonReader& device : json.elements()) {
      devices.push_back(device.integer(0, most_listed_device));
    }
  }
  if (static_cast<std::int64_t>(devices.size()) != mesh.devices()) {
    json.fail(fmt::format("{} devices for a mesh of {}", devices.size(), mesh.devices()));
  }
  std::vector<std::int64_t> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) json.fail(fmt::format("device {} is there twice", *twice));
  return devices;
}

void read_where(const JsonReader& json, ReshardEnd& end) {
  if (const auto devices = json.find("devices")) end.devices = read_devices(*devices, end.mesh);
  if (const auto topology = json.find("topology")) end.topology = topology->string();
}

// In the order of the tree's leaves.
std::vector<PartitionSpec> read_specs(const JsonReader& end, const PlacedTree& placed,
                                      const Mesh& mesh) {
  const auto specs = end.find("specs");
  if (specs && specs->is_string()) {
    static_cast<void>(specs->choice({"recorded"}));
    return recorded_specs(*specs, placed);
  }
  if (specs && specs->is_array()) return specs_by_pattern(*specs, placed.tree);
  if (specs) return specs_by_name(*specs, placed.tree);
  if (const auto strategy = end.find("strategy")) {
    return specs_of_strategy(*strategy, placed.tree, mesh);
  }
  return std::vector<PartitionSpec>(placed.tree.leaves.size(), read_spec(end.at("spec")));
}

const std::vector<const char*> ways_to_say_specs = {"spec", "specs", "strategy"};

bool says_specs(const JsonReader& end) {
  return std::any_of(ways_to_say_specs.begin(), ways_to_say_specs.end(),
                     [&](const char* key) { return end.find(key).has_value(); });
}

void check_one_way(const JsonReader& json) {
  std::vector<std::string> given;
  for (const char* key : ways_to_say_specs) {
    if (json.find(key)) given.push_back(fmt::format("\"{}\"", key));
  }
  if (given.size() > 1) json.fail(fmt::format("{} are one too many", fmt::join(given, " and ")));
}

ReshardEnd read_end(const JsonReader& json, const PlacedTree& placed, bool is_tree) {
  json.only_keys(is_tree
                     ? std::vector<std::string>{"mesh", "spec", "specs", "strategy", "devices",
                                                "topology", "memory"}
                     : std::vector<std::string>{"mesh", "spec", "devices", "topology", "memory"});
  check_one_way(json);
  ReshardEnd end;
  // A tree that says how it lies is taken at its word.
  const bool is_recorded = is_tree && !json.find("mesh") && !says_specs(json) && placed.mesh;
  end.mesh = is_recorded ? *placed.mesh : read_end_mesh(json, placed);
  end.specs = is_recorded ? recorded_specs(json, placed) : read_specs(json, placed, end.mesh);
  read_where(json, end);
  return end;
}

ReshardEnd read_source(const JsonReader& document, const PlacedTree& placed, bool is_tree) {
  if (is_tree && placed.mesh && !document.find("from")) {
    ReshardEnd end;
    end.mesh = *placed.mesh;
    end.specs = recorded_specs(document, placed);
    return end;
  }
  const JsonReader json = document.at("from");
  ReshardEnd end = read_end(json, placed, is_tree);
  if (const auto memory = json.find("memory")) end.memory = memory->choice({"host"});
  return end;
}

// Of what goes to the hosts only what differs from the source has to be said.
ReshardEnd read_target(const JsonReader& document, const PlacedTree& placed, bool is_tree,
                       const ReshardEnd& source) {
  const JsonReader json = document.at("to");
  const auto memory = json.find("memory");
  if (!memory || json.find("mesh")) {
    ReshardEnd end = read_end(json, placed, is_tree);
    if (memory) end.memory = memory->choice({"host", "checkpoint"});
    return end;
  }
  for (const char* where : {"devices", "topology"}) {
    if (const auto given = json.find(where)) {
      given->fail("without a \"mesh\" of its own it lies where \"from\" does");
    }
  }
  Json whole = json.json();
  whole["mesh"] = mesh_to_json(source.mesh);
  ReshardEnd end = source;
  if (says_specs(json)) {
    end.specs = read_end(JsonReader(whole, json.place()), placed, is_tree).specs;
  } else {
    json.only_keys({"memory"});
  }
  end.memory = memory->choice({"host", "checkpoint"});
  return end;
}

// Which devices the ends have: lists of both, or one word.
void check_listed(const JsonReader& json, const ReshardExperiment& experiment) {
  const bool listed = experiment.source.devices.has_value();
  if (listed != experiment.target.devices.has_value()) {
    json.at(listed ? "to" : "from").fail("\"devices\" are listed at the other end and not here");
  }
  if (const auto devices = json.find("devices"); devices && listed) {
    devices->fail("both ends have lists of their own");
  }
}

}  // namespace

ReshardExperiment read_reshard(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  json.only_keys({"name", "shape", "dtype", "tree", "variant", "from", "to", "devices", "machine",
                  "calibration", "topology"});
  const bool is_tree = document.contains("tree");
  if (const auto variant = json.find("variant"); variant && !is_tree) {
    variant->fail("is of an experiment, which \"tree\" names");
  }
  const PlacedTree arrays = is_tree ? read_tree(json) : read_array(json);
  ReshardExperiment experiment;
  experiment.file = file;
  experiment.name = std::filesystem::path(file).stem().string();
  if (const auto name = json.find("name")) experiment.name = name->string();
  experiment.arrays = arrays.tree;
  experiment.source = read_source(json, arrays, is_tree);
  experiment.target = read_target(json, arrays, is_tree, experiment.source);
  check_listed(json, experiment);
  // A mesh that is not said again has the same devices.
  experiment.shared = !json.at("to").find("mesh") && experiment.target.memory;
  if (const auto devices = json.find("devices")) {
    experiment.shared = devices->choice({"disjoint", "shared"}) == "shared";
  }
  experiment.machine_place = {file, "/machine"};
  if (const auto machine = json.find("machine")) experiment.machine = machine->string();
  if (std::filesystem::path(experiment.machine).extension() == ".json") {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    experiment.machine = (folder / experiment.machine).string();
  }
  if (const auto calibration = json.find("calibration")) {
    experiment.calibrations = read_calibrations(*calibration);
    experiment.calibration_place = calibration->place();
  }
  if (const auto topology = json.find("topology")) experiment.topology = topology->string();
  return experiment;
}

}  // namespace shardsim
