#include "strategies/rules/logical_axes.hpp"

#include "base/json.hpp"
#include "golden.hpp"
#include "strategies/rules/flax_nnx.hpp"
#include "strategies/rules/haliax.hpp"
#include "strategies/rules/maxtext.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;

LogicalAxisRules read_rules(const JsonReader& input, const char* key = "rules") {
  const auto rules = input.find(key);
  return rules ? read_logical_axis_rules(*rules) : LogicalAxisRules{};
}

std::vector<std::int64_t> read_shape(const JsonReader& json) {
  std::vector<std::int64_t> shape;
  for (const JsonReader& size : json.elements()) shape.push_back(size.integer(0, most_elements));
  return shape;
}

Json rules_to_json(const LogicalAxisRules& rules) {
  Json json = Json::array();
  for (const LogicalAxisRule& rule : rules) {
    json.push_back(Json::array({rule.name, to_json(rule.axes)}));
  }
  return json;
}

Json mesh_axes(const JsonReader& input) {
  const auto names = input.find("array_dim_names");
  if (!names) return {{"spec", nullptr}};
  const LogicalAssignment assignment =
      apply_logical_axis_rules(read_partition_spec(*names), read_rules(input), input.place());
  return {{"spec", to_json(assignment.spec)}};
}

Json constraint(const JsonReader& input) {
  const std::vector<std::string> names{"AXIS_IS_UNSHARDED", "RAISE_ERROR", "NO_CONSTRAINT"};
  const auto chosen = input.find("fallback");
  const std::string name = chosen ? chosen->choice(names) : names[0];
  const RulesFallback fallback = name == names[0]   ? RulesFallback::axis_is_unsharded
                                 : name == names[1] ? RulesFallback::raise_error
                                                    : RulesFallback::no_constraint;
  const auto spec = with_logical_constraint(read_partition_spec(input.at("array_dim_names")),
                                            read_rules(input), fallback, input.place());
  return {{"spec", spec ? to_json(*spec) : Json(nullptr)},
          {"constraint_applied", spec.has_value()}};
}

Json tree_axes(const JsonReader& input) {
  const LogicalAxisRules rules = read_rules(input);
  Json specs = Json::array();
  std::int64_t leaves = 0;
  for (const JsonReader& leaf : input.at("leaves").elements()) {
    const PartitionSpec names = read_partition_spec(leaf.at("logical_axes"));
    specs.push_back(to_json(apply_logical_axis_rules(names, rules, leaf.place()).spec));
    leaves += leaf.at("num_leaves").integer(0, most_elements);
  }
  return {{"specs", specs}, {"num_leaves_total", leaves}};
}

Json renamed(const JsonReader& input) {
  const LogicalAssignment assignment =
      from_sharding_rules(read_partition_spec(input.at("sharding")), read_rules(input));
  return {{"sharding", to_json(assignment.spec)}};
}

Json composite(const JsonReader& input) {
  return {{"rules",
           rules_to_json(composite_rules(read_rules(input, "rule1"), read_rules(input, "rule2")))}};
}

// Rules as the case writes them, whose axes may be a list of one: found again by their places.
Json merged(const JsonReader& input) {
  const LogicalAxisRules rules =
      merge_logical_axis_rules(read_rules(input, "base"), read_rules(input, "new"));
  Json answer = Json::array();
  for (const LogicalAxisRule& rule : rules) {
    for (const char* key : {"base", "new"}) {
      for (const JsonReader& given : input.at(key).elements()) {
        if (given.place().pointer == rule.place.pointer) answer.push_back(given.json());
      }
    }
  }
  return {{"rules", answer}};
}

Json adjusted(const JsonReader& input) {
  return {{"spec", to_json(adjust_for_indivisible_shape(
                       read_partition_spec(input.at("spec")), read_shape(input.at("shape")),
                       read_golden_mesh(input.at("mesh")), input.place()))}};
}

Json without_incompatible(const JsonReader& input) {
  const PartitionSpec spec = read_partition_spec(input.at("spec"));
  std::vector<std::int64_t> dims;
  for (const JsonReader& dim : input.at("dims").elements()) {
    dims.push_back(dim.integer(-most_elements, most_elements));
  }
  return {{"spec", to_json(remove_incompatible_axes(
                       spec, read_shape(input.at("shape")), read_golden_mesh(input.at("mesh")),
                       dims, input.at("allow_remove_axes").boolean(), input.place()))}};
}

Json mapped(const JsonReader& input) {
  return {{"spec", to_json(apply_axis_mapping(read_partition_spec(input.at("axes")),
                                              read_axis_mapping(input.at("mapping")))
                               .spec)}};
}

Json rounded(const JsonReader& input) {
  const auto devices = input.find("physical_size");
  const auto size = devices ? std::optional(devices->integer(1, most_elements)) : std::nullopt;
  return {{"size", round_axis(input.at("axis_size").integer(0, most_elements), size)}};
}

}  // namespace

void add_logical_axes(GoldenFunctions& functions) {
  functions.add("logical_to_mesh_axes", mesh_axes);
  functions.add("with_logical_constraint", constraint);
  functions.add("logical_to_mesh_axes (tree)", tree_axes);
  functions.add("nnx.from_sharding_rules", renamed);
  functions.add("nnx.composite_rules", composite);
  functions.add("_merge_logical_axis_rules", merged);
  functions.add("maxtext.adjust_pspec_for_indivisible_shapes", adjusted);
  functions.add("maxtext.remove_incompatible_mesh_axes_from_partition_spec", without_incompatible);
  functions.add("haliax.pspec_for_axis", mapped);
  functions.add("haliax.round_axis_for_partitioning", rounded);
}

}  // namespace shardsim::test
