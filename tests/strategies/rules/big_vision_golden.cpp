#include <algorithm>

#include "base/json.hpp"
#include "golden.hpp"
#include "strategies/rules/big_vision.hpp"
#include "strategies/rules/op_string.hpp"

namespace shardsim::test {
namespace {

// The leaves of any JSON value under the names of tree_flatten_with_names: dictionaries by sorted
// keys, lists by index; null is no leaf.
void flatten(const Json& tree, const std::string& name, std::vector<std::string>& names,
             std::vector<Json>& values) {
  const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "/" + key; };
  if (tree.is_object()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : tree.items()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) flatten(tree[key], inner(key), names, values);
  } else if (tree.is_array()) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      flatten(tree[i], inner(std::to_string(i)), names, values);
    }
  } else if (!tree.is_null()) {
    names.push_back(name);
    values.push_back(tree);
  }
}

// `tree` with its leaves replaced, which are named in the order of `flatten`.
Json with_leaves(const Json& tree, const std::vector<bool>& leaves, std::size_t& next) {
  if (tree.is_null()) return tree;
  if (!tree.is_structured()) return static_cast<bool>(leaves[next++]);
  Json result = tree;
  std::vector<std::string> keys;
  if (tree.is_object()) {
    for (const auto& [key, value] : tree.items()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) result[key] = with_leaves(tree[key], leaves, next);
  } else {
    for (std::size_t i = 0; i < tree.size(); ++i) result[i] = with_leaves(tree[i], leaves, next);
  }
  return result;
}

Json infer(const JsonReader& input) {
  ParameterTree tree = read_golden_tree(input.at("params"));
  if (const auto boxed = input.find("boxed_logical_names")) {
    for (const auto& [name, axes] : boxed->members()) {
      LogicalAxes names;
      for (const JsonReader& axis : axes.elements()) {
        names.push_back(axis.is_null() ? std::nullopt : std::optional(axis.string()));
      }
      const auto leaf = std::find_if(tree.leaves.begin(), tree.leaves.end(),
                                     [&n = name](const ParameterLeaf& l) { return l.name == n; });
      leaf->logical_axes = names;
    }
  }
  LogicalAxisRules logical;
  if (const auto rules = input.find("logical_axis_rules")) {
    logical = read_logical_axis_rules(*rules);
  }
  const SpecAssignment assignment =
      infer_sharding(tree, read_big_vision_rules(input.at("strategy")), logical,
                     read_golden_mesh(input.at("mesh")), input.place());
  std::vector<Json> specs;
  int failures = 0;  // of fsdp, which big_vision logs
  for (const LeafSpec& leaf : assignment.leaves) {
    specs.push_back(to_json(leaf.spec));
    const std::string what = "dimension divides by";
    for (auto at = leaf.reason.find(what); at != std::string::npos;
         at = leaf.reason.find(what, at + 1)) {
      ++failures;
    }
  }
  std::int64_t parameters = 0;
  for (const ParameterLeaf& leaf : tree.leaves) parameters += element_count(leaf);
  return {{"specs", specs_to_json(tree, specs)},
          {"warnings", assignment.warnings},
          {"fsdp_failed_log_count", failures},
          {"total_params", parameters}};
}

Json argsort(const JsonReader& input) {
  std::vector<std::int64_t> shape;
  for (const JsonReader& size : input.at("shape").elements()) {
    shape.push_back(size.integer(0, std::int64_t{1} << 40));
  }
  return {{"stable", largest_dimensions_first(shape)},
          {"simd", largest_dimensions_first(shape, EqualDimensions::simd)}};
}

Json parse_name(const JsonReader& input) {
  const OpCall call = parse_op(input.at("string").string(), input.place());
  Json args = Json::array();
  Json kwargs = Json::object();
  for (const PythonValue& value : call.args) args.push_back(to_json(value));
  for (const auto& [key, value] : call.kwargs) kwargs[key] = to_json(value);
  return {{"name", call.name}, {"args", args}, {"kwargs", kwargs}};
}

Json make_mask_trees(const JsonReader& input) {
  const Json& tree = input.at("tree").json();
  std::vector<std::string> names;
  std::vector<Json> values;
  flatten(tree, "", names, values);
  std::vector<BigVisionRule> rules;
  const JsonReader patterns = input.at("patterns");
  if (patterns.is_string()) {
    rules.push_back({patterns.string(), "", patterns.place()});
  } else {
    for (const JsonReader& pattern : patterns.elements()) {
      rules.push_back({pattern.string(), "", pattern.place()});
    }
  }
  const FirstMatches matches = match_big_vision_rules(rules, names);
  Json masks = Json::array();
  for (std::size_t r = 0; r < rules.size(); ++r) {
    std::vector<bool> mask;
    for (const auto& first : matches.first) mask.push_back(first == r);
    std::size_t next = 0;
    masks.push_back(with_leaves(tree, mask, next));
  }
  return {{"masks", masks}};
}

Json tree_flatten_with_names(const JsonReader& input) {
  std::vector<std::string> names;
  std::vector<Json> values;
  flatten(input.at("tree").json(), "", names, values);
  Json leaves = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) leaves.push_back({names[i], values[i]});
  return {{"named_leaves", leaves}};
}

}  // namespace

void add_big_vision(GoldenFunctions& functions) {
  functions.add("infer_sharding", infer, /*prose=*/{"fsdp_failed_log_first"});
  functions.add("numpy.argsort(shape)[::-1]", argsort);
  functions.add("parse_name", parse_name);
  functions.add("make_mask_trees", make_mask_trees);
  functions.add("tree_flatten_with_names", tree_flatten_with_names);
}

}  // namespace shardsim::test
