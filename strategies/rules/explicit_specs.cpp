#include "strategies/rules/explicit_specs.hpp"

#include <fmt/format.h>

#include <map>

namespace shardsim {
namespace {

PartitionSpec read_spec(const JsonReader& json) {
  return json.is_string() ? parse_partition_spec(json.string(), json.place())
                          : read_partition_spec(json);
}

std::string indivisible(const ParameterLeaf& leaf, const Sharding& sharding) {
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
    const std::int64_t shards = Mesh::size_of(sharding.dims[d].axes);
    if (leaf.shape[d] % shards == 0) continue;
    return fmt::format("dimension {} does not divide: {} over {}", d, leaf.shape[d], shards);
  }
  return "";
}

std::vector<std::string> names_of(const ParameterTree& tree) {
  std::vector<std::string> names;
  for (const ParameterLeaf& leaf : tree.leaves) names.push_back(leaf.name);
  return names;
}

}  // namespace

SpecAssignment assign_explicit_specs(const ParameterTree& tree, const Mesh& mesh,
                                     const JsonReader& strategy) {
  SpecAssignment result;
  std::vector<PartitionSpec> specs;  // as result.rules
  const auto add = [&](const std::string& name, const JsonReader& json) {
    specs.push_back(read_spec(json));
    result.rules.push_back({fmt::format("{} -> {}", name, to_string(specs.back())), json.place()});
  };
  std::map<std::string, std::size_t> listed;
  for (const auto& [name, json] : strategy.at("specs").members()) {
    listed[name] = specs.size();
    add(name, json);
  }
  const auto fallback = strategy.find("default");
  if (fallback) add("default", *fallback);

  for (const ParameterLeaf& leaf : tree.leaves) {
    const auto found = listed.find(leaf.name);
    if (found == listed.end() && !fallback) {
      strategy.at("specs").fail(
          fmt::format("no spec for parameter \"{}\", and no default", leaf.name));
    }
    const std::size_t rule = found == listed.end() ? specs.size() - 1 : found->second;
    RuleUse& use = result.rules[rule];
    ++use.decides;
    if (found != listed.end()) ++use.matches;
    const Sharding sharding = to_sharding(specs[rule], leaf.shape.size(), mesh, use.place);
    result.leaves.push_back({specs[rule], rule, indivisible(leaf, sharding)});
  }
  if (fallback) result.rules.back().matches = static_cast<std::int64_t>(tree.leaves.size());
  for (const auto& [name, rule] : listed) {
    if (result.rules[rule].matches > 0) continue;
    throw InputError(result.rules[rule].place,
                     fmt::format("\"{}\" is no parameter of the tree", name),
                     closest(name, names_of(tree)));
  }
  return result;
}

}  // namespace shardsim
