// The functions of eformer's escale/partition, as the golden cases call them.
#include <algorithm>

#include "base/json.hpp"
#include "golden.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/analyze_sharding.hpp"
#include "strategies/rules/auto_spec.hpp"
#include "strategies/rules/match_partition_rules.hpp"
#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_spec.hpp"
#include "strategies/rules/submesh_index.hpp"
#include "strategies/specs/spec_summary.hpp"

namespace shardsim::test {
namespace {

std::vector<std::int64_t> read_shape(const JsonReader& json) {
  std::vector<std::int64_t> shape;
  for (const JsonReader& size : json.elements()) {
    shape.push_back(size.integer(0, std::int64_t{1} << 62));
  }
  return shape;
}

Json spec_answer(const PartitionSpec& spec) { return {{"spec", to_json(spec)}}; }

// {"a/b": spec} in the order of the leaves.
std::vector<PartitionSpec> read_specs(const JsonReader& json, const ParameterTree& tree) {
  std::vector<PartitionSpec> specs;
  for (const ParameterLeaf& leaf : tree.leaves) {
    specs.push_back(read_partition_spec(json.at(leaf.name)));
  }
  return specs;
}

Json specs_answer(const ParameterTree& tree, const std::vector<PartitionSpec>& specs) {
  std::vector<Json> json;
  for (const PartitionSpec& spec : specs) json.push_back(to_json(spec));
  return {{"specs", specs_to_json(tree, json)}};
}

Json specs_answer(const ParameterTree& tree, const SpecAssignment& assignment) {
  std::vector<PartitionSpec> specs;
  for (const LeafSpec& leaf : assignment.leaves) specs.push_back(leaf.spec);
  return specs_answer(tree, specs);
}

// The version of March 2025 has a threshold that the environment sets. In the later one, of cases
// called head_* and of those with arguments, the threshold is one of these, 0 if left out.
MatchOptions match_options(const JsonReader& test_case) {
  const JsonReader input = test_case.at("input");
  MatchOptions options;
  if (const auto env = input.find("env")) {
    if (const auto size = env->find("MIN_SHARDING_SIZE")) {
      options.min_size = std::stoll(size->string());
    }
  }
  const auto kwargs = input.find("kwargs");
  if (!kwargs && !test_case.at("name").string().starts_with("head_")) return options;
  const bool environment =
      kwargs && kwargs->json().contains("min_size") && !kwargs->find("min_size");
  if (!environment) options.min_size = 0;
  if (!kwargs) return options;
  if (const auto size = kwargs->find("min_size"))
    options.min_size = size->json().get<std::int64_t>();
  if (const auto strict = kwargs->find("strict")) options.strict = strict->boolean();
  return options;
}

Json match(const JsonReader& test_case) {
  const JsonReader input = test_case.at("input");
  ParameterTree tree = read_golden_tree(input.at("params"));
  if (const auto names = input.find("leaves_without_shape_attr")) {
    for (const JsonReader& name : names->elements()) {
      ParameterLeaf leaf;
      leaf.name = name.string();
      leaf.has_shape = false;
      tree.leaves.push_back(leaf);
    }
    std::sort(
        tree.leaves.begin(), tree.leaves.end(),
        [](const ParameterLeaf& a, const ParameterLeaf& b) { return path_less(a.name, b.name); });
  }
  const JsonReader rules = input.at("rules");
  return specs_answer(tree, match_partition_rules(read_spec_rules(rules, read_partition_spec), tree,
                                                  match_options(test_case), rules.place()));
}

Json pattern_spec(const JsonReader& input) {
  const auto mesh = input.find("mesh");
  const Mesh known = mesh ? read_golden_mesh(*mesh) : Mesh();
  const auto default_spec = input.find("default_spec");
  ParameterTree tree;
  for (const JsonReader& name : input.at("names").elements()) {
    tree.leaves.emplace_back().name = name.string();
  }
  const std::vector<SpecRule> rules =
      parse_pattern_spec(input.at("pattern").string(), mesh ? &known : nullptr, input.place());
  return specs_answer(
      tree, assign_pattern_spec(
                rules, default_spec ? read_partition_spec(*default_spec) : PartitionSpec{}, tree));
}

Json partition_axis(const JsonReader& input) {
  const PartitionAxis axis(PartitionAxis::Version::march_2025, input.at("kwargs"));
  Json json = Json::object();
  for (const auto& [field, rule] : axis.fields()) json[field] = to_json(rule);
  return json;
}

SemanticAxes registered(const JsonReader& input) {
  SemanticAxes names;
  const auto override_known = input.find("override");
  const bool overrides = override_known && override_known->boolean();
  const auto add = [&](const std::string& name, const JsonReader& rule) {
    const auto all = input.find("generation");
    const auto own = all ? all->find(name) : std::nullopt;
    names.add(name, read_axis_rule(rule), own ? std::optional(read_axis_rule(*own)) : std::nullopt,
              overrides, rule.place());
  };
  if (const auto rules = input.find("registered")) {
    for (const auto& [name, rule] : rules->members()) add(name, rule);
  }
  if (const auto pair = input.find("register")) {
    add(pair->elements().at(0).string(), pair->elements().at(1));
  }
  if (const auto name = input.find("unregister")) {
    const auto missing_ok = input.find("missing_ok");
    names.remove(name->string(), !missing_ok || missing_ok->boolean(), name->place());
  }
  return names;
}

Json resolve(const JsonReader& input) {
  constexpr auto version = PartitionAxis::Version::later;
  const auto overrides = input.find("paxis");
  const PartitionManager manager(
      overrides ? PartitionAxis(version, *overrides) : PartitionAxis(version), registered(input));
  const auto axes = input.find("axes");
  if (!axes) return Json::object();  // only names were added or removed

  std::vector<AxisRule> dims;
  for (const JsonReader& dim : axes->elements()) dims.push_back(read_axis_rule(dim));
  const Place& place = axes->place();
  const auto mode_given = input.find("mode");
  if (!mode_given && input.find("generation")) {
    return {{"train", to_json(manager.resolve_axes(dims, train_mode, place).at(0))},
            {"decode", to_json(manager.resolve_axes(dims, decode_mode, place).at(0))}};
  }
  if (!mode_given) throw RuleError("ValueError", place, "axes without a mode");
  std::string mode;
  if (mode_given->is_number()) {
    const auto shape = input.find("shape");
    mode = mode_of_dimension(mode_given->json().get<std::int64_t>(),
                             shape ? std::optional(read_shape(*shape)) : std::nullopt, place);
  } else {
    mode = mode_given->string();
  }
  Json json = spec_answer(manager.resolve(dims, mode, place));
  for (const AxisRule& axis : manager.resolve_axes(dims, mode, place)) {
    json["axes"].push_back(to_json(axis));
  }
  return json;
}

AutoSpecOptions auto_options(const JsonReader& input, bool keep_duplicates) {
  AutoSpecOptions options;
  options.keep_duplicates = keep_duplicates;
  const auto kwargs = input.find("kwargs");
  if (!kwargs) return options;
  if (const auto names = kwargs->find("names")) options.names = read_auto_names(*names);
  if (const auto size = kwargs->find("min_sharding_size")) {
    options.min_size = size->json().get<std::int64_t>();
  }
  if (const auto reverse = kwargs->find("reverse")) options.reverse = reverse->boolean();
  return options;
}

GoldenFunction auto_spec(bool keep_duplicates) {
  return [=](const JsonReader& input) {
    ParameterLeaf leaf;
    leaf.shape = read_shape(input.at("shape"));
    return spec_answer(auto_partition_spec(leaf, read_golden_mesh(input.at("mesh")),
                                           auto_options(input, keep_duplicates), input.place()));
  };
}

Json optimize(const JsonReader& input) {
  const ParameterTree tree = read_golden_tree(input.at("params"));
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  const auto limit = input.find("max_memory_per_device");
  const auto names = input.find("names");
  std::vector<PartitionSpec> specs;
  for (const ParameterLeaf& leaf : tree.leaves) {
    specs.push_back(memory_optimized_spec(
        leaf, mesh, limit ? std::optional(Bytes(limit->json().get<std::int64_t>())) : std::nullopt,
        names ? std::optional(read_auto_names(*names)) : std::nullopt, input.place()));
  }
  return specs_answer(tree, specs);
}

Json validate(const JsonReader& input) {
  const ParameterTree tree = read_golden_tree(input.at("params"));
  Json kinds = Json::array();
  for (const ShardingIssue& issue : validate_sharding_config(
           tree, read_specs(input.at("specs"), tree), read_golden_mesh(input.at("mesh")))) {
    kinds.push_back(issue.kind == ShardingIssue::Kind::small ? "small" : "indivisible");
  }
  return {{"num_issues", kinds.size()}, {"kinds", kinds}};
}

Json analyze(const JsonReader& input) {
  const ParameterTree tree = read_golden_tree(input.at("params"));
  const EformerAnalysis analysis = eformer_analysis(tree, read_specs(input.at("specs"), tree),
                                                    read_golden_mesh(input.at("mesh")));
  return {{"total_parameters", analysis.total_parameters},
          {"sharded_parameters", analysis.sharded_parameters},
          {"memory_per_device", Json::object()},
          {"balance_score", 0.0},
          {"partition_stats", Json::object()}};
}

Json summarize(const JsonReader& input) {
  const ParameterTree tree = read_golden_tree(input.at("params"));
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  const std::vector<PartitionSpec> specs = read_specs(input.at("specs"), tree);
  std::vector<Sharding> shardings;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    shardings.push_back(to_sharding(specs[i], tree.leaves[i].shape.size(), mesh, input.place()));
  }
  const SpecSummary summary = summarize_specs(tree, shardings, mesh);
  return {{"total_parameters", summary.parameters},
          {"sharded_parameters_factor_gt_1", summary.sharded_parameters},
          {"total_bytes", summary.bytes.count()},
          {"max_bytes_per_device_ceil_shards", summary.max_bytes_per_device.count()},
          {"replication_overhead", summary.replication_overhead()}};
}

}  // namespace

