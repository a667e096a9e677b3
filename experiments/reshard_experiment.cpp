#include "experiments/reshard_experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/pattern.hpp"
#include "plan/read_mesh.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 56;  // bytes and sums stay below 2^63

// A parameter tree with the document that it came from.
struct TreeDocument {
  Json json;
  Place place;
  ParameterTree tree;
};

std::string relative_to(const std::string& file, const std::string& path) {
  const std::filesystem::path given(path);
  if (given.is_absolute()) return path;
  return (std::filesystem::path(file).parent_path() / given).string();
}

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

TreeDocument read_array(const JsonReader& json) {
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
  return {Json(), json.place(), {"", {leaf}}};
}

TreeDocument read_tree(const JsonReader& json) {
  if (json.json().contains("shape") || json.json().contains("dtype")) {
    json.fail("a \"tree\" has the shapes and dtypes: \"shape\" and \"dtype\" are too many");
  }
  const JsonReader tree = json.at("tree");
  TreeDocument result{tree.json(), tree.place(), {}};
  if (tree.is_string()) {
    const std::string path = relative_to(json.place().file, tree.string());
    result.json = load_json(path);
    result.place = {path, ""};
  }
  result.tree = read_parameter_tree(JsonReader(result.json, result.place));
  std::erase_if(result.tree.leaves, [](const ParameterLeaf& leaf) { return !leaf.has_shape; });
  if (result.tree.leaves.empty()) tree.fail("the tree has no parameters");
  for (const ParameterLeaf& leaf : result.tree.leaves) {
    if (element_count(leaf) <= most_elements) continue;
    throw InputError(leaf.place, "more than 2^56 elements");
  }
  return result;
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

std::vector<PartitionSpec> recorded_specs(const JsonReader& json, const TreeDocument& document) {
  std::vector<PartitionSpec> specs;
  for (const ParameterLeaf& leaf : document.tree.leaves) {
    const std::string pointer = leaf.place.pointer.substr(document.place.pointer.size());
    const JsonReader record(document.json.at(Json::json_pointer(pointer)), leaf.place);
    const auto spec = record.find("spec");
    if (!spec) json.fail(fmt::format("the tree records no spec for \"{}\"", leaf.name));
    specs.push_back(read_partition_spec(*spec));
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

Mesh read_end_mesh(const JsonReader& json, const TreeDocument& document) {
  const auto specs = json.find("specs");
  const bool recorded = specs && specs->is_string();
  const auto mesh = json.find("mesh");
  if (mesh || !recorded) return read_mesh(json.at("mesh"));
  return read_mesh(JsonReader(document.json, document.place).at("mesh"));
}

ReshardEnd read_end(const JsonReader& json, const TreeDocument& document, bool is_tree) {
  if (!is_tree) {
    json.only_keys({"mesh", "spec"});
    return {read_mesh(json.at("mesh")), {read_spec(json.at("spec"))}};
  }
  json.only_keys({"mesh", "specs", "strategy"});
  ReshardEnd end{read_end_mesh(json, document), {}};
  const auto strategy = json.find("strategy");
  if (strategy) {
    if (json.find("specs")) json.fail("\"specs\" and \"strategy\" are one too many");
    end.specs = specs_of_strategy(*strategy, document.tree, end.mesh);
    return end;
  }
  const JsonReader specs = json.at("specs");
  if (specs.is_string()) {
    static_cast<void>(specs.choice({"recorded"}));
    end.specs = recorded_specs(specs, document);
  } else {
    end.specs = specs.is_array() ? specs_by_pattern(specs, document.tree)
                                 : specs_by_name(specs, document.tree);
  }
  return end;
}

}  // namespace

ReshardExperiment read_reshard(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  json.only_keys(
      {"name", "shape", "dtype", "tree", "from", "to", "devices", "machine", "topology"});
  const bool is_tree = document.contains("tree");
  const TreeDocument arrays = is_tree ? read_tree(json) : read_array(json);
  ReshardExperiment experiment;
  experiment.file = file;
  experiment.name = std::filesystem::path(file).stem().string();
  if (const auto name = json.find("name")) experiment.name = name->string();
  experiment.arrays = arrays.tree;
  experiment.source = read_end(json.at("from"), arrays, is_tree);
  experiment.target = read_end(json.at("to"), arrays, is_tree);
  if (const auto devices = json.find("devices")) {
    experiment.shared = devices->choice({"disjoint", "shared"}) == "shared";
  }
  const JsonReader machine = json.at("machine");
  experiment.machine = machine.string();
  experiment.machine_place = machine.place();
  if (std::filesystem::path(experiment.machine).extension() == ".json") {
    experiment.machine = relative_to(file, experiment.machine);
  }
  if (const auto topology = json.find("topology")) experiment.topology = topology->string();
  return experiment;
}

}  // namespace shardsim
