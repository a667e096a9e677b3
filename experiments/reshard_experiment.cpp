#include "experiments/reshard_experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "plan/read_mesh.hpp"
#include "strategies/placed_tree.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 56;  // bytes and sums stay below 2^63

std::vector<std::int64_t> read_shape(const JsonReader& json) {
  Json sizes = Json::array();
  if (json.is_string()) {
    const std::string text = json.string();
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

PlacedTree read_tree(const JsonReader& json) {
  if (json.json().contains("shape") || json.json().contains("dtype")) {
    json.fail("a \"tree\" has the shapes and dtypes: \"shape\" and \"dtype\" are too many");
  }
  const JsonReader given = json.at("tree");
  PlacedTree placed =
      read_placed_tree(given, std::filesystem::path(json.place().file).parent_path().string());
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
  if (arrays.tree.leaves.empty()) given.fail("the tree has no parameters");
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
  std::vector<std::string> names;
  for (const RuleSystem& system : rule_systems()) names.emplace_back(system.name);
  const RuleSystem* system = find_rule_system(json.at("name").choice(names));
  std::vector<PartitionSpec> specs;
  for (LeafSpec& leaf : system->assign(tree, mesh, json).leaves) {
    specs.push_back(std::move(leaf.spec));
  }
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

ReshardEnd read_end(const JsonReader& json, const PlacedTree& placed, bool is_tree) {
  ReshardEnd end;
  if (!is_tree) {
    json.only_keys({"mesh", "spec", "devices", "topology"});
    end.mesh = read_mesh(json.at("mesh"));
    end.specs = {read_spec(json.at("spec"))};
    read_where(json, end);
    return end;
  }
  json.only_keys({"mesh", "specs", "strategy", "devices", "topology"});
  end.mesh = read_end_mesh(json, placed);
  read_where(json, end);
  const auto strategy = json.find("strategy");
  if (strategy) {
    if (json.find("specs")) json.fail("\"specs\" and \"strategy\" are one too many");
    end.specs = specs_of_strategy(*strategy, placed.tree, end.mesh);
    return end;
  }
  const JsonReader specs = json.at("specs");
  if (specs.is_string()) {
    static_cast<void>(specs.choice({"recorded"}));
    end.specs = recorded_specs(specs, placed);
  } else {
    end.specs =
        specs.is_array() ? specs_by_pattern(specs, placed.tree) : specs_by_name(specs, placed.tree);
  }
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
  json.only_keys({"name", "shape", "dtype", "tree", "from", "to", "devices", "machine",
                  "calibration", "topology"});
  const bool is_tree = document.contains("tree");
  const PlacedTree arrays = is_tree ? read_tree(json) : read_array(json);
  ReshardExperiment experiment;
  experiment.file = file;
  experiment.name = std::filesystem::path(file).stem().string();
  if (const auto name = json.find("name")) experiment.name = name->string();
  experiment.arrays = arrays.tree;
  experiment.source = read_end(json.at("from"), arrays, is_tree);
  experiment.target = read_end(json.at("to"), arrays, is_tree);
  check_listed(json, experiment);
  if (const auto devices = json.find("devices")) {
    experiment.shared = devices->choice({"disjoint", "shared"}) == "shared";
  }
  const JsonReader machine = json.at("machine");
  experiment.machine = machine.string();
  experiment.machine_place = machine.place();
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