void add_eformer(GoldenFunctions& functions) {
  functions.add_for_case("match_partition_rules", match);
  functions.add("create_pattern_based_partition_spec", pattern_spec);
  functions.add("PartitionAxis", partition_axis);
  functions.add("PartitionManager.resolve (later eformer)", resolve);
  functions.add("get_corrected_named_sharding (later eformer)", [](const JsonReader& input) {
    return spec_answer(corrected_spec(read_partition_spec(input.at("spec")),
                                      read_shape(input.at("shape")),
                                      read_golden_mesh(input.at("mesh")), input.place()));
  });
  functions.add("get_submesh_device_index", [](const JsonReader& input) -> Json {
    const AxisNames axes = read_axis_names(input.at("axis_names"));
    return {{"index_per_device_row_major",
             submesh_device_index(axes, read_golden_mesh(input.at("mesh")), input.place())}};
  });
  functions.add("get_axes_size_in_mesh", [](const JsonReader& input) -> Json {
    const AxisNames axes = read_axis_names(input.at("axis_names"));
    return {{"size", axes_size(axes, read_golden_mesh(input.at("mesh")), input.place())}};
  });
  functions.add("auto_partition_spec", auto_spec(/*keep_duplicates=*/false));
  functions.add("vrn_auto_partition_spec", auto_spec(/*keep_duplicates=*/true));
  functions.add("optimize_sharding_for_memory", optimize);
  functions.add("validate_sharding_config", validate);
  functions.add("analyze_sharding_strategy", analyze);
  functions.add("analyze_sharding_strategy/corrected", summarize);
}

}  // namespace shardsim::test
